"""jest, vitest, mocha and node:test."""

import re
from collections.abc import Sequence

from ctx.code.diagnostics import stack_traces
from ctx.code.diagnostics.diagnostic_model import TestCounts, ToolDiagnostic, ToolSpan, is_foreign
from ctx.code.diagnostics.findings import MOST_LINES, Findings, OutputReader, on_line

_JEST = re.compile(r"  ● (.{1,300})")
_JEST_COUNTS = re.compile(r"Tests: +(\d.{1,200}), \d{1,9} total")
_JEST_SUITES = re.compile(r"Test Suites: +(\d.{1,200}), \d{1,9} total")
_VITEST = re.compile(r" (?:FAIL|❌|×) +(\S.{0,300}? > .{1,300})")
_VITEST_AT = re.compile(r" ❯ (?:.{1,200} )?([^\s:]{1,400}):(\d{1,9}):(\d{1,9})")
_VITEST_COUNTS = re.compile(r" {2,10}Tests  (\d.{1,200}) \(\d{1,9}\)")
_COUNTED = re.compile(r"(\d{1,9}) ([a-z]+)")
_SPEC = re.compile(r"( *)✖ (.{1,300}?) \(\d[\d.]{0,20}ms\)")
_TAP = re.compile(r"( *)not ok \d{1,9} - (.{1,300})")
_TAP_STACK = re.compile(
    r"\s+(?:.{1,300} \()?(?:file://)?([^\s()][^()]{0,400}?):(\d{1,9}):(\d{1,9})\)?"
)
_TAP_PLACE = re.compile(r"\s+location: '(.{1,400}):(\d{1,9}):(\d{1,9})'")
_TOTAL = re.compile(r"[ℹ#] (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})")
_MOCHA = re.compile(r"  (\d{1,9}) (passing|failing|pending)(?: \(.{1,20}\))?")
_MOST_OF_ENTRY = 200


class JavaScriptTestReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._totals: dict[str, int] = {}

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        match line[:1]:
            case "T" if line.startswith("Test"):
                return at + self._jest_ends(line)
            case "ℹ" | "#":
                return at + self._total(line)
            case "✖" | "n":
                return self._node(lines, at)
            case " ":
                return self._read_indented_line(lines, at)
        return at

    def _read_indented_line(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        word = line.lstrip()
        if word.startswith("● ") and (match := _JEST.fullmatch(line)):
            return self._jest(lines, at, match[1])
        if word.startswith(("✖ ", "not ok ")):
            return self._node(lines, at)
        if match := _VITEST.fullmatch(line):
            return self._vitest(lines, at, match[1])
        if word.startswith("Tests  ") and (match := _VITEST_COUNTS.fullmatch(line)):
            self._read_counts("vitest", match[1])
            return at + 1
        if word[:1].isdigit() and (match := _MOCHA.fullmatch(line)):
            self._mocha(match[2], int(match[1]))
            return at + 1
        return at

    def _jest(self, lines: Sequence[str], at: int, name: str) -> int:
        """What a test expected, up to the place of the failure."""
        message, spans, after = _until_place(lines, at + 1, "    ")
        if not message and not spans:
            return at
        self._findings.add(ToolDiagnostic("jest", "error", message, "", tuple(spans), name))
        return after

    def _jest_ends(self, line: str) -> bool:
        if match := _JEST_COUNTS.fullmatch(line):
            self._read_counts("jest", match[1])
        elif match := _JEST_SUITES.fullmatch(line):
            self._findings.says_of_part("jest", "failed" if "failed" in match[1] else "passed")
        return match is not None

    def _read_counts(self, tool: str, text: str) -> None:
        counts = {match[2]: int(match[1]) for match in _COUNTED.finditer(text)}
        skipped = counts.get("skipped", 0) + counts.get("todo", 0)
        failed = counts.get("failed", 0)
        self._findings.count(tool, TestCounts(counts.get("passed", 0), failed, skipped))
        self._findings.says_of_part(tool, "failed" if failed else "passed")

    def _vitest(self, lines: Sequence[str], at: int, name: str) -> int:
        text_lines: list[str] = []
        after = at + 1
        last = min(after + _MOST_OF_ENTRY, len(lines))
        while after < last and not _VITEST.fullmatch(lines[after]):
            if place := _VITEST_AT.fullmatch(lines[after]):
                self._add("vitest", text_lines, [on_line(*place.groups())], name)
                return after + 1
            if lines[after].strip():
                text_lines.append(lines[after].rstrip())
            elif text_lines and not lines[after - 1].strip():
                break
            after += 1
        self._add("vitest", text_lines, [], name)
        return after

    def _node(self, lines: Sequence[str], at: int) -> int:
        """A failed test of node, as a tree or as TAP."""
        line = lines[at]
        if tap := _TAP.fullmatch(line):
            return self._tap(lines, at, tap)
        spec = _SPEC.fullmatch(line)
        if spec is None or "node:test" in spec[2]:
            return at
        message, spans, after = _until_place(lines, at + 1, spec[1] + "  ")
        if not message and not spans:
            # Only suites report nothing.
            return at + 1
        self._add("node:test", message.split("\n"), spans, spec[2])
        return after

    def _tap(self, lines: Sequence[str], at: int, match: re.Match[str]) -> int:
        inside = match[1] + "  "
        text_lines: list[str] = []
        spans: list[ToolSpan] = []
        places: list[ToolSpan] = []
        field = ""
        after = at + 1
        last = min(after + _MOST_OF_ENTRY, len(lines))
        while after < last and (not lines[after] or lines[after].startswith(inside)):
            line = lines[after]
            after += 1
            if line == f"{inside}...":
                break
            if not line.startswith(f"{inside}  "):
                field, _, value = line.strip().partition(":")
                if field == "error" and value.strip() not in ("", "|-"):
                    text_lines.append(value.strip().strip("'"))
                if place := _TAP_PLACE.fullmatch(line):
                    places.append(on_line(*place.groups()))
            elif field == "error":
                text_lines.append(line.strip())
            elif field == "stack" and (frame := _TAP_STACK.fullmatch(line)):
                spans.append(on_line(*frame.groups()))
        mine = [span for span in spans if not is_foreign(span.path)]
        if "subtestsFailed" not in " ".join(lines[at : at + 8]):
            self._add("node:test", text_lines, mine or places, match[2])
        return after

    def _add(
        self, tool: str, text_lines: Sequence[str], spans: Sequence[ToolSpan], name: str
    ) -> None:
        kept = [line.strip() for line in text_lines if line.strip()][:MOST_LINES]
        message = "\n".join(kept) or "failed"
        self._findings.add(ToolDiagnostic(tool, "error", message, "", tuple(spans), name))

    def _total(self, line: str) -> bool:
        match = _TOTAL.fullmatch(line)
        if match is None:
            return False
        self._totals[match[1]] = int(match[2])
        if match[1] == "todo" and {"pass", "fail"} <= self._totals.keys():
            totals, self._totals = self._totals, {}
            failed = totals["fail"] + totals.get("cancelled", 0)
            skipped = totals.get("skipped", 0) + totals["todo"]
            self._findings.count("node:test", TestCounts(totals["pass"], failed, skipped))
            self._findings.says_of_part("node:test", "failed" if failed else "passed")
        return True

    def _mocha(self, word: str, count: int) -> None:
        if word == "passing":
            self._findings.count("mocha", TestCounts(count))
            self._findings.says_of_part("mocha", "passed")
        elif word == "failing":
            self._findings.count("mocha", TestCounts(0, count))
            self._findings.says_of_part("mocha", "failed")
        else:
            self._findings.count("mocha", TestCounts(0, 0, count))


def _until_place(lines: Sequence[str], at: int, indent: str) -> tuple[str, list[ToolSpan], int]:
    """The message in lines with this indentation, the frames at its end, and the line after."""
    text_lines: list[str] = []
    last = min(at + _MOST_OF_ENTRY, len(lines))
    while at < last and (not lines[at].strip() or lines[at].startswith(indent)):
        line = lines[at].strip()
        if line.startswith("at "):
            spans, after = stack_traces.js_frames(lines, at)
            return "\n".join(text_lines), spans, after
        if line and "|" not in line[:8] and len(text_lines) < MOST_LINES:
            text_lines.append(line)
        at += 1
    return "\n".join(text_lines), [], at
