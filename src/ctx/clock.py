"""The one place that asks the time.

`now_ms` is the time that is written down: the wall clock's, brought into a range of years that
every format here can hold. `wall_ms` is the wall clock as it is, to be compared with the times of
files, which the system writes: see docs/decisions/0017. `HybridClock` gives stamps that never go
back, also when the wall clock does, and that are later than every stamp it has seen: what was
written after reading a record sorts after that record, whatever the clocks of two machines say.
"""

import time
from _collections_abc import Callable  # Hooks load this module, and not `collections`.
from _thread import allocate_lock

COUNTER_BITS = 16
_COUNTER_MASK = (1 << COUNTER_BITS) - 1

EARLIEST_MS = 1_735_689_600_000
"""2025-01-01, before the first release. A clock that says less is wrong."""
LATEST_MS = 4_859_740_800_000
"""2124-01-01. A clock that says more is wrong. It is less than a hundred years after the earliest,
which is how far ahead of itself a reader accepts stamps."""
YEAR_MS = 365 * 86_400_000

_YEAR_1000_S = -30_610_224_000
_YEAR_9999_END_S = 253_402_300_799

monotonic = time.monotonic
sleep = time.sleep

patience = 1
"""How many times as long everything may take that is given up after a while. It is more than once
on a machine that is slow or busy: see `CTX_PATIENCE`."""


def now_ms() -> int:
    """Milliseconds since 1970, UTC, in the range that can be written down."""
    return possible_ms(wall_ms())


def possible_ms(wall: int) -> int:
    """What a clock said, as it is written down.

    A clock outside of the range is wrong by years. Its time within a year is kept, so that what
    happens later still has a later time.
    """
    if EARLIEST_MS <= wall < LATEST_MS:
        return wall
    year = EARLIEST_MS if wall < EARLIEST_MS else LATEST_MS - YEAR_MS
    return year + wall % YEAR_MS


def wall_ms() -> int:
    """What the wall clock says, right or wrong: files have such times."""
    return time.time_ns() // 1_000_000


def wall_s() -> int:
    return wall_ms() // 1000


def wall_ns() -> int:
    return time.time_ns()


def is_wrong() -> bool:
    """Whether the wall clock says what cannot be."""
    return not EARLIEST_MS <= wall_ms() < LATEST_MS


def now_s() -> int:
    return now_ms() // 1000


def iso(ms: int) -> str:
    """`2026-01-20T10:00:00Z`, the only form in which a time is written down.

    Times are compared as text, so a year has four digits. A stranger's clock may be anywhere.
    """
    seconds = min(max(ms // 1000, _YEAR_1000_S), _YEAR_9999_END_S)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def parse_iso(text: str) -> int | None:
    """Milliseconds since 1970 of a time in ISO 8601, also one that another program wrote.

    `2026-01-20T10:00:00Z`, fractions, offsets, a space for the `T`, a date alone. What has no
    offset is UTC. None for anything else.
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
    """The day of a moment where this runs, `20407 +3600`: a number, and how far UTC is away."""
    return f"{day_number(ms)} {_offset(ms):+d}"


def day_number(ms: int) -> int:
    """Days since 1970 that have begun, where this runs."""
    return (ms // 1000 + _offset(ms)) // 86_400


def _offset(ms: int) -> int:
    try:
        return time.localtime(ms // 1000).tm_gmtoff
    except (OverflowError, OSError, ValueError):
        return 0


def days_ago(days: int) -> str:
    """How long ago that is, as people say it: `yesterday`, `3 days ago`, `2 weeks ago`."""
    if days <= 1:
        return "yesterday" if days == 1 else "today"
    for size, unit in ((365, "year"), (30, "month"), (7, "week")):
        if days >= 2 * size:
            return f"{days // size} {unit}s ago"
    return f"{days} days ago"


def expired(days: int) -> tuple[str, str]:
    """From when to when something was written that is kept for some days and is due to go.

    Forgetting goes on every day. What is overdue by more than a year was not missed: the clock
    has leapt ahead, and nothing is deleted on its word.
    """
    end = now_ms() - days * 86_400_000
    return iso(end - YEAR_MS), iso(end)


def age(seconds: float) -> str:
    """A duration as people say it: `45 s`, `3 min`, `2 h`, `5 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


Tick = Callable[[int, int], None]
"""Told how much of a long piece of work is done, and how much there is."""


def deadline(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds from now have not passed yet, whatever the clock on the wall says."""
    end = monotonic_after(seconds)
    return lambda: time.monotonic() < end


def monotonic_after(seconds: float) -> float:
    """When that is over which may take so long."""
    return time.monotonic() + seconds * patience


def be_patient(told: str) -> None:
    """Take `CTX_PATIENCE` at its word, if it is a number from 1 to 99."""
    global patience
    if told.isdecimal() and len(told) < 3:
        patience = max(1, int(told))


def no_tick(_done: int, _total: int) -> None:
    """For work that nobody watches."""


class HybridClock:
    """Stamps of 64 bits: 48 of wall milliseconds, 16 of a counter for one millisecond."""

    def __init__(self, last: int = 0, wall: Callable[[], int] = now_ms) -> None:
        self._last = last
        self._wall = wall
        self._lock = allocate_lock()

    def tick(self) -> int:
        """A stamp later than every stamp given or seen before.

        A counter that overflows runs into the millisecond above it, which is still in order.
        """
        with self._lock:
            self._last = max(self._wall() << COUNTER_BITS, self._last + 1)
            return self._last

    def observe(self, stamp: int) -> None:
        """Take note of a stamp from elsewhere, so that the next one given is later."""
        with self._lock:
            self._last = max(self._last, stamp)


def stamp_ms(stamp: int) -> int:
    """The wall time in a stamp."""
    return stamp >> COUNTER_BITS


def stamp_counter(stamp: int) -> int:
    return stamp & _COUNTER_MASK
