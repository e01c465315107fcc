"""The ways to name a day or a span of time, as patterns with the days that they stand for.

Days are numbered from 1970. A reader gets a match and the day on which the text was written, and
returns the first day, the last day, and whether the year is only assumed.
"""

import re
from collections.abc import Callable
from datetime import date
from functools import cache

EPOCH = date(1970, 1, 1).toordinal()
UNITS = {"day": 1, "week": 7, "weekend": 7, "month": 30, "quarter": 91, "year": 365}
"""In days."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
A_YEAR = "2000"
"""Stands for any year among the words of a text."""

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_AMBIGUOUS = (3, 5)
"""March and May are also other words."""
_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
"""The first month of each."""
_NUMBERS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    "twelve",
)
_FEW = {"couple": 2, "couple of": 2, "few": 3, "several": 4}
_SLACK = {"day": 0, "week": 3, "weekend": 3, "month": 15, "quarter": 45, "year": 182}
"""The longer ago, the less exact: half a unit."""

_MONTH_WORDS = frozenset((*_MONTHS, *(name[:3] for name in _MONTHS), "sept"))
_SEASON_WORDS = frozenset(_SEASONS)
_WEEKDAY_WORDS = frozenset(WEEKDAYS)
_YEAR_WORDS = frozenset({A_YEAR})
_WHICH_WORDS = frozenset({"last", "past", "previous", "this", "next", "coming"})
_QUARTER_WORDS = frozenset({"q1", "q2", "q3", "q4"})
_DAY_WORDS = frozenset({"yesterday", "night", "today", "tonight", "tomorrow"})
DATE_WORDS = (
    _MONTH_WORDS | _SEASON_WORDS | _WEEKDAY_WORDS | _YEAR_WORDS | _WHICH_WORDS | _QUARTER_WORDS
) | (_DAY_WORDS | {"ago"})
"""A text that names a time contains at least one of these words. Most texts do not."""

Days = tuple[int, int, bool]
Reader = Callable[[re.Match[str], int], Days | None]


@cache
def readers() -> tuple[tuple[frozenset[str], re.Pattern[str], Reader], ...]:
    """The patterns, the most specific first. Each has a set of words of which the text must contain
    one."""
    month = rf"(?P<month>{'|'.join(sorted(_MONTH_WORDS, key=len, reverse=True))})\b\.?"
    day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    year = r"(?P<year>(?:19|20)\d\d)\b"
    maybe_year = rf"(?:,?\s{{1,3}}(?:of\s)?{year})?"
    few = sorted((*_NUMBERS, *_FEW, "an", "a"), key=len, reverse=True)
    count = rf"(?P<count>\d{{1,3}}|{'|'.join(few)})\s{{1,3}}"
    unit = rf"(?P<unit>{'|'.join(sorted(UNITS, key=len, reverse=True))})"
    weekday = rf"(?P<weekday>{'|'.join(WEEKDAYS)})\b"
    season = rf"(?P<season>{'|'.join(_SEASONS)})"
    which = rf"\b(?P<which>{'|'.join(sorted(_WHICH_WORDS))})\s{{1,3}}"
    part = r"\b(?P<part>early|mid|late)[ -]"
    before = r"\b(?:in|on|of|since|during|from|until|by|before|after|and|to)\s{1,3}(?:the\s)?"
    patterns: tuple[tuple[frozenset[str], str, Reader], ...] = (
        (_YEAR_WORDS, rf"\b{year}-(?P<number>\d\d)(?:-(?P<day>\d\d))?\b", _digits),
        (_MONTH_WORDS, rf"\b{day}\s{{1,3}}(?:of\s{{1,3}})?{month}{maybe_year}", _date),
        (_MONTH_WORDS, rf"\b{month}\s{{1,3}}{day}(?!\d){maybe_year}", _date),
        (_MONTH_WORDS, rf"(?:{part})?\b{month},?\s{{0,3}}(?:of\s)?{year}", _month),
        (_MONTH_WORDS, rf"{part}{month}", _month),
        (_SEASON_WORDS, rf"\b{season}(?:\sof)?,?\s{{1,3}}{year}", _season),
        (_SEASON_WORDS, rf"{which}{season}\b", _season),
        (_SEASON_WORDS, rf"\b(?:in|during|over|since)\s{{1,3}}(?:the\s)?{season}\b", _season),
        (_QUARTER_WORDS, rf"\bq(?P<quarter>[1-4])\b{maybe_year}", _quarter),
        (_DAY_WORDS, r"\bday before yesterday\b", lambda _, today: (today - 2, today - 2, False)),
        (
            _DAY_WORDS,
            r"\b(?:yesterday|last night)\b",
            lambda _, today: (today - 1, today - 1, False),
        ),
        (_DAY_WORDS, r"\b(?:today|tonight)\b", lambda _, today: (today, today, False)),
        (_DAY_WORDS, r"\btomorrow\b", lambda _, today: (today + 1, today + 1, False)),
        (
            _WHICH_WORDS,
            r"\bthis (?:morning|afternoon|evening)\b",
            lambda _, today: (today, today, False),
        ),
        (frozenset({"ago"}), rf"\b(?:a\s)?{count}{unit}s?\s{{1,3}}ago\b", _days_ago),
        (_WHICH_WORDS, rf"{which}{count}{unit}s?\b", _last_few),
        (_WHICH_WORDS, rf"{which}{month}", _named_month),
        (_WHICH_WORDS, rf"{which}{weekday}", _weekday),
        (_WHICH_WORDS, rf"{which}{unit}\b", _unit),
        (_WEEKDAY_WORDS, rf"\bon\s{{1,3}}{weekday}", _weekday),
        (_MONTH_WORDS, rf"{before}{month}", _month),
        (_YEAR_WORDS, rf"{before}{year}", _year),
    )
    return tuple((needs, re.compile(text, re.IGNORECASE), read) for needs, text, read in patterns)


def count_of(written: str) -> int | None:
    """The number that a word stands for: `2`, `two`, `a`, `couple`."""
    written = written.lower()
    if written.isascii() and written.isdecimal():
        return int(written)
    if written in _NUMBERS:
        return _NUMBERS.index(written) + 1
    return 1 if written in ("a", "an") else _FEW.get(written)


def weekday_of(day: int) -> int:
    """0 is Monday."""
    return (day + 3) % 7


def last_weekday(day: int, weekday: int) -> int:
    """The last such weekday before a day."""
    return day - ((weekday_of(day) - weekday - 1) % 7 + 1)


def _split(day: int) -> date:
    return date.fromordinal(day + EPOCH)


def _number(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - EPOCH
    except ValueError:
        return None


def _months(year: int, month: int, count: int = 1) -> Days:
    """A span of whole months. The first month may be over 12 or under 1."""
    start, end = divmod(12 * year + month - 1, 12), divmod(12 * year + month - 1 + count, 12)
    first, after = (
        date(years, months + 1, 1).toordinal() - EPOCH for years, months in (start, end)
    )
    return first, after - 1, False


def _month_number(match: re.Match[str]) -> int | None:
    """The month; None if it is another word here, such as `may` and `march`."""
    written = match["month"]
    number = next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(written[:3].lower()))
    is_word = written[0].islower() and (number in _AMBIGUOUS or len(written) == 3)
    return None if is_word else number


def _digits(match: re.Match[str], _today: int) -> Days | None:
    year, month = int(match["year"]), int(match["number"])
    if not 1 <= month <= 12:
        return None
    if match["day"] is None:
        return _months(year, month)
    day = _number(year, month, int(match["day"]))
    return None if day is None else (day, day, False)


def _date(match: re.Match[str], today: int) -> Days | None:
    month = _month_number(match)
    if month is None:
        return None
    if match["year"]:
        day = _number(int(match["year"]), month, int(match["day"]))
        return None if day is None else (day, day, False)
    # Without a year, it is the most recent such day. 29 February needs a leap year.
    years = (_split(today).year - back for back in range(9))
    days = (_number(year, month, int(match["day"])) for year in years)
    latest = next((day for day in days if day is not None and day <= today), None)
    return None if latest is None else (latest, latest, True)


def _month(match: re.Match[str], today: int) -> Days | None:
    month, year, part = _month_number(match), *map(match.groupdict().get, ("year", "part"))
    if month is None:
        return None
    now = _split(today)
    first, last, _ = _months(int(year) if year else now.year - (month > now.month), month)
    match (part or "").lower():
        case "early":
            last = first + 10
        case "mid":
            first, last = first + 9, first + 20
        case "late":
            first += 19
    return first, last, not year


def _named_month(match: re.Match[str], today: int) -> Days | None:
    month, now = _month_number(match), _split(today)
    return None if month is None else _months(now.year + _year_offset(match, month, 1, now), month)


def _year(match: re.Match[str], _today: int) -> Days:
    return _months(int(match["year"]), 1, 12)


def _year_offset(match: re.Match[str], month: int, count: int, now: date) -> int:
    """Whether `last June` or `next spring` is in this year, or how many years away."""
    match match["which"].lower():
        case "this":
            return 0
        case "next" | "coming":
            return int(month <= now.month)
        case _:
            # Last winter began two years ago if this winter is not over.
            return -int(month + count > now.month) - int(month + count > now.month + 12)


def _season(match: re.Match[str], today: int) -> Days:
    month, now, groups = _SEASONS[match["season"].lower()], _split(today), match.groupdict()
    if groups.get("year"):
        # The winter of a year may be its beginning or its end.
        year = int(match["year"])
        return _months(year, 1, 12) if month == 12 else _months(year, month, 3)
    if groups.get("which"):
        is_this_winter = month == 12 and now.month < 3 and match["which"].lower() == "this"
        return _months(now.year - is_this_winter + _year_offset(match, month, 3, now), month, 3)
    return _months(now.year - (month > now.month), month, 3)


def _quarter(match: re.Match[str], today: int) -> Days:
    month, now = 3 * int(match["quarter"]) - 2, _split(today)
    year = int(match["year"]) if match["year"] else now.year - (month > now.month)
    return *_months(year, month, 3)[:2], not match["year"]


def _days_ago(match: re.Match[str], today: int) -> Days:
    count, unit = count_of(match["count"]) or 1, match["unit"].lower()
    slack = _SLACK[unit] + (count * UNITS[unit] // 3 if match["count"].lower() in _FEW else 0)
    day = max(today - count * UNITS[unit], 0)
    return day - slack, min(today, day + slack), False


def _last_few(match: re.Match[str], today: int) -> Days:
    length = (count_of(match["count"]) or 1) * UNITS[match["unit"].lower()]
    if match["which"].lower() in ("next", "coming"):
        return today, today + length, False
    return today - length, today, False


def _weekday(match: re.Match[str], today: int) -> Days:
    day = last_weekday(today, WEEKDAYS.index(match["weekday"].lower()))
    is_ahead = (match.groupdict().get("which") or "").lower() in ("next", "coming", "this")
    return day + 7 * is_ahead, day + 7 * is_ahead, False


def _unit(match: re.Match[str], today: int) -> Days:
    step = {"this": 0, "next": 1, "coming": 1}.get(match["which"].lower(), -1)
    now = _split(today)
    monday = today - now.weekday() + 7 * step
    match match["unit"].lower():
        case "day":
            return today + step, today + step, False
        case "week":
            # People also mean the last seven days.
            return min(monday, today - 7) if step < 0 else monday, monday + 6, False
        case "weekend":
            return monday + 5, monday + 6, False
        case "month":
            return _months(now.year, now.month + step)
        case "quarter":
            return _months(now.year, (now.month - 1) // 3 * 3 + 1 + 3 * step, 3)
        case _:
            return _months(now.year + step, 1, 12)
