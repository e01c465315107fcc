import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from harbor import ships
from harbor.ships.base import Ship

type Lengths = dict[str, float]
type Pair[A, B] = tuple[A, B]
Judge = Callable[[Ship], bool]

DEEPEST, SHALLOWEST = 20, 2
DEPTH = 12.0
free_berths = 3


class Box[T]:
    """Holds one thing, whatever it is."""

    def __init__(self, content: T) -> None:
        self.content = content

    def map[U](self, change: Callable[[T], U]) -> "Box[U]":
        return Box(change(self.content))


class Berth(Box[Ship | None]):
    depth: float = DEPTH

    def take(self, ship: Ship) -> None:
        self.content = ship


class Quay:
    def __init__(self) -> None:
        self.berths = [Berth(None) for _ in range(free_berths)]
        self.first = Berth(None)

    @staticmethod
    def free() -> Berth:
        return Berth(None)

    def tidy(self) -> None:
        self.first.take(ships.Ship("x"))
        lengths: Lengths = {ship.name: ship.length for ship in self.ships()}
        longest = max(lengths.values(), key=lambda length: round(length))
        if (berth := Quay.free()) and longest:
            berth.take(ships.base.copy(ships.Tug("t")))

    def ships(self) -> Iterator[Ship]:
        for berth in self.berths:
            match berth:
                case Berth(content=Ship() as ship):
                    yield ship
                case Box(content=None) | None:
                    continue
                case {"ship": ship, **rest} if rest:
                    yield copy_of(ship)
                case [first, *_]:
                    yield first

    def judged(self, judge: Judge = bool) -> list[Ship]:
        def is_good(ship: Ship) -> bool:
            return judge(ship) and fits(ship)

        @contextlib.contextmanager
        def opened() -> Iterator[None]:
            yield

        with opened(), contextlib.suppress(KeyError) as nothing:
            return [ship for ship in self.ships() if is_good(ship)]


async def arrivals(quay: Quay) -> AsyncIterator[Ship]:
    async with asyncio.Lock() as lock:
        async for ship in waiting(quay):
            await welcome(ship)
            yield ship


async def waiting(quay: Quay) -> AsyncIterator[Ship]:
    for ship in quay.ships():
        yield ship


async def welcome(ship: Ship) -> None:
    try:
        papers = Ship.Papers(ship)
        papers.show()
    except* OSError as group:
        print(group)


def fits(ship: Ship, /, depth: float = DEPTH, *, wide: bool = False, **rest: Box[int]) -> bool:
    global free_berths
    free_berths -= 1
    return depth > SHALLOWEST


def copy_of(ship):
    from harbor.ships.base import copy

    return copy(ship)
