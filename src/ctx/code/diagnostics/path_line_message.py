"""Lines that begin with a place: `path:line:column: message`. Half of all tools print these.

The rest of the line and the kind of file identify the tool.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.code.diagnostics.diagnostic_model import SEVERITIES, ToolDiagnostic, ToolSpan
from ctx.code.diagnostics.findings import MOST_LINES, Findings, OutputReader, number, on_line

_PLACE = re.compile(
    r"((?:[A-Za-z]:[\\/])?[^\s:][^:]{0,400}):(\d{1,9})(?::(\d{1,9}))?"
    r"(?::(\d{1,9}):(\d{1,9}))?: ?(.*)"
)
_SEVERITY = re.compile(
    r"(fatal error|error|warning|note|remark|info|hint|help|fatal)(?:\[([\w:-]{1,60})\])?: (.+)",
    re.IGNORECASE,
)
_ENDING = re.compile(r"[^\s]{0,300}[\w)\]]\.([A-Za-z][\w+]{0,9})")
_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "Dockerfile", "CMakeLists.txt"})
_C = frozenset("c h cc cpp cxx hh hpp hxx c++ h++ m mm cu inl ipp".split())
_PYTHON = frozenset("py pyi ipynb".split())
_MYPY_CODE = re.compile(r"[a-z][a-z0-9-]{1,60}")
_C_CODE = re.compile(r"-[Wf][\w+=.,-]{1,80}")
_JAVA_CODE = re.compile(r"\[([a-z-]{2,40})\] (.*)")
_PYTHON_RULE = re.compile(r"([A-Z]{1,5}\d{2,5}|[a-z]+(?:-[a-z]+){1,5}):? (?:\[\*\] )?(.+)")
_UNIX_CODE = re.compile(r"(Error|Warning)(?:/(.{1,100}))?")
_INCLUDED = re.compile(
    r"(?:In file included| {8,40})\s*from ([^:]{1,400}):(\d{1,9})(?::(\d{1,9}))?[:,]"
)
_REQUIRED = re.compile(r"\s{0,4}(?:required|recursively required) (?:from|by) .*")
_LINKED = re.compile(
    r"(?:.{1,300}ld(?:\.\w+)?: )?([^\s:][^:]{0,400}):\(\.[\w.]{1,80}\+0x[0-9a-f]+\): (.+)"
)
_ENDED = re.compile(
    r"compilation terminated\.|collect2: error: .*|clang(?:\+\+)?: error: .*"
    r"|(?:\d+ warnings? and )?\d+ errors? generated\.|\d+ errors?"
)
_CARETS = re.compile(r"[ |~]*\^(~*).*")
_MOST_PENDING = 8
_MOST_RELATED = 12


class PathLineReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._pending: list[ToolSpan] = []
        """Places that belong to the next diagnostic."""
        self._last: ToolDiagnostic | None = None
        """The diagnostic that notes belong to; it is added after them."""
        self._is_clang = "clang" in findings.words or "clang++" in findings.words

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        if ":" not in line:
            return at + self._ends(line)
        if included := _INCLUDED.fullmatch(line):
            self._wait(on_line(included[1], included[2])._replace(label="included from"))
            return at + 1
        match = _PLACE.fullmatch(line)
        if match is not None and _is_path(match[1]):
            return self._read_location(lines, at, match)
        if "+0x" in line and (linked := _LINKED.fullmatch(line)):
            self._flush()
            diagnostic = ToolDiagnostic("ld", "error", linked[2], "", (ToolSpan(linked[1]),))
            self._findings.add(diagnostic, decides=True)
            return at + 1
        return at + self._ends(line)

    def _ends(self, line: str) -> bool:
        if line[:1] not in "0123456789c" or not _ENDED.fullmatch(line):
            return False
        self._is_clang |= line.startswith("clang") or line.endswith("generated.")
        if line[0].isdigit() and not (line.endswith("generated.") or self._last):
            return False
        tool = self._last.tool if self._last else "cc"
        self._flush()
        self._findings.says("cc" if tool in ("gcc", "clang") else tool, "failed")
        return True

    def _read_location(self, lines: Sequence[str], at: int, match: re.Match[str]) -> int:
        place = _Place.from_match(match)
        severity = _SEVERITY.fullmatch(place.rest)
        if severity is None:
            return at + self._unsaid(place)
        level = severity[1].lower()
        tool, code, message = self._tool_and_code(place, severity)
        after = at + 1
        if tool == "mypy" and not code and after < len(lines) and _is_wrapped(lines[after]):
            rest, code = _split_bracketed(lines[after])
            message = f"{message} {rest}".rstrip()
            after += 1
        end, after = _underline_end(lines, after, place.span)
        span = place.span if end is None else place.span._replace(end_column=end)
        if tool == "javac":
            message, after = _symbols(lines, after, message)
        if level == "note" and self._last and self._last.tool == tool:
            if len(self._last.spans) < _MOST_RELATED:
                related = (*self._last.spans, span._replace(label=message))
                self._last = self._last._replace(spans=related)
            return after
        self._add_diagnostic(
            ToolDiagnostic(tool, SEVERITIES[level], message, code, (span, *self._pending))
        )
        return after

    def _unsaid(self, place: "_Place") -> bool:
        """Handle a line without a severity, and return whether it is a diagnostic."""
        if _REQUIRED.fullmatch(place.rest):
            self._wait(place.span._replace(label=place.rest.strip()))
            return True
        message, code = _split_bracketed(place.rest)
        if unix := _UNIX_CODE.fullmatch(code):
            level = SEVERITIES[unix[1].lower()]
            self._add_diagnostic(
                ToolDiagnostic("eslint", level, message, unix[2] or "", (place.span,))
            )
            return True
        rule = _PYTHON_RULE.fullmatch(place.rest) if place.ending in _PYTHON else None
        if rule is None or place.span.start_column is None:
            return False
        words = self._findings.words
        tool = next((name for name in ("flake8", "pylint", "pycodestyle") if name in words), "ruff")
        self._add_diagnostic(ToolDiagnostic(tool, "error", rule[2], rule[1], (place.span,)))
        return True

    def _tool_and_code(self, place: "_Place", severity: re.Match[str]) -> tuple[str, str, str]:
        """The tool, the code and the message of a line with a severity."""
        message = severity[3]
        if severity[2]:
            tool = "clippy" if severity[2].startswith("clippy::") else "rustc"
            return (tool if place.ending == "rs" else self._program()), severity[2], message
        before, code = _split_bracketed(message)
        if place.ending in _PYTHON:
            is_coded = _MYPY_CODE.fullmatch(code)
            return ("mypy", code, before) if is_coded else ("mypy", "", message)
        if place.ending == "java":
            coded = _JAVA_CODE.fullmatch(message)
            return "javac", coded[1] if coded else "", coded[2] if coded else message
        if place.ending in _C:
            is_coded = _C_CODE.fullmatch(code)
            return ("gcc", code, before) if is_coded else ("gcc", "", message)
        if place.ending == "rs":
            return "rustc", "", message
        return self._program(), "", message

    def _program(self) -> str:
        return self._findings.words[0] if self._findings.words else "unknown"

    def _wait(self, span: ToolSpan) -> None:
        self._pending = [*self._pending, span][-_MOST_PENDING:]

    def _add_diagnostic(self, diagnostic: ToolDiagnostic) -> None:
        self._flush()
        self._last = diagnostic
        self._pending = []
        if diagnostic.severity == "error":
            self._findings.fails()

    def _flush(self) -> None:
        if self._last:
            self._findings.add(self._last)
            self._last = None

    def close(self) -> None:
        self._flush()
        if self._is_clang:
            self._findings.rename("gcc", "clang")


class _Place(NamedTuple):
    span: ToolSpan
    ending: str
    rest: str

    @classmethod
    def from_match(cls, match: re.Match[str]) -> "_Place":
        line, column = number(match[2]), number(match[3]) if match[3] else None
        end_line = number(match[4]) if match[4] else line
        # mypy's end column is inclusive.
        end_column = int(match[5]) + 1 if match[5] else None
        span = ToolSpan(match[1], line, column, end_line, end_column)
        return cls(span, match[1].rpartition(".")[2].lower(), match[6])


def _is_path(text: str) -> bool:
    """Whether it can be a file: a time of day cannot, nor can the name of a program."""
    return _ENDING.fullmatch(text) is not None or text.rpartition("/")[2] in _NAMES


def _is_wrapped(line: str) -> bool:
    """Whether a wrapped message ends here, with its code."""
    is_rest = bool(line) and line[0] not in " \t" and not _PLACE.match(line)
    return is_rest and _MYPY_CODE.fullmatch(_split_bracketed(line)[1]) is not None


def _split_bracketed(text: str) -> tuple[str, str]:
    """A message, and the text in brackets at its end."""
    if not text.endswith("]"):
        return text, ""
    before, _, inside = text.rpartition("[")
    return before.rstrip(), inside[:-1]


def _underline_end(lines: Sequence[str], at: int, span: ToolSpan) -> tuple[int | None, int]:
    """The end of the underline below the source, if there is one; and the line after it."""
    for below in range(at, min(at + 2, len(lines))):
        marks = _CARETS.fullmatch(lines[below]) if "^" in lines[below] else None
        if marks and below > at:
            column = span.start_column
            return (column + 1 + len(marks[1]) if column else None), below + 1
    return None, at


def _symbols(lines: Sequence[str], at: int, message: str) -> tuple[str, int]:
    """The symbol and location that javac adds to a message."""
    text_lines = [message]
    while at < len(lines) and lines[at].startswith(
        ("  symbol:", "  location:", "  required:", "  found:")
    ):
        text_lines.append(" ".join(lines[at].split()))
        at += 1
    return "\n".join(text_lines), at


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


class TypeScriptReader(OutputReader):
    """tsc, plain and pretty, and compilers that print places the same way."""

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
        span = on_line(match[1], match[2], match[3])
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
                related.append(on_line(*place.groups()))
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
        rule = _RULE.fullmatch(match[6])
        message, code = (rule[1], rule[2]) if rule else (match[6], "")
        span = on_line(match[1], match[2], match[3])
        diagnostic = ToolDiagnostic("pyright", SEVERITIES[match[4]], message, code, (span,))
        self._findings.add(diagnostic, decides=True)
        return at + 1

    def _add_diagnostic(
        self, level: str, code: str, message: str, spans: tuple[ToolSpan, ...]
    ) -> None:
        tool = _TOOLS.get(code.rstrip("0123456789"), code.rstrip("0123456789").lower() or "tsc")
        diagnostic = ToolDiagnostic(tool, SEVERITIES[level], message, code, spans)
        self._findings.add(diagnostic, decides=True)


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
