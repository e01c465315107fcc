"""Read the output of tools into one report."""

import re
from collections.abc import Sequence

from ctx.code.diagnostics import (
    cargo_output,
    go_test,
    grouped_by_file,
    javascript_tests,
    json_reports,
    path_line_message,
    python_tests,
    stack_traces,
)
from ctx.code.diagnostics.diagnostic_model import ToolReport
from ctx.code.diagnostics.findings import Findings, OutputReader

_MOST_LINES = 100_000
_LONGEST_LINE = 2_000
_LONGEST_JSON = 1024 * 1024
# Colours and cursor movements.
_STEERING = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
    r"|[\x00-\x08\x0b-\x1f]"
)


def read(output: str | Sequence[str], command: str = "") -> ToolReport:
    """The report of an output, given as text or as lines. It never fails.

    `command` is what was run, such as `cargo test`. It is used only if the output does not identify
    the tool.
    """
    findings = Findings(command)
    lines = _plain_lines(output, findings)
    readers: tuple[OutputReader, ...] = (
        json_reports.JsonReader(findings),
        cargo_output.CargoReader(findings),
        python_tests.PytestReader(findings),
        python_tests.UnittestEnd(findings),
        go_test.GoTestReader(findings),
        grouped_by_file.GroupedReader(findings),
        path_line_message.TypeScriptReader(findings),
        javascript_tests.JavaScriptTestReader(findings),
        path_line_message.PathLineReader(findings),
        stack_traces.TraceReader(findings),
    )
    at = 0
    while at < len(lines):
        findings.line = at
        at = _read_one(readers, lines, at) if lines[at] else at + 1
    for reader in readers:
        reader.close()
    return findings.report()


def _read_one(readers: Sequence[OutputReader], lines: Sequence[str], at: int) -> int:
    for reader in readers:
        after = reader.read(lines, at)
        if after > at:
            return after
    return at + 1


def _plain_lines(output: str | Sequence[str], findings: Findings) -> list[str]:
    """The lines without control sequences, limited in length and number."""
    lines = output.split("\n") if isinstance(output, str) else output
    if len(lines) > _MOST_LINES:
        skipped = len(lines) - _MOST_LINES
        findings.problems[f"{skipped:,} lines in the middle were not looked at."] = None
        half = _MOST_LINES // 2
        lines = [*lines[:half], *lines[-half:]]
    plain = [
        _cut_line(_STEERING.sub("", line) if "\x1b" in line else line).rstrip() for line in lines
    ]
    while plain and not plain[-1]:
        plain.pop()
    return plain


def _cut_line(line: str) -> str:
    return line[: _LONGEST_JSON if line.startswith(("{", "[{")) else _LONGEST_LINE]
