"""go build, go vet and go test."""

import re
from collections.abc import Sequence

from ctx.code.diagnostics import stack_traces
from ctx.code.diagnostics.diagnostic_model import TestCounts, ToolDiagnostic
from ctx.code.diagnostics.findings import MOST_LINES, Findings, OutputReader, on_line

TESTS = "go test"

_PACKAGE = re.compile(r"# (\S{1,300})(?: \[.{1,300}\])?")
_COMPILED = re.compile(r"(?:vet: )?([^\s:][^:]{0,400}\.go):(\d{1,9})(?::(\d{1,9}))?: (.+)")
_RUNNING = re.compile(r"=== (?:RUN|CONT|NAME) +(\S.{0,300})")
_ENDED = re.compile(r"\s*--- (PASS|FAIL|SKIP|BENCH): (\S{1,300})(?: \(.{1,20}\))?")
_LOGGED = re.compile(r"( {4,80})(\S{1,200}\.go):(\d{1,9}): ?(.*)")
_RESULT = re.compile(r"(ok  |FAIL|---)\t(\S{1,300})(?:\t(.*)| (\[.{1,60}\]))?")
_MOST_SPANS = 6


class GoTestReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._compiler = "go vet" if "vet" in findings.words else "go"
        self._is_go = "go" in findings.words
        self._package = ""
        """The package whose errors are listed, if any."""
        self._is_verbose = False
        self._counts = TestCounts()
        self._test = ""
        self._failed: dict[str, None] = {}
        self._logs: dict[str, list[tuple[str, str, list[str]]]] = {}
        self._panics: list[ToolDiagnostic] = []

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        match line[:1]:
            case "#" if match := _PACKAGE.fullmatch(line):
                self._package = match[1]
                return at + 1
            case "=" if match := _RUNNING.fullmatch(line):
                self._test = match[1].strip()
                self._is_verbose = True
                return at + 1
            case "-" | " " if "--- " in line and (match := _ENDED.fullmatch(line)):
                self._end_test(match[1], match[2])
                return at + 1
            case " " if self._test and (match := _LOGGED.fullmatch(line)):
                return self._read_log_message(lines, at, match)
            case "o" | "F" | "P":
                return at + self._result(line)
            case "p" | "f" if self._test and (trace := stack_traces.go(lines, at)):
                self._panics.append(
                    ToolDiagnostic(TESTS, "error", trace.message, "panic", trace.spans, self._test)
                )
                return trace.after
        return self._read_compiler_line(line, at)

    def _read_compiler_line(self, line: str, at: int) -> int:
        match = _COMPILED.fullmatch(line) if ".go:" in line else None
        if match is None:
            self._package = ""
            return at
        if not self._package and not (self._is_go and match[3]) and not line.startswith("vet: "):
            # Search tools print lines like this too.
            return at
        span = on_line(match[1], match[2], match[3])
        tool = "go vet" if line.startswith("vet: ") else self._compiler
        self._findings.add(ToolDiagnostic(tool, "error", match[4], "", (span,)), decides=True)
        return at + 1

    def _end_test(self, how: str, name: str) -> None:
        self._test = name
        if how == "FAIL":
            self._failed[name] = None
        one = {"PASS": TestCounts(1), "FAIL": TestCounts(0, 1), "SKIP": TestCounts(0, 0, 1)}
        self._counts += one.get(how, TestCounts())

    def _read_log_message(self, lines: Sequence[str], at: int, match: re.Match[str]) -> int:
        """A message of a test, with the lines that belong to it: they are indented further."""
        text = [match[4]] if match[4].strip() else []
        deeper = match[1] + "    "
        at += 1
        while at < len(lines) and lines[at].startswith(deeper) and not _LOGGED.fullmatch(lines[at]):
            if _ENDED.fullmatch(lines[at]):
                break
            if len(text) < MOST_LINES:
                text.append(" ".join(lines[at].split()))
            at += 1
        self._logs.setdefault(self._test, []).append((match[2], match[3], text))
        return at

    def _result(self, line: str) -> bool:
        if line in ("FAIL", "PASS"):
            is_whole = self._is_verbose or self._is_go or bool(self._failed)
            if is_whole and line == "FAIL":
                self._findings.says_of_part(TESTS, "failed")
            return is_whole
        match = _RESULT.fullmatch(line)
        if match is None:
            return False
        self._findings.says_of_part(TESTS, "failed" if match[1] == "FAIL" else "passed")
        self._close_package(match[2])
        return True

    def _close_package(self, package: str) -> None:
        """Report the tests of a package, whose name comes last."""
        for panic in self._panics:
            self._findings.add(panic)
            self._failed.pop(panic.test, None)
        above = {parent for name in self._failed for parent in _parent_tests(name)}
        for name in self._failed:
            logs = self._logs.get(name, [])
            if not logs and name in above:
                # It failed because of a subtest.
                continue
            message = "\n".join(line for _, _, text in logs for line in text)
            folder = f"{package}/" if package else ""
            spans = tuple(on_line(f"{folder}{path}", at) for path, at, _ in logs[:_MOST_SPANS])
            self._findings.add(ToolDiagnostic(TESTS, "error", message or "failed", "", spans, name))
        self._failed, self._logs, self._panics, self._test = {}, {}, [], ""

    def close(self) -> None:
        self._close_package("")
        if self._is_verbose:
            # Otherwise passed tests are not reported.
            self._findings.count(TESTS, self._counts)


def _parent_tests(name: str) -> list[str]:
    """The tests that a subtest is part of."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
