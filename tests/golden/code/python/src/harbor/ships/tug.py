from .base import Ship, copy
from ..log import note
from ... import nowhere
from ..berths import quay as quays, quay
import harbor.berths.quay
import harbor.weather as sky


class Tug(Ship):
    """Pulls others."""

    pulls: Ship | None = None

    def __init__(self, name: str, power: int = 1) -> None:
        super().__init__(name, 30)
        self.power = power
        self.rope = Rope(self)
        self.spare: Rope = make_rope(self)

    def pull(self, other: Ship) -> None:
        self.pulls = other
        self.rope.fasten(other)
        self.spare.loosen().fasten(copy(other))
        note(other.name)

    def bring(self, other: Ship) -> quays.Berth:
        berth = quays.Quay.free()
        other.moor(berth)
        harbor.berths.quay.Quay().tidy()
        sky.today().wind()
        unknown.fasten(berth)
        return berth

    def check(self) -> None:
        super().check()
        Ship.check(self)


class Rope:
    def __init__(self, owner: Tug) -> None:
        self._owner = owner

    def fasten(self, ship: Ship) -> None:
        self._owner.pulls = ship

    def loosen(self) -> "Rope":
        return self


def make_rope(owner: Tug) -> Rope:
    return Rope(owner)
