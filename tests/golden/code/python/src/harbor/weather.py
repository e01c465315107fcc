from collections import namedtuple
from enum import Enum
from typing import NamedTuple, TypeAlias, TypedDict, TypeVar

T = TypeVar("T", bound="Day")
Days: TypeAlias = "list[Day]"
Spot = namedtuple("Spot", "x y")


class Sky(Enum):
    CLEAR = 1
    GREY = 2

    @property
    def is_dry(self) -> bool:
        return self is Sky.CLEAR


class Day(NamedTuple):
    sky: Sky
    temperature: float

    def wind(self) -> int:
        return 3 if self.sky.is_dry else 8


class Report(TypedDict, total=False):
    day: Day


def today() -> Day:
    return Day(Sky.CLEAR, 20.0)


def yesterday() -> Day: return Day(Sky.GREY, 10.0)


def größe(Überschrift: str) -> int:
    """How large a headline is: names may have any letters."""
    return len(Überschrift)


class Ñandú:
    def läuft(self) -> int:
        return größe("läuft")
