"""Days and date ranges in a text."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx import clock
from ctx.search import dates
from ctx.search.dates import DaySpan, spans

TODAY = "2023-10-20"
"""A Friday."""


def number(day: str) -> int:
    return date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal()


def date_ranges(text: str, today: str = TODAY) -> list[str]:
    """The ranges as `first last`, or as one day."""
    found = []
    for span in spans(text, number(today)):
        first, last = (clock.iso(86_400_000 * day)[:10] for day in (span.first, span.last))
        found.append(first if first == last else f"{first} {last}")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 8 May 2023", ["2023-05-08"]),
        ("What broke on October 3, 2023?", ["2023-10-03"]),
        ("October 13, 2022 and October 14th", ["2022-10-13", "2023-10-14"]),
        ("the 3rd of July", ["2023-07-03"]),
        ("on 3 December", ["2022-12-03"]),
        ("on 29 February", ["2020-02-29"]),
        ("2023-05-08, or all of 2024-12", ["2023-05-08", "2024-12-01 2024-12-31"]),
        ("When did she go camping in June?", ["2023-06-01 2023-06-30"]),
        ("in November", ["2022-11-01 2022-11-30"]),
        ("early May 2023", ["2023-05-01 2023-05-11"]),
        ("in mid-May", ["2023-05-10 2023-05-21"]),
        ("late August", ["2023-08-20 2023-08-31"]),
        ("in 2022", ["2022-01-01 2022-12-31"]),
        ("the summer of 2022", ["2022-06-01 2022-08-31"]),
        ("in Q2", ["2023-04-01 2023-06-30"]),
    ],
)
def test_dates_are_parsed(text: str, expected: list[str]) -> None:
    assert date_ranges(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2023-10-20"),
        ("this morning", "2023-10-20"),
        ("yesterday", "2023-10-19"),
        ("the day before yesterday", "2023-10-18"),
        ("three days ago", "2023-10-17"),
        ("two weeks ago", "2023-10-03 2023-10-09"),
        ("a week ago", "2023-10-10 2023-10-16"),
        ("in the past 3 days", "2023-10-17 2023-10-20"),
        ("last week", "2023-10-09 2023-10-15"),
        ("this week", "2023-10-16 2023-10-22"),
        ("last weekend", "2023-10-14 2023-10-15"),
        ("last month", "2023-09-01 2023-09-30"),
        ("next month", "2023-11-01 2023-11-30"),
        ("last quarter", "2023-07-01 2023-09-30"),
        ("last year", "2022-01-01 2022-12-31"),
        ("last Friday", "2023-10-13"),
        ("on Monday", "2023-10-16"),
        ("next Monday", "2023-10-23"),
        ("last June", "2023-06-01 2023-06-30"),
        ("last October", "2022-10-01 2022-10-31"),
        ("last spring", "2023-03-01 2023-05-31"),
        ("last winter", "2022-12-01 2023-02-28"),
        ("in the summer", "2023-06-01 2023-08-31"),
    ],
)
def test_relative_ranges_are_parsed(text: str, expected: str) -> None:
    assert date_ranges(f"What did we do {text}?") == [expected]


def test_seasons_around_the_new_year_are_parsed() -> None:
    assert date_ranges("last winter", "2024-01-10") == ["2022-12-01 2023-02-28"]
    assert date_ranges("this winter", "2024-01-10") == ["2023-12-01 2024-02-29"]
    assert date_ranges("last month", "2024-01-10") == ["2023-12-01 2023-12-31"]
    assert date_ranges("last quarter", "2024-01-10") == ["2023-10-01 2023-12-31"]


def test_expressions_relative_to_a_date_are_parsed() -> None:
    for text, expected in {
        "the week before 9 June 2023": "2023-06-02 2023-06-08",
        "the Friday before 15 July 2023": "2023-07-14",
        "two weekends before 17 July 2023": "2023-07-08 2023-07-09",
        "two weeks before August 11, 2023": "2023-07-25 2023-07-31",
        "the day after May 3, 2023": "2023-05-04",
        "the week of 23 August 2023": "2023-08-21 2023-08-27",
        "from May to July 2023": "2023-05-01 2023-07-31",
        "between 3 May and 9 June 2023": "2023-05-03 2023-06-09",
        "from November to January 2023": "2022-11-01 2023-01-31",
    }.items():
        assert date_ranges(text) == [expected]


def test_open_ranges_are_parsed() -> None:
    for text, inside, outside in (
        ("before June 2023", "2023-05-31", "2023-06-01"),
        ("until 3 June", "2023-06-03", "2023-06-04"),
        ("since May", "2023-05-01", "2023-04-30"),
        ("after May 3, 2023", "2023-05-04", "2023-05-03"),
    ):
        (span,) = spans(text, number(TODAY))
        assert span.nearest == number(inside)
        assert span.first <= number(inside) <= span.last
        assert not span.first <= number(outside) <= span.last


def test_other_text_has_no_dates() -> None:
    for text in (
        "May I march on? March on! May it be",
        "it may, or march, or sat. on, in dec",
        "2024-13 is no month, 12 is no year, 31 February is no day",
        "before the migration",
        "the last test, this time, next to it",
        " ".join(f"{day} June" for day in range(1, 20)),
    ):
        assert date_ranges(text) == []
    text = "What did we do the week before 9 June 2023 and on Monday?"
    found = spans(text, number(TODAY))
    assert dates.without(text, found).split() == "What did we do and ?".split()


def test_the_fit_of_a_day_decreases_with_its_distance() -> None:
    day = DaySpan(100, 100, (0, 0))
    assert day.fit(100, 100) == 1
    assert 1 > day.fit(101, 101) > day.fit(102, 102) > day.fit(99, 99) > day.fit(110, 110)
    # "This year" is less exact than the day itself.
    assert day.fit(100, 100) > day.fit(1, 365) >= 0.5
    # A date without a year fits any year.
    (june,) = spans("in June", number(TODAY))
    this_year, last_year, wrong = (
        june.fit(number(day), number(day)) for day in ("2023-06-15", "2022-06-15", "2023-01-15")
    )
    assert this_year > last_year > wrong
    (dated,) = spans("in June 2023", number(TODAY))
    assert dated.fit(number("2022-06-15"), number("2022-06-15")) < 0.01
    # Days near the end of an open range fit better.
    span = dates.before_day(100, (0, 0))
    assert span.fit(99, 99) > span.fit(60, 60) > 0.5 > span.fit(120, 120) == 0


@given(st.text(alphabet="May June12,of the-0\nlast week ago before", max_size=200))
def test_any_text_can_be_parsed(text: str) -> None:
    found = spans(text, number(TODAY))
    assert len(found) <= dates.MOST
    for span in found:
        start, end = span.place
        assert 0 <= start < end <= len(text)
        assert span.first <= span.last
    dates.without(text, found)
