"""pytest and unittest: failed tests with place and reason, and the number of tests."""

import re
import textwrap
from collections.abc import Container, Iterator, Sequence

from ctx.code.diagnostics import stack_traces
from ctx.code.diagnostics.diagnostic_model import TestCounts, ToolDiagnostic, ToolSpan, own
from ctx.code.diagnostics.findings import MOST_LINES, Findings, OutputReader, on_line

_BANNER = re.compile(r"={2,} (.{1,300}) ={2,}")
_ENTRY = re.compile(r"_+ (.{1,1000}) _+")
_CAPTURED = re.compile(r"-{2,} (?:Captured|generated|live log) ?.{0,100} -{2,}")
_LOCATED = re.compile(r"(\S.{0,400}?):(\d{1,9}): ?(?:in (.{1,200})|([\w.]{1,100})(?:: .*)?)?")
_ERROR_LINE = re.compile(r"E {1,7}(.*)")
_GROUP = re.compile(r"[ |+-]{1,40}((?:Base)?ExceptionGroup: .*)")
_QUOTED_FILE = re.compile(r'[\s|+]{0,40}File "(.{1,400}?)", line (\d{1,9})')
_SUMMARY = re.compile(r"(FAILED|ERROR) (\S.{0,1500})")
_CUT_SUMMARY = re.compile(r"(FAILED|ERROR) ([^\s:]{1,400}\.py(?:::\S.{0,1000}| - .{1,1000})?)")
_COUNTED = re.compile(r"(\d{1,9}) ([a-z]+)")
_LAST = re.compile(r"(.{1,300}) in \d{1,9}(?:\.\d{1,9})?s(?: \([\d:, a-z]{1,40}\))?")
_NAMED = re.compile(r"ERROR (?:at (?:setup|teardown) of|collecting) (.*)")
_KIND = re.compile(r"([A-Z]\w{0,100})(?:: |$)")
_PROGRESS = "no tests ran"

_UNIT_ENTRY = re.compile(r"(?:ERROR|FAIL): (\S{1,300})(?: \((.{1,300})\))?.{0,300}")
_UNIT_RAN = re.compile(r"Ran (\d{1,9}) tests? in [\d.]{1,20}s")
_UNIT_END = re.compile(r"(OK|FAILED)(?: \((.{1,200})\))?")
_UNIT_COUNT = re.compile(r"([a-z ]{1,40})=(\d{1,9})")


class PytestReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._part = ""
        """The current section of pytest's report."""
        self._failed: list[ToolDiagnostic] = []
        self._summed: list[str] = []
        """The lines of the summary: the test and the reason."""

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        match line[:1]:
            case "=":
                return self._banner(lines, at)
            case "_" if self._part and (entry := _entry(line)):
                return self._entry(lines, at, entry)
            case "F" | "E" if self._part in ("summary", ""):
                # Many people only read the end of a long output.
                pattern = _SUMMARY if self._part else _CUT_SUMMARY
                if match := pattern.fullmatch(line):
                    self._summed.append(match[2])
                    return at + 1
            case "I" if line.startswith("INTERNALERROR>"):
                self._findings.says("pytest", "failed")
                return at + 1
        if line[:1].isdigit() or line.startswith(_PROGRESS):
            return at + self._ends(line)
        if self._part == "failures" and line[:1] not in ("", " "):
            return self._one_line(lines, at)
        return at

    def _banner(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        if line.strip("=") == "" and len(line) >= 70:
            return self._unit_entry(lines, at)
        banner = _BANNER.fullmatch(line)
        if banner is None:
            return at
        title = banner[1]
        if self._ends(title):
            return at + 1
        if title == "test session starts":
            self._close_run()
            self._part = "tests"
        elif title in ("FAILURES", "ERRORS"):
            self._part = "failures"
        elif title == "short test summary info":
            self._part = "summary"
        elif title in ("warnings summary", "PASSES", "slowest durations") or " coverage" in title:
            self._part = "other"
        return at + 1

    def _ends(self, text: str) -> bool:
        """Whether this is pytest's last line: `1 failed, 2 passed in 0.12s`."""
        last = _LAST.fullmatch(text)
        if last is None:
            return False
        counts = {match[2].rstrip("s"): int(match[1]) for match in _COUNTED.finditer(last[1])}
        if not counts and not last[1].startswith(_PROGRESS):
            return False
        if not counts.keys() <= _WORDS:
            return False
        passed = counts.get("passed", 0) + counts.get("xpassed", 0)
        skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
        failed, errors = counts.get("failed", 0), counts.get("error", 0)
        self._findings.count("pytest", TestCounts(passed, failed, skipped, errors))
        # If no test ran, pytest reports a failure.
        is_well = not failed and not errors and bool(passed + skipped)
        self._findings.says("pytest", "passed" if is_well else "failed")
        self._close_run()
        return True

    def _entry(self, lines: Sequence[str], at: int, title: str) -> int:
        """One failed test: its traceback in any of pytest's styles."""
        named = _NAMED.fullmatch(title)
        name = named[1] if named else title
        end = at + 1
        while end < len(lines) and not _is_boundary(lines[end]):
            end += 1
        spans: list[ToolSpan] = []
        text_lines: list[str] = []
        for line in _traceback_lines(lines, at + 1, end):
            if error := _ERROR_LINE.fullmatch(line):
                text_lines.append(error[1])
                if inner := _QUOTED_FILE.match(error[1]):
                    spans.append(on_line(inner[1], inner[2]))
            elif (frame := _LOCATED.fullmatch(line)) or (frame := _QUOTED_FILE.match(line)):
                spans.append(on_line(frame[1], frame[2]))
            elif line.startswith(stack_traces.CHAINED):
                # What follows is the cause of the failure.
                text_lines.clear()
            elif group := _GROUP.fullmatch(line):
                text_lines.append(group[1])
        if not text_lines:
            trace = next(
                (t for n in range(at + 1, end) if (t := stack_traces.python(lines, n))), None
            )
            text_lines = [trace.message] if trace else []
        if named and title.startswith("ERROR collecting") and not own(spans):
            spans = [ToolSpan(name)]
        self._failed.append(_failure(name, text_lines, spans))
        return end

    def _one_line(self, lines: Sequence[str], at: int) -> int:
        """Failures in one-line style, which have no names: the summary has them."""
        end, text_lines = at, []
        if error := _ERROR_LINE.fullmatch(lines[at]):
            text_lines.append(error[1])
            end += 1
            while end < len(lines) and lines[end].startswith(" "):
                text_lines.append(lines[end].strip())
                end += 1
        match = _LOCATED.fullmatch(lines[end]) if end < len(lines) else None
        if match is None or not (text_lines or match[4]):
            return at
        kind = lines[end].partition(f":{match[2]}: ")[2]
        self._failed.append(_failure("", text_lines or [kind], [on_line(match[1], match[2])]))
        return end + 1

    def _close_run(self) -> None:
        """Combine the detailed failures with the summary."""
        waiting: dict[str, list[ToolDiagnostic]] = {}
        nameless: dict[str, list[ToolDiagnostic]] = {}
        for failed in self._failed:
            first = failed.message.partition("\n")[0]
            (waiting if failed.test else nameless).setdefault(failed.test or first, []).append(
                failed
            )
        for line in self._summed:
            node_id, why = _split_summary_line(line, waiting)
            file = node_id.partition("::")[0]
            failures = waiting.get(_title(node_id)) or waiting.get(node_id) or nameless.get(why)
            if failures:
                self._findings.add(failures.pop(0)._replace(test=node_id))
            else:
                span = ToolSpan(file) if file.endswith(".py") else None
                spans = [span] if span else []
                self._findings.add(_failure(node_id, [why or "failed"], spans))
        for left in (*waiting.values(), *nameless.values()):
            for failed in left:
                self._findings.add(failed)
        self._failed, self._summed, self._part = [], [], ""

    def _unit_entry(self, lines: Sequence[str], at: int) -> int:
        """A failed test of unittest: a double line, its name, a line, and a traceback."""
        if at + 3 >= len(lines):
            return at
        entry = _UNIT_ENTRY.fullmatch(lines[at + 1])
        if entry is None:
            return at
        below = at + 2
        while below < len(lines) and below < at + 6 and not lines[below].startswith("-----"):
            below += 1
        trace = stack_traces.python(lines, below + 1)
        name = entry[2] if entry[2] and entry[2].endswith(entry[1]) else entry[1]
        if entry[2] and not entry[2].endswith(entry[1]):
            name = f"{entry[2]}.{entry[1]}"
        if trace is None:
            self._findings.add(ToolDiagnostic("unittest", "error", "failed", test=name))
            return at + 2
        self._findings.add(
            ToolDiagnostic("unittest", "error", trace.message, trace.kind, trace.spans, name)
        )
        return trace.after

    def close(self) -> None:
        self._close_run()


class UnittestEnd(OutputReader):
    """The summary of unittest, which follows a line: the number of tests, and the outcome."""

    def read(self, lines: Sequence[str], at: int) -> int:
        ran = _UNIT_RAN.fullmatch(lines[at]) if lines[at].startswith("Ran ") else None
        if ran is None or at + 2 >= len(lines):
            return at
        end = _UNIT_END.fullmatch(lines[at + 2])
        if end is None:
            return at
        counts = {match[1].strip(): int(match[2]) for match in _UNIT_COUNT.finditer(end[2] or "")}
        failed = counts.get("failures", 0) + counts.get("unexpected successes", 0)
        errors, skipped = counts.get("errors", 0), counts.get("skipped", 0)
        skipped += counts.get("expected failures", 0)
        passed = max(int(ran[1]) - failed - errors - skipped, 0)
        self._findings.count("unittest", TestCounts(passed, failed, skipped, errors))
        self._findings.says("unittest", "passed" if end[1] == "OK" else "failed")
        return at + 3


_WORDS = frozenset(
    "passed failed error skipped xfailed xpassed deselected warning rerun retried test subtest"
    " subtests".split()
)


def _entry(line: str) -> str:
    """The title of an entry; empty for the line between frames."""
    match = _ENTRY.fullmatch(line)
    return match[1] if match and match[1].strip("_ ") else ""


def _is_boundary(line: str) -> bool:
    first = line[:1]
    return (first == "_" and bool(_entry(line))) or (first == "=" and bool(_BANNER.fullmatch(line)))


def _traceback_lines(lines: Sequence[str], first: int, end: int) -> Iterator[str]:
    """The lines of an entry without what the test printed."""
    for at in range(first, end):
        if lines[at].startswith("--") and _CAPTURED.fullmatch(lines[at]):
            return
        yield lines[at]


def _failure(name: str, text_lines: Sequence[str], spans: list[ToolSpan]) -> ToolDiagnostic:
    kept = [line for line in text_lines if line.strip()][:MOST_LINES]
    lines = textwrap.dedent("\n".join(kept)).split("\n")
    if _QUOTED_FILE.match(lines[0]):
        # A syntax error prints the place and the source before the message.
        lines = lines[-1:]
    kind = _KIND.match(lines[0])
    message = "\n".join(lines) or "failed"
    places = tuple(own(spans)[::-1])
    return ToolDiagnostic("pytest", "error", message, kind[1] if kind else "", places, name)


def _split_summary_line(text: str, titles: Container[str]) -> tuple[str, str]:
    """Split a line of the summary into test and reason. Test parameters may look like either."""
    parts = text.split(" - ", 6)
    for count in range(1, len(parts)):
        node_id = " - ".join(parts[:count])
        if _title(node_id) in titles:
            return node_id, " - ".join(parts[count:])
    return parts[0], " - ".join(parts[1:])


def _title(node_id: str) -> str:
    """The title above the traceback of a test."""
    return node_id.partition("::")[2].replace("::", ".")
