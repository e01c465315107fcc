"""Collects the findings of the readers, within fixed limits."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ctx.code.diagnostics.diagnostic_model import (
    Outcome,
    TestCounts,
    ToolDiagnostic,
    ToolReport,
    ToolSpan,
)

MOST_DIAGNOSTICS = 1_000
MOST_LINES = 10
"""The maximum for one message."""

_MOST_SPANS = 12
_LONGEST_MESSAGE = 2_000
_LONGEST_LABEL = 300
_LONGEST_NAME = 200
_LARGEST_NUMBER = 2**31
_WORD = re.compile(r"[\w.+-]+")


class Findings:
    def __init__(self, command: str) -> None:
        self.words = _WORD.findall(command[:_LONGEST_MESSAGE])
        """The words of the command: a hint if the output does not identify the tool."""
        self.problems: dict[str, None] = {}
        self.line = 0
        """The current line."""
        self._diagnostics: dict[ToolDiagnostic, None] = {}
        self._left_out = 0
        self._counts: dict[str, TestCounts] = {}
        self._verdicts: dict[str, Outcome] = {}
        self._last_verdict = self._last_error = -1

    def add(self, diagnostic: ToolDiagnostic, decides: bool = False) -> None:
        """Add a diagnostic. An error that decides about the outcome is recorded as a failure."""
        if decides and diagnostic.severity == "error":
            self.fails()
        whole = diagnostic._replace(
            message=shortened(diagnostic.message, _LONGEST_MESSAGE),
            code=shortened(diagnostic.code, _LONGEST_NAME),
            spans=tuple(_tidy(diagnostic.spans)),
            test=shortened(diagnostic.test, _LONGEST_NAME),
        )
        if whole in self._diagnostics:
            return
        if len(self._diagnostics) < MOST_DIAGNOSTICS:
            self._diagnostics[whole] = None
        else:
            self._left_out += 1

    def count(self, tool: str, counts: TestCounts) -> None:
        """Add to the number of tests that ran."""
        self._counts[tool] = self._counts.get(tool, TestCounts()) + counts

    def says(self, tool: str, outcome: Outcome) -> None:
        """Record the outcome that a tool reports; a later one replaces it."""
        self._verdicts[tool] = outcome
        self._last_verdict = self.line

    def says_of_part(self, tool: str, outcome: Outcome) -> None:
        """Record the outcome of a part: the whole has failed if one part has."""
        if self._verdicts.get(tool) != "failed":
            self._verdicts[tool] = outcome
        self._last_verdict = self.line

    def takes_back(self, tool: str) -> None:
        """Discard the outcome of a tool, because it does not hold for the whole."""
        self._verdicts.pop(tool, None)

    def fails(self) -> None:
        """Record a failure of a tool that reports no outcome.

        It counts unless a tool reports success later.
        """
        self._last_error = self.line

    def rename(self, tool: str, to: str) -> None:
        """Change the name of the tool, once it is identified."""
        self._diagnostics = {
            diagnostic._replace(tool=to) if diagnostic.tool == tool else diagnostic: None
            for diagnostic in self._diagnostics
        }

    @property
    def outcome(self) -> Outcome | None:
        if "failed" in self._verdicts.values() or self._last_error > self._last_verdict:
            return "failed"
        return "passed" if self._verdicts else None

    def report(self) -> ToolReport:
        diagnostics = tuple(self._diagnostics)
        if self._left_out:
            self.problems[f"{self._left_out:,} more diagnostics were left out."] = None
        counts = list(self._counts.values())
        tests = sum(counts[1:], counts[0]) if counts else None
        return ToolReport(
            self._loudest(diagnostics), diagnostics, tests, self.outcome, tuple(self.problems)
        )

    def _loudest(self, diagnostics: Sequence[ToolDiagnostic]) -> str:
        """The tool with the most to report: errors, then other diagnostics, then test results."""
        errors = Counter(
            diagnostic.tool for diagnostic in diagnostics if diagnostic.severity == "error"
        )
        every = Counter(diagnostic.tool for diagnostic in diagnostics)
        names = dict.fromkeys([*every, *self._counts, *self._verdicts])

        def weight(tool: str) -> tuple[int, int, bool, bool]:
            is_named = not set(tool.split()).isdisjoint(self.words)
            return errors[tool], every[tool], is_named, tool in self._counts

        return max(names, key=weight, default="")


class OutputReader:
    """Parses the output of a family of tools."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def read(self, lines: Sequence[str], at: int) -> int:
        """Read what begins at a line. Returns the line after it, or the same line if nothing was
        recognised."""
        raise NotImplementedError

    def close(self) -> None:
        """Called at the end of the output."""


def _tidy(spans: Iterable[ToolSpan]) -> Iterable[ToolSpan]:
    places: set[tuple[object, ...]] = set()
    for span in spans:
        tidy = span._replace(
            path=shortened(span.path, _LONGEST_MESSAGE).removeprefix("./").removeprefix("file://"),
            label=shortened(span.label, _LONGEST_LABEL),
        )
        place = tidy[:3]
        if place not in places and len(places) < _MOST_SPANS:
            places.add(place)
            yield tidy


def shortened(text: str, most: int) -> str:
    """A text to store: without lone surrogates, which JSON can contain, and not too long."""
    plain = text.strip().encode("utf-8", "replace").decode()
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"


def number(value: object) -> int | None:
    """A line or column number of a tool, if it is valid."""
    if isinstance(value, str):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_NUMBER:
        return value
    return None


def on_line(path: str, line: object, column: object = None) -> ToolSpan:
    """A place on one line, whose end is unknown."""
    shown = number(line)
    return ToolSpan(path, shown, number(column), shown)
