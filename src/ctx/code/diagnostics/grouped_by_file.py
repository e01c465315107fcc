"""Problems listed below the path of their file, as eslint and ruff print them, and the summary
lines.

/home/me/shop/lint/stock.js
  1:30  error    'only' is defined but never used   no-unused-vars
"""

import re
from collections.abc import Sequence

from ctx.code.diagnostics import source_excerpts
from ctx.code.diagnostics.diagnostic_model import SEVERITIES, Outcome, ToolDiagnostic
from ctx.code.diagnostics.findings import Findings, OutputReader, on_line

_FILE = re.compile(r"(\S.{0,400}\.\w{1,10}):?")
_STYLISH = re.compile(r" {1,12}(\d{1,9}):(\d{1,9}) +(error|warning) +(\S.*)")
_RULE = re.compile(r"@?[\w/-]{1,100}")
_GROUPED = re.compile(r" {1,12}(\d{1,9}):(\d{1,9}) +(?:([A-Z]{1,5}\d{2,5})|([a-z-]{3,40}):) (.+)")
_HEAD = re.compile(r"(?:([A-Z]{1,5}\d{2,5})|([a-z][a-z-]{2,40}):) (?:\[\*\] )?(\S.*)")
_PROBLEMS = re.compile(r"[✖×] (\d{1,9}) problems? \((\d{1,9}) errors?, (\d{1,9}) warnings?\)")

_LAST_WORDS: tuple[tuple[str, str, Outcome], ...] = (
    (r"All checks passed!", "ruff", "passed"),
    (r"Found \d+ errors?\.", "ruff", "failed"),
    (r"Found \d+ errors? \(\d+ fixed, 0 remaining\)\.", "ruff", "passed"),
    (r"Found \d+ errors? \(\d+ fixed, \d+ remaining\)\.", "ruff", "failed"),
    (r"\d+ files? would be reformatted.*", "ruff format", "failed"),
    (r"\d+ files? already formatted", "ruff format", "passed"),
    (r"Success: no issues found in \d+ source files?", "mypy", "passed"),
    (r"Found \d+ errors? in \d+ files? \(.*\)", "mypy", "failed"),
    (r"Found 0 errors\.(?: Watching .*)?", "tsc", "passed"),
    (
        r"Found \d+ errors? in (?:\d+ files\.|the same file, starting at: .*|\S+:\d+\.?)",
        "tsc",
        "failed",
    ),
    (r"make(?:\[\d+\])?: \*\*\* .*(?<!\(ignored\))", "make", "failed"),
    (r"ninja: build stopped: .*", "ninja", "failed"),
    (r"npm (?:ERR!|error) (?:code|Test failed|Lifecycle script) .*", "npm", "failed"),
    (r"BUILD SUCCESS(?:FUL in .*)?", "build", "passed"),
    (r"BUILD FAIL(?:URE|ED in .*)", "build", "failed"),
)
_WORDS = re.compile("|".join(f"({words})" for words, _, _ in _LAST_WORDS))
_FIRST_LETTERS = frozenset("AF0123456789SmnB")


class GroupedReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._file = ""

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        if line.startswith(" "):
            return self._read_file_problems(lines, at)
        if line[:1] in _FIRST_LETTERS and (match := _WORDS.fullmatch(line)):
            _, tool, outcome = _LAST_WORDS[(match.lastindex or 1) - 1]
            self._findings.says(tool, outcome)
            return at + 1
        if problems := _PROBLEMS.match(line):
            self._findings.says("eslint", "failed" if int(problems[2]) else "passed")
            return at + 1
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if below.lstrip().startswith("--> ") and (head := _HEAD.fullmatch(line)):
            return self._read_ruff_diagnostic(lines, at, head)
        return at

    def _read_file_problems(self, lines: Sequence[str], at: int) -> int:
        """The problems of a file, whose name is the line above."""
        line = lines[at]
        match = _STYLISH.fullmatch(line) or _GROUPED.fullmatch(line)
        if match is None:
            self._file = ""
            return at
        if not self._file:
            above = _FILE.fullmatch(lines[at - 1]) if at else None
            if above is None:
                return at
            self._file = above[1].removesuffix(":")
        span = on_line(self._file, match[1], match[2])
        if match.re is _STYLISH:
            message, _, rule = match[4].rpartition("  ")
            if not message or not _RULE.fullmatch(rule):
                message, rule = match[4], ""
            diagnostic = ToolDiagnostic("eslint", SEVERITIES[match[3]], message, rule, (span,))
        else:
            text = match[5].removeprefix("[*] ")
            diagnostic = ToolDiagnostic("ruff", "error", text, match[3] or match[4], (span,))
        self._findings.add(diagnostic, decides=True)
        is_last = at + 1 >= len(lines) or not lines[at + 1].startswith(" ")
        if is_last:
            self._file = ""
        return at + 1

    def _read_ruff_diagnostic(self, lines: Sequence[str], at: int, head: re.Match[str]) -> int:
        """A diagnostic of ruff with a source excerpt below."""
        arrow = source_excerpts.begins(lines, at)
        if not arrow:
            return at
        drawn, after = source_excerpts.read_excerpt(lines, arrow)
        code = head[1] or head[2]
        tool = "ruff format" if code == "unformatted" else "ruff"
        diagnostic = ToolDiagnostic(tool, "error", head[3], code, drawn.spans[:1])
        self._findings.add(diagnostic, decides=True)
        return after
