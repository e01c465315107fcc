"""The days that a question names: `in June`, `on 8 May 2023`, `2023-05`, `October 13th`.

An answer about a day was mostly written on that day or soon after. Only explicit dates count: `last
week` depends on the time of the question, and the query language has filters for it.
"""

import re
from typing import NamedTuple

MOST = 8
"""A text with more days is a log, and does not ask for any of them."""

_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
).split("|")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s{{1,3}}(?P<{}>(?:19|20)\d\d))?"
_WRITTEN = re.compile(
    rf"\b(?:{_DAY.format('before')}\s{{1,3}}(?:of\s{{1,3}})?)?{_MONTH}\b"
    rf"(?:\s{{1,3}}{_DAY.format('behind')}(?!\d))?{_YEAR.format('year')}"
)
_NUMBERS = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b", re.ASCII)
# Words that are months only in a certain context.
_AMBIGUOUS = frozenset({"March", "May"})
_BEFORE_MONTHS = re.compile(
    r"\b(?:in|on|of|since|during|from|until|by|last|this|early|late|mid|and|to)[ -]\Z",
    re.IGNORECASE,
)


class NamedDay(NamedTuple):
    """A day or a whole month, in one year or in any."""

    month: int
    day: int | None = None
    year: int | None = None

    def fits(self, time: str) -> float:
        """How well a time (`2023-05-08T…`) matches: 1, or 0.5 if only the month does."""
        if int(time[5:7]) != self.month or self.year not in (None, int(time[:4])):
            return 0.0
        # Events of a day are often recorded on the next one.
        return 1.0 if self.day is None or 0 <= int(time[8:10]) - self.day <= 1 else 0.5


def named_days(text: str) -> list[NamedDay]:
    """The days that a text names, in order; none if there are too many."""
    found = [(match.start(), _numbers(match)) for match in _NUMBERS.finditer(text)]
    found += [(match.start(), _written(match)) for match in _WRITTEN.finditer(text)]
    days = list(dict.fromkeys(day for _, day in sorted(found, key=lambda each: each[0]) if day))
    return days if len(days) <= MOST else []


def _numbers(match: re.Match[str]) -> NamedDay | None:
    year, month, day = match.groups()
    return (
        NamedDay(int(month), int(day) if day else None, int(year))
        if 1 <= int(month) <= 12
        else None
    )


def _written(match: re.Match[str]) -> NamedDay | None:
    day, year = match["before"] or match["behind"], match["year"]
    before = match.string[max(0, match.start() - 12) : match.start()]
    if match["month"] in _AMBIGUOUS and not (day or year or _BEFORE_MONTHS.search(before)):
        return None
    number = _MONTHS.index(match["month"]) + 1
    return NamedDay(number, int(day) if day else None, int(year) if year else None)
