"""How long ago, or when: what `created:`, `updated:` and `--since` take.

Times are compared as text, which works because all of them are written in one form. So a day is
everything from its own text to that text with a `~` behind it, and a second is the same.
"""

from typing import Literal, NamedTuple

from ctx import clock
from ctx.errors import UsageError

Column = Literal["created_at", "updated_at"]
Comparison = Literal["=", ">", ">=", "<", "<="]

HINT = "Write an age, such as 30min, 24h, 7d, 2w, 3mo or 1y, or a date, such as 2024-01-31."

# The longer come first: the first that fits is the one that was meant.
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
    """A filter on one of a node's two times."""

    column: Column
    comparison: Comparison
    age_ms: int | None
    """Counted back from now; None where there is a date."""
    date: str
    """A day or a second, as far as the times of nodes are written."""

    def bounds(self, now_ms: int) -> tuple[str | None, str | None]:
        """From this text on, and before that text."""
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
    """The sign that a value begins with, and what follows it; no sign is `=`."""
    sign = next((sign for sign in _COMPARISONS if text.startswith(sign)), None)
    return sign or "=", text.removeprefix(sign or "")


def moment(text: str, now_ms: int) -> int:
    """The time that someone means by `24h` or by a date, in milliseconds."""
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
