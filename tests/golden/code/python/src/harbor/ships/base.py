"""What every ship is."""

from __future__ import annotations

import abc
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, overload

if TYPE_CHECKING:
    from harbor.berths.quay import Berth

_LENGTHS = (10, 400)


class Named(Protocol):
    """Has a name."""

    name: str

    def rename(self, name: str) -> None: ...


@dataclass(slots=True)
class Ship(Named):
    """A ship.

    It has a name, and lies at a berth or at sea.
    """

    name: str
    length: float = 10.0
    crew: list[Sailor] = field(default_factory=list)
    berth: Berth | None = None
    count: ClassVar[int] = 0

    def __post_init__(self) -> None:
        Ship.count += 1
        self.check()

    def check(self) -> None:
        if not _LENGTHS[0] <= self.length <= _LENGTHS[1]:
            raise TooLong(self.length)

    @property
    def captain(self) -> "Sailor | None":
        """Whoever came first."""
        return self.crew[0] if self.crew else None

    @captain.setter
    def captain(self, sailor: Sailor) -> None:
        self.crew.insert(0, sailor)

    @classmethod
    def named(cls, name: str) -> Ship:
        return cls(name)

    @staticmethod
    def feet(meters: float) -> float:
        return meters * 3.28

    def rename(self, name: str) -> None:
        self.name = name

    @overload
    def moor(self, berth: Berth) -> Berth: ...
    @overload
    def moor(self, berth: None) -> None: ...
    def moor(self, berth: Berth | None) -> Berth | None:
        if berth is not None:
            berth.take(self)
        self.berth = berth
        return berth

    def _drift(self):
        "Nobody is at the wheel."
        self.moor(None)

    class Papers:
        """What a ship must show."""

        def __init__(self, ship: "Ship") -> None:
            self.ship = ship

        def show(self) -> str:
            return self.ship.name


class Sailor(abc.ABC):
    @abc.abstractmethod
    def work(self) -> None:
        raise NotImplementedError


class TooLong(ValueError):
    pass


def copy(ship: Ship) -> Ship:
    return dataclasses.replace(ship)
