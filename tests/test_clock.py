import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.clock import HybridClock


def test_stamps_increase_within_a_millisecond_and_when_the_clock_goes_back() -> None:
    wall = iter([1000, 1000, 1000, 500, 500, 2000])
    hybrid = HybridClock(wall=lambda: next(wall))
    stamps = [hybrid.tick() for _ in range(6)]
    assert stamps == sorted(set(stamps))
    assert [clock.stamp_ms(stamp) for stamp in stamps] == [1000] * 5 + [2000]
    assert [stamp % (1 << clock.COUNTER_BITS) for stamp in stamps] == [0, 1, 2, 3, 4, 0]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**47)), max_size=50))
def test_a_stamp_is_later_than_all_observed_stamps(moves: list[tuple[bool, int]]) -> None:
    now = 0
    hybrid = HybridClock(wall=lambda: now)
    seen = [-1]
    for is_remote, value in moves:
        if is_remote:
            hybrid.observe(value << clock.COUNTER_BITS)
            seen.append(value << clock.COUNTER_BITS)
        else:
            now = value
            stamp = hybrid.tick()
            assert stamp > max(seen)
            seen.append(stamp)


def test_more_stamps_than_the_counter_holds_stay_in_order() -> None:
    hybrid = HybridClock(wall=lambda: 7)
    stamps = [hybrid.tick() for _ in range(70_000)]
    assert stamps == sorted(set(stamps))
    assert clock.stamp_ms(stamps[-1]) == 8


def test_times_and_ages_are_formatted() -> None:
    assert clock.iso(1_768_903_200_000) == "2026-01-20T10:00:00Z"
    assert [clock.age(s) for s in (-5, 0, 59, 60, 7200, 200_000)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min",
        "2 h",
        "2 d",
    ]


def test_times_are_read_in_many_formats() -> None:
    half_past_ten = 1_705_314_600_000
    for text in (
        "2024-01-15T10:30:00Z",
        "2024-01-15t10:30:00z",
        " 2024-01-15 10:30:00\n",
        "2024-01-15T10:30",
        "2024-01-15T12:30:00+02:00",
        "2024-01-15T10:30:00.000Z",
        "2024-01-15T10:30:00.000000999Z",
        "20240115T103000Z",
    ):
        assert clock.parse_iso(text) == half_past_ten, text
    assert clock.parse_iso("2024-01-15") == half_past_ten - 37_800_000
    assert clock.parse_iso("2024-01-15T10:30:00.25Z") == half_past_ten + 250
    assert clock.parse_iso("1969-12-31T23:59:59.999Z") == -1
    assert clock.parse_iso("0001-01-01T00:00:00+14:00") is not None
    for text in (
        "",
        "now",
        "10:30",
        "2024-13-01",
        "2024-01-15T25:00:00Z",
        "1705314600",
        "２０２４",
    ):
        assert clock.parse_iso(text) is None, text


@settings(deadline=None)
@given(st.integers(-30_000_000_000, 250_000_000_000))
def test_a_time_that_was_written_is_read(seconds: int) -> None:
    assert clock.parse_iso(clock.iso(seconds * 1000)) == seconds * 1000


def test_days_follow_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    late = 1_768_950_000_000  # 2026-01-20T23:00:00Z
    for zone, day in (("UTC", "20473 +0"), ("XXX-2", "20474 +7200"), ("XXX+5", "20473 -18000")):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert clock.day(late) == day
    monkeypatch.undo()
    time.tzset()


def test_days_ago_are_written_in_words() -> None:
    told = {days: clock.days_ago(days) for days in (-1, 0, 1, 2, 13, 14, 59, 60, 364, 729, 730)}
    assert told == {
        -1: "today",
        0: "today",
        1: "yesterday",
        2: "2 days ago",
        13: "13 days ago",
        14: "2 weeks ago",
        59: "8 weeks ago",
        60: "2 months ago",
        364: "12 months ago",
        729: "24 months ago",
        730: "2 years ago",
    }


def test_a_stored_time_is_in_the_valid_range() -> None:
    for wall in (clock.EARLIEST_MS, clock.LATEST_MS - 1, 1_794_000_000_000):
        assert clock.possible_ms(wall) == wall
    for wall in (-(10**15), -1, 0, clock.EARLIEST_MS - 1):
        assert clock.iso(clock.possible_ms(wall))[:4] == "2025"
    for wall in (clock.LATEST_MS, 10**13, 10**15):
        assert clock.iso(clock.possible_ms(wall))[:4] == "2123"


@given(
    st.integers(-40_000, 40_000).filter(lambda year: not 54 <= year <= 154),
    st.integers(0, clock.YEAR_MS - 1),
    st.integers(0, clock.YEAR_MS - 1),
)
def test_later_events_have_later_times(year: int, first: int, second: int) -> None:
    """Also with a wrong clock, except once a year."""
    begin = year * clock.YEAR_MS
    earlier, later = sorted((first, second))
    passed = clock.possible_ms(begin + later) - clock.possible_ms(begin + earlier)
    assert passed == later - earlier


@given(st.integers(-(2**62), 2**62))
def test_every_time_has_a_date_that_sorts(ms: int) -> None:
    assert len(clock.iso(ms)) == len("2026-01-20T10:00:00Z")
    assert clock.iso(ms) <= clock.iso(ms + 1000)


def test_a_reader_accepts_every_stamp_that_can_be_written() -> None:
    last = HybridClock(wall=lambda: clock.LATEST_MS - 1).tick() + 10**9
    first_reader = clock.EARLIEST_MS + 100 * clock.YEAR_MS
    assert clock.stamp_ms(last) < first_reader
