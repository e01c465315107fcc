"""The days and spans of time that a text names: `on 8 May 2023`, `last week`, `before June`.

A question about a time asks for events of that time. Most events are recorded on the same day or
soon after, and a text often names its own time: `yesterday`, in a text of 8 May, is 7 May. So
`spans` reads both questions and texts, each relative to its own day.

Days are numbered from 1970, as by `clock.day_number`. Only English is understood, and dates in
digits with the year first.
"""

import re
from collections.abc import Iterator, Sequence
from math import exp
from typing import NamedTuple

from ctx.search import date_patterns
from ctx.search.date_patterns import UNITS, WEEKDAYS

MOST = 8
"""A text with more dates is a log, not a question about a time."""

_YEAR = 365.2425
_FAR = 4_000
"""In days: how far `before` and `since` reach."""
_OTHER_YEAR = 0.5
_NEXT_DAY, _DAY_BEFORE = 0.4, 0.25
_WORD = re.compile("[a-z0-9]+")
_AROUND = re.compile(
    rf"(?:\b(?P<count>\w+)\s{{1,3}})?\b(?P<unit>{'|'.join((*UNITS, *WEEKDAYS))})s?\s{{1,3}}"
    r"(?P<side>before|after|of|following|prior to)\s{1,3}(?:the\s)?\Z",
    re.IGNORECASE,
)
_SIDE = re.compile(r"\b(before|until|prior to|after|since)\s{1,3}(?:the\s)?\Z", re.IGNORECASE)
_OWN_SIDE = re.compile(r"(before|until|after|since)\s", re.IGNORECASE)
_FROM = re.compile(r"(?:\b(?:from|between)\s{1,3}(?:the\s)?)\Z", re.IGNORECASE)
_OWN_FROM = re.compile(r"from\s", re.IGNORECASE)
_TO = re.compile(r"\s{0,3}(?:to|until|till|and|through|-|–)?\s{0,3}(?:the\s)?", re.IGNORECASE)


class DaySpan(NamedTuple):
    """A span of days that a text names."""

    first: int
    last: int
    place: tuple[int, int]
    """The position in the text."""
    any_year: bool = False
    """Whether no year is named. The most recent year counts most."""
    nearest: int | None = None
    """The closed end of a span that is open at one end. Days near it count most."""

    def fit(self, first: int, last: int) -> float:
        """How well a day or a span matches this one, from 0 to 1."""
        share = 1.0
        if self.any_year and (years := round((self.first - first) / _YEAR)):
            shift = round(years * _YEAR)
            first, last, share = first + shift, last + shift, _OTHER_YEAR
        if self.nearest is not None:
            distance = min(abs(self.nearest - first), abs(self.nearest - last))
            is_outside = first > self.last or last < self.first
            return 0.0 if is_outside else share * (0.5 + 0.5 * exp(-distance / 15))
        if first > self.last:
            # Events are recorded on the same day or a few days later.
            lag = 3 + (self.last - self.first) / 10
            return share * _NEXT_DAY * exp(-(first - self.last - 1) / lag)
        if last < self.first:
            return share * _DAY_BEFORE * exp(-(self.first - last - 1) / 2)
        common = min(last, self.last) - max(first, self.first) + 1
        return share * max(0.5, common / (last - first + 1))

    def meets(self, other: "DaySpan") -> bool:
        """Whether the spans have a day in common."""
        return self.first <= other.last and other.first <= self.last


class _Days(NamedTuple):
    """A span, before the words around it are considered."""

    first: int
    last: int
    any_year: bool
    start: int
    end: int


def spans(text: str, today: int) -> list[DaySpan]:
    """The spans that a text names, in order; none if there are too many."""
    words = set(_WORD.findall(text.lower()))
    if any(len(word) == 4 and word[:2] in ("19", "20") for word in words):
        words.add(date_patterns.A_YEAR)
    if date_patterns.DATE_WORDS.isdisjoint(words):
        return []
    matches: list[_Days] = []
    for needs, pattern, read in date_patterns.readers():
        for match in pattern.finditer(text) if not needs.isdisjoint(words) else ():
            is_known = any(
                match.start() < other.end and other.start < match.end() for other in matches
            )
            if not is_known and (days := read(match, today)) is not None:
                matches.append(_Days(*days, match.start(), match.end()))
    named = list(_with_words_around(text, sorted(matches, key=lambda match_days: match_days.start)))
    return named if len(named) <= MOST else []


def without(text: str, named: Sequence[DaySpan]) -> str:
    """The text without the words that name these spans."""
    for span in sorted(named, key=lambda day_span: day_span.place, reverse=True):
        start, end = span.place
        text = f"{text[:start]} {text[end:]}"
    return text


def before_day(day: int, place: tuple[int, int]) -> DaySpan:
    """The time before a day. The nearest days count most."""
    return DaySpan(day - _FAR, day - 1, place, nearest=day - 1)


def since_day(day: int, place: tuple[int, int]) -> DaySpan:
    """The time from a day on. The nearest days count most."""
    return DaySpan(day, day + _FAR, place, nearest=day)


def _with_words_around(text: str, dates: Sequence[_Days]) -> Iterator[DaySpan]:
    """The spans, adjusted by the words before them: `the week before`, `since`, `from … to`."""
    at = 0
    while at < len(dates):
        days = dates[at]
        before, own = text[max(0, days.start - 40) : days.start], text[days.start : days.end]
        following = dates[at + 1] if at + 1 < len(dates) else None
        begins = _FROM.search(before) or _OWN_FROM.match(own)
        at += 1
        if following and begins and _TO.fullmatch(text[days.end : following.start]):
            at += 1
            first = days.first if days.first <= following.last else days.first - round(_YEAR)
            yield DaySpan(first, following.last, (days.start, following.end), following.any_year)
        elif around := _AROUND.search(before):
            yield _relative_span(days, around)
        elif side := _OWN_SIDE.match(own) or _SIDE.search(before):
            start = days.start if side.string is own else days.start - len(side[0])
            yield _open(days, side[1].lower(), (start, days.end))
        else:
            yield DaySpan(days.first, days.last, (days.start, days.end), days.any_year)


def _relative_span(days: _Days, around: re.Match[str]) -> DaySpan:
    """`the week before 9 June`, `two weeks after May 3`, `the Friday before 15 July`."""
    unit, side = around["unit"].lower(), around["side"].lower()
    is_before = side in ("before", "prior to")
    count = date_patterns.count_of(around["count"] or "")
    if side == "of":
        first = days.first - date_patterns.weekday_of(days.first)
        last = first + 6
    elif unit in WEEKDAYS or unit == "weekend":
        weekday = WEEKDAYS.index("saturday" if unit == "weekend" else unit)
        back = 7 * ((count or 1) - 1) if is_before else -7
        first = date_patterns.last_weekday(days.first, weekday) - back
        last = first + (unit == "weekend")
    elif count:
        middle = days.first - count * UNITS[unit] if is_before else days.last + count * UNITS[unit]
        slack = 0 if unit == "day" else UNITS[unit] // 2
        first, last = middle - slack, middle + slack
    elif is_before:
        first, last = days.first - UNITS[unit], days.first - 1
    else:
        first, last = days.last + 1, days.last + UNITS[unit]
    return DaySpan(first, last, (days.start - len(around[0]), days.end), days.any_year)


def _open(days: _Days, side: str, place: tuple[int, int]) -> DaySpan:
    if side in ("after", "since"):
        return since_day(days.first if side == "since" else days.last + 1, place)
    return before_day(days.last + 1 if side == "until" else days.first, place)
