"""Diagnostics that are read from the output of tools.

The outputs in `tests/golden/diagnostics/` are those of the real tools, run on small sources with
mistakes in them; only paths and process numbers were normalised. Beside each is the complete parsed
report. `CTX_TEST_RENEW=1 pytest tests/code/test_diagnostics.py` renews the reports.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.code.diagnostics.diagnostic_model import ToolDiagnostic, ToolReport
from ctx.code.diagnostics.findings import MOST_DIAGNOSTICS
from ctx.code.diagnostics.tool_output import read
from tests import effort

GOLDEN = Path(__file__).parent.parent / "golden" / "diagnostics"
OUTPUTS = sorted(GOLDEN.glob("*.txt"))
RENEW = os.environ.get("CTX_TEST_RENEW") == "1"


def plain(report: ToolReport) -> dict[str, Any]:
    """A report as JSON, without empty fields."""
    return {
        "tool": report.tool,
        "outcome": report.outcome,
        "tests": report.tests._asdict() if report.tests else None,
        "problems": list(report.problems),
        "diagnostics": [
            {
                name: [_span(span._asdict()) for span in value] if name == "spans" else value
                for name, value in each._asdict().items()
                if value
            }
            for each in report.diagnostics
        ],
    }


def _span(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", None)}


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.stem)
def test_the_output_of_a_tool_gives_the_expected_report(path: Path) -> None:
    found = plain(read(path.read_text()))
    expected = path.with_suffix(".json")
    if RENEW:
        expected.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(expected.read_text())


def test_failed_tests_are_read_from_the_tail_of_pytest() -> None:
    """`make test | tail`: the heading of the summary may be gone."""
    lines = [
        "FAILED tests/test_a.py::test_f[a b] - ZeroDivisionError: division by zero",
        "FAILED tests/test_a.py::test_g - assert 2 == 1",
        "========== 2 failed, 41 passed in 2.31s ==========",
        "make: *** [Makefile:2: test] Error 1",
    ]
    found = read(lines, "make test 2>&1 | tail -4")
    told = [(each.test, each.code, each.message.partition("\n")[0]) for each in found.diagnostics]
    division = "ZeroDivisionError: division by zero"
    assert told == [
        ("tests/test_a.py::test_f[a b]", "ZeroDivisionError", division),
        ("tests/test_a.py::test_g", "", "assert 2 == 1"),
    ]
    assert found.outcome == "failed"


def test_lines_and_text_give_the_same_report() -> None:
    for path in OUTPUTS:
        text = path.read_text()
        assert read(text.split("\n")) == read(text) == read(text.replace("\n", "\r\n"))
    joined = "\n".join((GOLDEN / f"{name}.txt").read_text() for name in ("mypy-text", "tsc-plain"))
    assert (read(joined).tool, len(read(joined).diagnostics)) == ("tsc", 15)


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("a.c:1:2: error: x\n", "", ("gcc", "failed")),
        ("a.c:1:2: error: x\n", "clang -c a.c", ("clang", "failed")),
        ("a.c:1:2: warning: x [-Wall]\n", "gcc a.c", ("gcc", None)),
        ("boot.asm:3: error: x\n", "nasm boot.asm", ("nasm", "failed")),
        ("boot.asm:3: error: x\n", "", ("unknown", "failed")),
        ("main.go:4:2: package x is not in std\n", "go build", ("go", "failed")),
        ("main.go:4:2: package x is not in std\n", "grep -n package", ("", None)),
        ("a.py:1:1: E501 too long\n", "flake8", ("flake8", "failed")),
        ("Main.cs(3,5): error CS1002: ; expected\n", "dotnet build", ("csc", "failed")),
        ("/a/x.py:3:5 - error: no (reportX)\n", "pyright", ("tsc", "failed")),
        ("  /a/x.py:3:5 - error: no (reportX)\n", "pyright", ("pyright", "failed")),
        ("error: no matching package named `x` found\n", "cargo build", ("cargo", "failed")),
        ("error: pathspec 'x' did not match\n", "git checkout x", ("", None)),
        ("12:30:45: error: not a place\n", "", ("", None)),
        ("no tests ran in 0.01s\n", "pytest", ("pytest", "failed")),
        ("", "", ("", None)),
    ],
)
def test_the_tool_and_the_outcome_are_recognised(
    text: str, command: str, expected: tuple[str, str | None]
) -> None:
    report = read(text, command)
    assert (report.tool, report.outcome) == expected


def test_the_last_result_decides_the_outcome() -> None:
    error, well = "a.c:1:2: error: x\n", "===== 3 passed in 0.10s =====\n"
    # A test may print what a compiler would.
    assert read(error + well).outcome == "passed"
    assert read(well + error).outcome == "failed"
    failed = "===== 1 failed, 2 passed in 0.10s =====\n"
    assert read(failed + well).outcome == "passed"
    assert read(failed + "All checks passed!\n").outcome == "failed"
    assert read(well + "make: *** [Makefile:3: test] Error 2\n").outcome == "failed"
    assert read(well + "make: [Makefile:3: test] Error 2 (ignored)\n").outcome == "passed"
    runs = "    Finished `dev` profile in 0.1s\n     Running `target/debug/app`\n"
    assert read(runs).outcome is None


def test_a_group_of_exceptions_is_read() -> None:
    text = """\
=== FAILURES ===
___ test_all ___
  + Exception Group Traceback (most recent call last):
  |   File "/home/me/shop/test_shop.py", line 8, in test_all
  |     raise ExceptionGroup("many", [ValueError("one")])
  | ExceptionGroup: many (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: one
    +------------------------------------
=== short test summary info ===
FAILED test_shop.py::test_all - ExceptionGroup: many (1 sub-exception)
=== 1 failed in 0.10s ===
"""
    [found] = read(text).diagnostics
    told = "ExceptionGroup: many (1 sub-exception)"
    assert (found.message, found.code) == (told, "ExceptionGroup")
    assert found.spans[0].place == "/home/me/shop/test_shop.py:8"
    assert found.test == "test_shop.py::test_all"
    # Older Rust compilers print the message of a panic on the same line.
    [panic] = read("thread 'main' panicked at 'no shelf', src/main.rs:3:5\n").diagnostics
    assert (panic.message, panic.spans[0].place) == ("no shelf", "src/main.rs:3")


def test_a_truncated_json_report_is_read() -> None:
    for name in ("cargo-json", "eslint-json", "ruff-json", "go-test-json", "mypy-json"):
        text = (GOLDEN / f"{name}.txt").read_text()
        whole = read(text).diagnostics
        some = read(text[: len(text) * 3 // 4]).diagnostics
        assert some
        assert set(some) < set(whole) or name == "go-test-json"


def test_lone_surrogates_are_replaced() -> None:
    value = {"file": "a.py", "line": 1, "column": 0, "severity": "error", "message": "\ud800"}
    [found] = read(json.dumps(value)).diagnostics
    assert found.message == "?"
    assert read('{"file": "a", "line": -1, "severity": [], "message": {}}').diagnostics


def test_diagnostics_above_the_limit_are_counted() -> None:
    lines = [f"a.c:{number}:1: error: {number}" for number in range(1, MOST_DIAGNOSTICS + 11)]
    report = read(lines)
    assert len(report.diagnostics) == MOST_DIAGNOSTICS
    assert report.problems == ("10 more diagnostics were left out.",)
    [cut] = read("a.c:1:1: error: " + "x" * 100_000).diagnostics
    assert len(cut.message) <= 2_000
    assert read("\n" * 100_001).problems == ("2 lines in the middle were not looked at.",)


# Fuzzing: lines of all the outputs, whole and in pieces, in any order.

POOL = sorted(
    {line for path in OUTPUTS for line in path.read_text().split("\n") if len(line) < 400}
)


def check(report: ToolReport) -> None:
    assert len(report.diagnostics) <= MOST_DIAGNOSTICS
    json.dumps(plain(report), ensure_ascii=False).encode()
    for each in report.diagnostics:
        assert isinstance(each, ToolDiagnostic)
        assert each.tool
        assert len(each.spans) <= 12
        for span in each.spans:
            assert "\n" not in span.path
            assert (span.start_line or 0) >= 0


@settings(deadline=None, max_examples=effort.times(100))
@given(st.lists(st.sampled_from(POOL) | st.text(max_size=60), max_size=30), st.text(max_size=40))
def test_mixed_lines_give_a_valid_report(lines: list[str], command: str) -> None:
    check(read(lines))
    check(read("\n".join(lines), command))


@pytest.mark.slow
def test_repeated_lines_take_linear_time() -> None:
    """With quadratic time, this would not end."""
    for line in (
        *("{", "  {", "[{" + '"a":[' * 300, '{"reason":' * 300, "error: x", " --> x:1:1"),
        *("  Traceback (most recent call last):", '  File "x", line 1', "a.c:1:2: error: [-W" * 80),
        *("_ " * 900, "=" * 80, "--- FAIL: a/b", "In file included from a.c:1:", "(" * 1_900),
        *("\x1b[" + "0" * 1_900, "\x1b]" * 900, "    at " + " (" * 900, ":1" * 900),
        *("✖ " + "(" * 900, "a.c:1:2: error: " + " [-W" * 390),
    ):
        check(read(f"{line}\n" * (50_000 // (len(line) + 1))))
    check(read("x" * 10_000_000))
