"""tsc, plain and pretty, and compilers that print places the same way."""

import re
from collections.abc import Sequence

from ctx.code.diagnostics.diagnostic_model import SEVERITIES, ToolDiagnostic, ToolSpan
from ctx.code.diagnostics.findings import MOST_LINES, Findings, number

_PLAIN = re.compile(
    r"(\S.{0,400}?)\((\d{1,9})(?:,(\d{1,9}))?(?:,\d{1,9},\d{1,9})?\) ?: "
    r"(fatal error|error|warning|info|message) ([A-Z]{1,6}\d{1,6}): (.+)"
)
_PRETTY = re.compile(
    r"([^\s:][^:]{0,400}):(\d{1,9}):(\d{1,9}) - (error|warning|message|information)"
    r"(?: ([A-Z]{1,6}\d{1,6}))?: (.+)"
)
_RULE = re.compile(r"(.{1,1900}) \((report\w{1,60})\)")
_NOWHERE = re.compile(r"(error|warning) (TS\d{1,6}): (.+)")
_RELATED = re.compile(r"  ([^\s:][^:]{0,400}):(\d{1,9}):(\d{1,9})")
_UNDERLINE = re.compile(r" *(~+)")
_TOOLS = {"TS": "tsc", "CS": "csc", "C": "cl", "LNK": "link", "FS": "fsc"}
_MOST_BELOW = 40


class TypeScriptReader:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        if line[:1] in ("", " "):
            return self._pyright(lines, at) if " - " in line else at
        if "): " in line or ") : " in line:
            if match := _PLAIN.fullmatch(line):
                return self._read_plain_line(lines, at, match)
        elif " - " in line:
            if match := _PRETTY.fullmatch(line):
                return self._pretty(lines, at, match)
        elif line.startswith(("error TS", "warning TS")) and (match := _NOWHERE.fullmatch(line)):
            self._add_diagnostic(match[1], match[2], match[3], ())
            return at + 1
        return at

    def _read_plain_line(self, lines: Sequence[str], at: int, match: re.Match[str]) -> int:
        shown = number(match[2])
        span = ToolSpan(match[1], shown, number(match[3]) if match[3] else None, shown)
        message, after = _message_with_details(lines, at, match[6])
        self._add_diagnostic(match[4], match[5], message, (span,))
        return after

    def _pretty(self, lines: Sequence[str], at: int, match: re.Match[str]) -> int:
        """An error with its source and related places."""
        shown, column = number(match[2]), number(match[3]) or 0
        message, after = _message_with_details(lines, at, match[6])
        end = None
        related: list[ToolSpan] = []
        last = min(after + _MOST_BELOW, len(lines))
        while after < last and (not lines[after] or lines[after][0] in " 0123456789"):
            line = lines[after]
            if place := _RELATED.fullmatch(line):
                other = number(place[2])
                related.append(ToolSpan(place[1], other, number(place[3]), other))
            elif related and line.startswith("    ") and _is_label(line):
                related[-1] = related[-1]._replace(label=line.strip())
            elif not related and end is None and (marks := _UNDERLINE.fullmatch(line)):
                end = column + len(marks[1])
            after += 1
        while not lines[after - 1]:
            after -= 1
        span = ToolSpan(match[1], shown, column, shown, end)
        self._add_diagnostic(match[4], match[5] or "", message, (span, *related))
        return after

    def _pyright(self, lines: Sequence[str], at: int) -> int:
        """pyright lists its diagnostics below the file, and repeats the path."""
        match = _PRETTY.fullmatch(lines[at].strip())
        if match is None or match[5]:
            return at
        shown = number(match[2])
        rule = _RULE.fullmatch(match[6])
        message, code = (rule[1], rule[2]) if rule else (match[6], "")
        span = ToolSpan(match[1], shown, number(match[3]), shown)
        self._findings.add(ToolDiagnostic("pyright", SEVERITIES[match[4]], message, code, (span,)))
        if match[4] == "error":
            self._findings.fails()
        return at + 1

    def _add_diagnostic(
        self, level: str, code: str, message: str, spans: tuple[ToolSpan, ...]
    ) -> None:
        tool = _TOOLS.get(code.rstrip("0123456789"), code.rstrip("0123456789").lower() or "tsc")
        self._findings.add(ToolDiagnostic(tool, SEVERITIES[level], message, code, spans))
        if SEVERITIES[level] == "error":
            self._findings.fails()

    def close(self) -> None:
        pass


def _message_with_details(lines: Sequence[str], at: int, first: str) -> tuple[str, int]:
    """A message with the indented lines that explain it; and the line after them."""
    text_lines = [first]
    at += 1
    while at < len(lines) and lines[at].startswith("  ") and len(text_lines) < MOST_LINES:
        if _RELATED.fullmatch(lines[at]):
            break
        text_lines.append(lines[at].strip())
        at += 1
    return "\n".join(text_lines), at


def _is_label(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text[0].isdigit() and text.strip("~ ") != ""
