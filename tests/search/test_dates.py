"""The days that a question names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.search.dates import NamedDay, named_days


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did she go camping in June?", [NamedDay(6)]),
        ("on 8 May 2023", [NamedDay(5, 8, 2023)]),
        ("October 13, 2023 and October 14th", [NamedDay(10, 13, 2023), NamedDay(10, 14)]),
        ("the 3rd of July", [NamedDay(7, 3)]),
        ("from May to July 2024", [NamedDay(5), NamedDay(7, None, 2024)]),
        ("2023-05-08, or all of 2024-12", [NamedDay(5, 8, 2023), NamedDay(12, None, 2024)]),
        ("May I march on? March on! May it be", []),
        ("december was no name, 2024-13 is no month, 12 is no year", []),
        (" ".join(f"{day} June" for day in range(1, 20)), []),
        ("", []),
    ],
)
def test_days(text: str, expected: list[NamedDay]) -> None:
    assert named_days(text) == expected


def test_what_fits() -> None:
    told = "2023-05-08T10:00:00Z"
    assert (
        NamedDay(5).fits(told) == NamedDay(5, 8).fits(told) == NamedDay(5, 7, 2023).fits(told) == 1
    )
    assert NamedDay(5, 20).fits(told) == 0.5
    assert NamedDay(6).fits(told) == NamedDay(5, 8, 2022).fits(told) == 0


@given(st.text(alphabet="May June12,of the-0\n", max_size=200))
def test_any_text(text: str) -> None:
    assert all(1 <= day.month <= 12 for day in named_days(text))
