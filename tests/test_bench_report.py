"""Limits in the tables of the benchmarks: a missed one is shown as missed."""

import pytest

from bench import report
from bench.timing import Figure


@pytest.mark.parametrize(
    ("ctx", "ratio", "limit", "is_missed"),
    [
        ("49.9 ms", "", "50 ms", False),
        ("50.1 ms", "", "50 ms", True),
        ("1.03 s", "", "900 ms", True),
        ("1,030 ms", "", "3 s", False),
        ("953", "", "≥ 1,000", True),
        ("80.0 % of 125", "", "≥ 75 %", False),
        ("2.0 s", "1.51 ×", "1.5 ×", True),
        ("26.6 ms", "+11.7 ms", "+25 ms", False),
        ("1 of 12", "", "0", True),
        ("200 of 200", "", "all", False),
        ("199 of 200", "", "all", True),
        ("7 days", "", "", False),
    ],
)
def test_a_limit_is_compared_with_what_the_table_shows(
    ctx: str, ratio: str, limit: str, *, is_missed: bool
) -> None:
    figure = Figure("a figure", ctx, ratio=ratio, limit=limit)
    assert report.is_missed(report.COLUMNS, figure) is is_missed
    [row] = report.marked_rows(report.Table("name", report.COLUMNS, [figure]))
    assert row[-1].endswith(", missed") is is_missed


def test_a_limit_in_another_unit_is_an_error() -> None:
    with pytest.raises(ValueError, match="another unit"):
        report.is_missed(report.COLUMNS, Figure("a size", "12 MB", limit="50 ms"))
