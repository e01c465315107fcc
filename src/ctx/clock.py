"""The only module that reads the time.

`now_ms` is the time to store: the wall clock, limited to years that every format can hold.
`wall_ms` is the unchanged wall clock, to compare with file times: see docs/decisions/0017.
`HybridClock` gives stamps that never go back, even if the wall clock does, and that are later than
every stamp it has observed: a record written after reading another sorts after it, whatever the
clocks of two machines say.
"""

import time
from _collections_abc import (
    Callable,
)  # Hooks load this module, so it does not import `collections`.
from _thread import allocate_lock

COUNTER_BITS = 16

EARLIEST_MS = 1_735_689_600_000
"""2025-01-01, before the first release. An earlier clock is wrong."""
LATEST_MS = 4_859_740_800_000
"""2124-01-01. A later clock is wrong. The range is under a hundred years, which is how far into the
future a reader accepts stamps."""
YEAR_MS = 365 * 86_400_000

_YEAR_1000_S = -30_610_224_000
_YEAR_9999_END_S = 253_402_300_799

monotonic = time.monotonic
process_time = time.process_time
sleep = time.sleep

patience = 1
"""A factor for all time limits, above 1 on a slow or busy machine: see `CTX_PATIENCE`."""


def now_ms() -> int:
    """Milliseconds since 1970, UTC, limited to the valid range."""
    return possible_ms(wall_ms())


def possible_ms(wall: int) -> int:
    """A wall clock time, limited to the valid range.

    A clock outside the range is wrong by years. Its time within the year is kept, so that later
    events still get later times.
    """
    if EARLIEST_MS <= wall < LATEST_MS:
        return wall
    year = EARLIEST_MS if wall < EARLIEST_MS else LATEST_MS - YEAR_MS
    return year + wall % YEAR_MS


def wall_ms() -> int:
    """The wall clock, right or wrong, as file times use it."""
    return time.time_ns() // 1_000_000


def wall_s() -> int:
    return wall_ms() // 1000


def wall_ns() -> int:
    return time.time_ns()


def is_wrong() -> bool:
    """Whether the wall clock is outside the valid range."""
    return not EARLIEST_MS <= wall_ms() < LATEST_MS


def now_s() -> int:
    return now_ms() // 1000


def iso(ms: int) -> str:
    """`2026-01-20T10:00:00Z`, the only stored time format.

    Times are compared as text, so a year has four digits. Input may have any value.
    """
    seconds = min(max(ms // 1000, _YEAR_1000_S), _YEAR_9999_END_S)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def parse_iso(text: str) -> int | None:
    """Parse an ISO 8601 time, also from other programs, into milliseconds since 1970.

    It accepts `2026-01-20T10:00:00Z`, fractions, offsets, a space for the `T`, and dates. Without
    an offset it is UTC. None if invalid.
    """
    from datetime import UTC, datetime, timedelta

    try:
        found = datetime.fromisoformat(text.strip().upper())
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def day(ms: int) -> str:
    """The local day of a time, `20407 +3600`: its number and the offset from UTC."""
    return f"{day_number(ms)} {_offset(ms):+d}"


def day_number(ms: int) -> int:
    """The number of the local day since 1970."""
    return (ms // 1000 + _offset(ms)) // 86_400


def _offset(ms: int) -> int:
    try:
        return time.localtime(ms // 1000).tm_gmtoff
    except (OverflowError, OSError, ValueError):
        return 0


def days_ago(days: int) -> str:
    """A number of days for people: `yesterday`, `3 days ago`, `2 weeks ago`."""
    if days <= 1:
        return "yesterday" if days == 1 else "today"
    for size, unit in ((365, "year"), (30, "month"), (7, "week")):
        if days >= 2 * size:
            return f"{days // size} {unit}s ago"
    return f"{days} days ago"


def expired_range(days: int) -> tuple[str, str]:
    """The time range of data that has exceeded its retention and may be deleted.

    Cleanup runs every day. Data that is overdue by more than a year means that the clock jumped
    ahead, so it is not deleted.
    """
    end = now_ms() - days * 86_400_000
    return iso(end - YEAR_MS), iso(end)


def age(seconds: float) -> str:
    """A duration for people: `45 s`, `3 min`, `2 h`, `5 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


Tick = Callable[[int, int], None]
"""A progress callback: work done, and total work."""


def deadline(seconds: float) -> Callable[[], bool]:
    """A function that tells whether the seconds have not passed yet, by the monotonic clock."""
    end = monotonic_after(seconds)
    return lambda: time.monotonic() < end


def monotonic_after(seconds: float) -> float:
    """The monotonic time after this many seconds."""
    return time.monotonic() + seconds * patience


def be_patient(told: str) -> None:
    """Apply `CTX_PATIENCE` if it is a number from 1 to 99."""
    global patience
    if told.isdecimal() and len(told) < 3:
        patience = max(1, int(told))


def no_tick(_done: int, _total: int) -> None:
    """A progress callback that does nothing."""


class HybridClock:
    """Stamps of 64 bits: 48 of wall milliseconds, 16 of a counter for one millisecond."""

    def __init__(self, last: int = 0, wall: Callable[[], int] = now_ms) -> None:
        self._last = last
        self._wall = wall
        self._lock = allocate_lock()

    def tick(self, now: int | None = None) -> int:
        """A stamp later than every stamp returned or observed before.

        A counter overflow carries into the next millisecond, which keeps the order. `now` is the
        wall clock, if the caller has read it.
        """
        with self._lock:
            wall = self._wall() if now is None else now
            self._last = max(wall << COUNTER_BITS, self._last + 1)
            return self._last

    def observe(self, stamp: int) -> None:
        """Observe a stamp from elsewhere, so that the next own stamp is later."""
        with self._lock:
            self._last = max(self._last, stamp)


def stamp_ms(stamp: int) -> int:
    """The wall time in a stamp."""
    return stamp >> COUNTER_BITS
