"""Ages and dates in filters."""

import pytest

from ctx import clock
from ctx.errors import UsageError
from ctx.memory.query import time_filters
from ctx.memory.query.time_filters import moment

NOW_MS = 1_768_903_200_999  # 2026-01-20T10:00:00Z and a bit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", "2026-01-20T10:00:00Z"),
        ("90s", "2026-01-20T09:58:30Z"),
        ("90m", "2026-01-20T08:30:00Z"),
        ("24h", "2026-01-19T10:00:00Z"),
        ("2w", "2026-01-06T10:00:00Z"),
        ("1mo", "2025-12-21T10:00:00Z"),
        ("1y", "2025-01-20T10:00:00Z"),
        ("2024-01-31", "2024-01-31T00:00:00Z"),
        ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("2024-01-31 10:00", "2024-01-31T10:00:00Z"),
        ("2024-01-31t10:00:00.5+02:00", "2024-01-31T08:00:00Z"),
    ],
)
def test_ages_and_dates_are_parsed(text: str, expected: str) -> None:
    assert clock.iso(moment(text, NOW_MS)) == expected


@pytest.mark.parametrize(
    "text", ["", "h", "24", "24 h", "-1h", "1.5h", "24H", "soon", "2024", "20240131", "2024-13-01"]
)
def test_invalid_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        moment(text, NOW_MS)
    assert caught.value.message == f"{text!r} is neither an age nor a date."
    assert caught.value.hint == time_filters.HINT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">24h", ("2026-01-19T10:00:00Z~", None)),
        (">=24h", ("2026-01-19T10:00:00Z", None)),
        ("24h", ("2026-01-19T10:00:00Z", None)),
        ("<24h", (None, "2026-01-19T10:00:00Z")),
        ("<=24h", (None, "2026-01-19T10:00:00Z~")),
        (">2024-01-31", ("2024-01-31", None)),
        ("<2024-01-31", (None, "2024-01-31")),
        ("<=2024-01-31", (None, "2024-01-31~")),
        ("2024-01-31", ("2024-01-31", "2024-01-31~")),
        (">2024-01-31T10:00:00Z", ("2024-01-31T10:00:00Z~", None)),
        ("2024-01-31T10:00:00Z", ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z~")),
        # Before there were four digits in a year, text and time would not sort alike.
        (">999999y", ("1000-01-01T00:00:00Z~", None)),
        ("<0001-01-01T00:00:00Z", (None, "1000-01-01T00:00:00Z")),
    ],
)
def test_the_bounds_of_a_comparison_are_exact(
    text: str, expected: tuple[str | None, str | None]
) -> None:
    assert time_filters.read("created_at", text).bounds(NOW_MS) == expected
