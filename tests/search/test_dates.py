"""The days that a question names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.search.dates import Day, named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did she go camping in June?", [Day(6)]),
        ("on 8 May 2023", [Day(5, 8, 2023)]),
        ("October 13, 2023 and October 14th", [Day(10, 13, 2023), Day(10, 14)]),
        ("the 3rd of July", [Day(7, 3)]),
        ("from May to July 2024", [Day(5), Day(7, None, 2024)]),
        ("2023-05-08, or all of 2024-12", [Day(5, 8, 2023), Day(12, None, 2024)]),
        ("May I march on? March on! May it be", []),
        ("december was no name, 2024-13 is no month, 12 is no year", []),
        (" ".join(f"{day} June" for day in range(1, 20)), []),
        ("", []),
    ],
)
def test_days(text: str, expected: list[Day]) -> None:
    assert named(text) == expected


def test_what_fits() -> None:
    told = "2023-05-08T10:00:00Z"
    assert Day(5).fits(told) == Day(5, 8).fits(told) == Day(5, 7, 2023).fits(told) == 1
    assert Day(5, 20).fits(told) == 0.5
    assert Day(6).fits(told) == Day(5, 8, 2022).fits(told) == 0


@given(st.text(alphabet="May June12,of the-0\n", max_size=200))
def test_any_text(text: str) -> None:
    assert all(1 <= day.month <= 12 for day in named(text))
