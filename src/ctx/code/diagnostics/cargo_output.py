"""rustc, clippy and cargo in text form: compiler diagnostics and failed tests."""

import re
from collections.abc import Sequence

from ctx.code.diagnostics import source_excerpts
from ctx.code.diagnostics.diagnostic_model import (
    SEVERITIES,
    Outcome,
    TestCounts,
    ToolDiagnostic,
    ToolSpan,
    is_foreign,
)
from ctx.code.diagnostics.findings import MOST_LINES, Findings, OutputReader, on_line

TESTS = "cargo test"

_HEAD = re.compile(r"(error|warning)(?:\[([\w:-]{1,60})\])?: (.+)")
_LINT = re.compile(r"`#\[(?:warn|deny|forbid)\(([\w:]{1,80})\)\]`|`-[DWF] ([\w:-]{1,80})` implied")
_CARGO = re.compile(
    r" {3,11}(?:Compiling|Checking|Building|Finished|Running|Doc-tests|Fresh|Updating|Blocking) "
)
_FAILED = re.compile(
    r"error: (?:could not compile |aborting due to |(?:doc)?test failed, |\d+ targets? failed"
    r"|build failed|process didn't exit successfully)"
)
_COUNTED = re.compile(
    r"warning: (?:.* generated \d+ warning|\d+ warnings? emitted|build failed, waiting )"
)
_RESULT = re.compile(
    r"test result: (ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored"
)
_SECTION = re.compile(r"---- (.{1,300}) stdout ----")
_TEST = re.compile(r"test (.{1,300}) \.\.\. FAILED")
_PANIC = re.compile(r"\s{0,8}thread '([^']{1,300})' (?:\(\d+\) )?panicked at (.{1,1000})")
_AT = re.compile(r"(.{1,400}?):(\d{1,9}):(\d{1,9}):?")
_AT_OLD = re.compile(r"'(.*)', (.{1,400}?):(\d{1,9}):(\d{1,9})")
_DOC_TEST = re.compile(r"(.{1,300}) - .{0,300}\(line (\d{1,9})\)")


class CargoReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._is_cargo = not {"cargo", "rustc", "clippy"}.isdisjoint(findings.words)
        self._failed: dict[str, None] = {}
        """Failed tests without details so far."""
        self._reported: set[str] = set()

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        match line[:1]:
            case "e" | "w":
                return self._heading(lines, at)
            case "t":
                return self._test(lines, at)
            case "-":
                return self._section(lines, at)
            case " " if _CARGO.match(line):
                self._progress(line.strip())
                return at + 1
            case " ":
                return self._panic(lines, at)
        return at

    def _heading(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        head = _HEAD.fullmatch(line)
        if head is None:
            return at
        if _FAILED.match(line):
            self._findings.says_of_part("cargo" if self._is_cargo else "rustc", "failed")
            return at + 1
        if _COUNTED.match(line):
            return at + 1
        if arrow := source_excerpts.begins(lines, at):
            drawn, after = source_excerpts.read_excerpt(lines, arrow)
            message = "\n".join([head[3], *(line.strip() for line in lines[at + 1 : arrow])])
            code = head[2] or _lint(drawn.asides)
            self._add_diagnostic(head[1], code, message, drawn.spans)
            return after
        if not self._is_cargo:
            return at
        self._add_diagnostic(head[1], head[2] or "", head[3], ())
        return at + 1

    def _add_diagnostic(
        self, level: str, code: str, message: str, spans: tuple[ToolSpan, ...]
    ) -> None:
        tool = "clippy" if code.startswith("clippy::") else "rustc" if spans else "cargo"
        diagnostic = ToolDiagnostic(tool, SEVERITIES[level], message, code, spans)
        self._findings.add(diagnostic, decides=True)

    def _progress(self, line: str) -> None:
        self._is_cargo = True
        if line.startswith("Finished "):
            self._findings.says_of_part("cargo", "passed")
        elif line.startswith("Running `"):
            # From here on, the output is that of a program.
            self._findings.takes_back("cargo")

    def _test(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        if failed := _TEST.fullmatch(line):
            self._failed[failed[1]] = None
            return at + 1
        if result := _RESULT.match(line):
            counts = TestCounts(int(result[2]), int(result[3]), int(result[4]))
            outcome: Outcome = "passed" if result[1] == "ok" else "failed"
            self._findings.count(TESTS, counts)
            self._findings.says_of_part(TESTS, outcome)
            self._report_failed_tests()
            return at + 1
        return self._panic(lines, at)

    def _section(self, lines: Sequence[str], at: int) -> int:
        """The output of a failed test: a panic, or the error it returned."""
        section = _SECTION.fullmatch(lines[at])
        if section is None:
            return at
        name = section[1]
        end = at + 1
        while end < len(lines) and not _ends_section(lines[end]):
            end += 1
        inside = [below for below in range(at + 1, end) if _PANIC.match(lines[below])]
        if inside:
            message, spans, _ = panic(lines, inside[0])
        else:
            text_lines = [line for line in lines[at + 1 : end] if line.strip()]
            message, spans = "\n".join(text_lines[:MOST_LINES]), ()
        if doc := _DOC_TEST.fullmatch(name):
            # A panic there counts lines from the beginning of the example.
            spans = (on_line(doc[1], doc[2]),)
        self._reported.add(name)
        self._findings.add(ToolDiagnostic(TESTS, "error", message or "failed", "", spans, name))
        return end

    def _panic(self, lines: Sequence[str], at: int) -> int:
        match = _PANIC.match(lines[at])
        if match is None:
            return at
        message, spans, after = panic(lines, at)
        name = match[1]
        if name in self._failed or "::" in name:
            self._reported.add(name)
            self._findings.add(ToolDiagnostic(TESTS, "error", message, "", spans, name))
        else:
            diagnostic = ToolDiagnostic("rust", "error", message, "panic", spans)
            self._findings.add(diagnostic, decides=name == "main")
        return after

    def _report_failed_tests(self) -> None:
        for name in self._failed:
            if name not in self._reported:
                self._findings.add(ToolDiagnostic(TESTS, "error", "failed", test=name))
        self._failed.clear()

    def close(self) -> None:
        self._report_failed_tests()


def panic(lines: Sequence[str], at: int) -> tuple[str, tuple[ToolSpan, ...], int]:
    """The message and the place of a panic, and the line after it."""
    match = _PANIC.match(lines[at])
    assert match is not None
    after = at + 1
    if old := _AT_OLD.fullmatch(match[2]):
        return old[1], _place(old[2], old[3], old[4]), after
    text_lines: list[str] = []
    while after < len(lines) and (line := lines[after]).strip():
        if line.startswith(("note: ", "stack backtrace:")):
            break
        text_lines.append(line)
        after += 1
    where = _AT.fullmatch(match[2])
    spans = _place(where[1], where[2], where[3]) if where else ()
    return "\n".join(text_lines[:MOST_LINES]), spans, after


def _place(path: str, line: str, column: str) -> tuple[ToolSpan, ...]:
    if is_foreign(path):
        return ()
    return (on_line(path, line, column),)


def _lint(asides: Sequence[str]) -> str:
    """The name of a lint, which rustc prints in a note."""
    for aside in asides:
        if match := _LINT.search(aside):
            return match[1] or match[2].replace("-", "_")
    return ""


def _ends_section(line: str) -> bool:
    return (
        line == "failures:"
        or line.startswith(("test result: ", "---- "))
        or bool(_CARGO.match(line))
    )
