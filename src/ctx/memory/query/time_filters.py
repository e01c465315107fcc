"""Ages and dates: the values of `created:`, `updated:` and `--since`.

Times are compared as text, which works because all of them have the same format. A day is the range
from its own text to that text plus `~`, and so is a second.
"""

from typing import Literal, NamedTuple

from ctx import clock
from ctx.errors import UsageError

Column = Literal["created_at", "updated_at"]
Comparison = Literal["=", ">", ">=", "<", "<="]

HINT = "Write an age, such as 30min, 24h, 7d, 2w, 3mo or 1y, or a date, such as 2024-01-31."

# Longer ones first: the first match wins.
_COMPARISONS: tuple[Comparison, ...] = (">=", "<=", ">", "<", "=")
_SECOND = 1000
_DAY = 86400 * _SECOND
_UNITS = {
    "s": _SECOND,
    "m": 60 * _SECOND,
    "min": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "d": _DAY,
    "w": 7 * _DAY,
    "mo": 30 * _DAY,
    "y": 365 * _DAY,
}
_MOST_DIGITS = 9


class TimeFilter(NamedTuple):
    """A filter on `created_at` or `updated_at`."""

    column: Column
    comparison: Comparison
    age_ms: int | None
    """The age in milliseconds; None for a date."""
    date: str
    """A day or a second, in the format of node times."""

    def bounds(self, now_ms: int) -> tuple[str | None, str | None]:
        """The inclusive lower bound and the exclusive upper bound, as text."""
        start = clock.iso(now_ms - self.age_ms) if self.age_ms is not None else self.date
        end = start + "~"
        match self.comparison:
            case "<":
                return None, start
            case "<=":
                return None, end
            case ">" if "T" in start:
                return end, None
            case "=" if self.age_ms is None:
                return start, end
            case _:
                return start, None


def read(column: Column, text: str) -> TimeFilter:
    sign, value = comparison(text)
    age_ms = _age_ms(value)
    return TimeFilter(column, sign, age_ms, "" if age_ms is not None else _date(value))


def comparison(text: str) -> tuple[Comparison, str]:
    """The comparison that a value starts with, and the rest; the default is `=`."""
    sign = next((sign for sign in _COMPARISONS if text.startswith(sign)), None)
    return sign or "=", text.removeprefix(sign or "")


def moment(text: str, now_ms: int) -> int:
    """The time that `24h` or a date stands for, in milliseconds."""
    age_ms = _age_ms(text)
    return now_ms - age_ms if age_ms is not None else clock.parse_iso(_date(text)) or 0


def _age_ms(text: str) -> int | None:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _UNITS.get(text[len(digits) :])
    if unit is None or len(digits) > _MOST_DIGITS or not digits.isascii() or not digits.isdigit():
        return None
    return int(digits) * unit


def _date(text: str) -> str:
    ms = clock.parse_iso(text) if text[:4].isdigit() and text[4:5] == "-" else None
    if ms is None:
        raise UsageError(f"{text[:80]!r} is neither an age nor a date.", hint=HINT)
    return clock.iso(ms)[:10] if len(text) == 10 else clock.iso(ms)
