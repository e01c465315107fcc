"""Stack traces of Python, Node, Java and Go."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.code.diagnostics.diagnostic_model import ToolDiagnostic, ToolSpan, own
from ctx.code.diagnostics.findings import MOST_LINES, OutputReader, on_line

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s{2,12}File "(.{1,400}?)", line (\d{1,9})(?:, in (.{1,200}))?')
_RAISED = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: (.*))?")
CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
_MOST_OF_SYNTAX = 8
_SYNTAX = re.compile(r"\w{1,60}Error: ")
_JS_RAISED = re.compile(r"(?:Uncaught )?([A-Z][\w.]{0,80}(?:Error|Exception))(?: \[\w+\])?: (.*)")
_JS_FRAME = re.compile(
    r"\s{2,12}at (?:.{1,300} \()?(?:file://)?([^\s()][^()]{0,400}?):(\d{1,9}):(\d{1,9})\)?"
)
_JAVA_RAISED = re.compile(
    r'(?:Exception in thread "[^"]{1,200}" )((?:[\w$]+\.){0,20}[\w$]{1,100})(?:: (.*))?'
)
_JAVA_CAUSE = re.compile(r"Caused by: ((?:[\w$]+\.){0,20}[\w$]{1,100})(?:: (.*))?")
_JAVA_FRAME = re.compile(
    r"\s{1,8}at (?:[\w.@-]{1,100}/)?([\w$.<>]{1,300})"
    r"\(([\w$-]{1,100}\.(?:java|kt|scala)):(\d{1,9})\)"
)
_JAVA_MORE = re.compile(r"\s{1,8}(?:at |\.\.\. \d+ more)")
_JAVA_OF_OTHERS = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.junit.", "kotlin.", "scala.")
_GO_PANIC = re.compile(r"(?:panic|fatal error): (.*)")
_GO_FRAME = re.compile(r"\t(.{1,400}?\.go):(\d{1,9})(?: \+0x[0-9a-f]+)?")
_GO_GOROUTINE = re.compile(r"goroutine \d+ \[")


class Trace(NamedTuple):
    kind: str
    """The type of the exception: `KeyError`."""
    message: str
    spans: tuple[ToolSpan, ...]
    after: int
    """The line after the trace."""


class TraceReader(OutputReader):
    """Reads traces that no other reader has recognised."""

    def read(self, lines: Sequence[str], at: int) -> int:
        for tool, begins in (("python", python), ("node", node), ("java", java), ("go", go)):
            trace = begins(lines, at)
            if trace is None:
                continue
            self._findings.add(
                ToolDiagnostic(tool, "error", trace.message, trace.kind, trace.spans)
            )
            rest = lines[trace.after : trace.after + 3]
            if trace.after >= len(lines) or any(line.startswith("Node.js v") for line in rest):
                # Nothing follows: it ended the program.
                self._findings.fails()
            return trace.after
        return at


def python(lines: Sequence[str], at: int) -> Trace | None:
    """A traceback with those of its causes; also a syntax error, which has no traceback."""
    earlier: list[ToolSpan] = []
    while True:
        if at >= len(lines) or lines[at].strip() != _TRACEBACK:
            is_syntax = at < len(lines) and lines[at].startswith("  File ")
            return _syntax(lines, at) if is_syntax and not earlier else None
        spans, at = _frames(lines, at + 1)
        raised = _RAISED.fullmatch(lines[at].strip()) if at < len(lines) else None
        if raised is None:
            return Trace("", "Traceback", (*spans, *earlier), at) if spans else None
        kind, message, at = raised[1].rpartition(".")[2], raised[2] or "", at + 1
        at = _skip_message(lines, at)
        if not (at + 2 < len(lines) and lines[at + 1].startswith(CHAINED)):
            text = f"{kind}: {message}" if message else kind
            return Trace(kind, text, (*spans, *earlier), at)
        if following := next((n for n in (at + 2, at + 3) if _begins(lines, n)), None):
            label = f"{kind}: {message}".rstrip(": ")
            earlier = [span._replace(label=label) for span in spans[:1]] + earlier
            at = following
        else:
            text = f"{kind}: {message}" if message else kind
            return Trace(kind, text, (*spans, *earlier), at)


def _begins(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and lines[at].strip() == _TRACEBACK


def _skip_message(lines: Sequence[str], at: int) -> int:
    """Skip the lines of a long message, if an empty line and another traceback follow."""
    for below in range(at, min(at + MOST_LINES, len(lines))):
        if _begins(lines, below):
            return at
        if not lines[below].strip():
            is_chained = below + 1 < len(lines) and lines[below + 1].startswith(CHAINED)
            return below if is_chained else at
    return at if at + MOST_LINES < len(lines) else len(lines)


def _frames(lines: Sequence[str], at: int) -> tuple[list[ToolSpan], int]:
    """The frames of a traceback, the innermost of the project's own code first."""
    spans: list[ToolSpan] = []
    while at < len(lines) and lines[at].startswith("  ") and not _begins(lines, at):
        if frame := _FRAME.fullmatch(lines[at]):
            spans.append(on_line(frame[1], frame[2]))
            del spans[:-100]
        at += 1
    return own(spans)[::-1], at


def _syntax(lines: Sequence[str], at: int) -> Trace | None:
    if at + 1 < len(lines) and lines[at + 1].startswith("  File "):
        return None
    spans, length = _frames(lines[at : at + _MOST_OF_SYNTAX], 0)
    after = at + length
    if not spans or after >= len(lines) or not _SYNTAX.match(lines[after]):
        return None
    kind, _, _ = lines[after].partition(":")
    return Trace(kind, lines[after], tuple(spans), after + 1)


def node(lines: Sequence[str], at: int) -> Trace | None:
    raised = _JS_RAISED.fullmatch(lines[at].strip()) if "r: " in lines[at] else None
    raised = raised or (_JS_RAISED.fullmatch(lines[at].strip()) if "n: " in lines[at] else None)
    if raised is None:
        return None
    spans, after = js_frames(lines, at + 1)
    if not spans:
        return None
    return Trace(raised[1], f"{raised[1]}: {raised[2]}", tuple(spans), after)


def js_frames(lines: Sequence[str], at: int) -> tuple[list[ToolSpan], int]:
    """The frames of JavaScript, the innermost of the project's own code first, and the line
    after."""
    spans: list[ToolSpan] = []
    while at < len(lines) and lines[at].lstrip().startswith("at "):
        if frame := _JS_FRAME.fullmatch(lines[at].rstrip(" {")):
            spans.append(on_line(frame[1], frame[2], frame[3]))
            del spans[100:]
        at += 1
    return own(spans), at


def java(lines: Sequence[str], at: int) -> Trace | None:
    raised = _JAVA_RAISED.fullmatch(lines[at])
    if raised is None:
        return None
    kind, message = raised[1].rpartition(".")[2], raised[2] or ""
    spans: list[ToolSpan] = []
    label = ""
    at += 1
    while at < len(lines):
        line = lines[at]
        if cause := _JAVA_CAUSE.fullmatch(line):
            label = f"Caused by: {cause[1].rpartition('.')[2]}: {cause[2] or ''}".rstrip(": ")
        elif frame := _JAVA_FRAME.fullmatch(line):
            if not frame[1].startswith(_JAVA_OF_OTHERS) and len(spans) < 100:
                span = on_line(_java_path(frame[1], frame[2]), frame[3])
                spans.append(span._replace(label=label))
        elif not _JAVA_MORE.match(line):
            break
        at += 1
    return Trace(kind, f"{kind}: {message}" if message else kind, tuple(spans), at)


def _java_path(method: str, file: str) -> str:
    """The path of a class from the source root: `com/acme/Shop.java`."""
    *packages, _, _ = ["", *method.split(".")] if "." in method else ["", "", method]
    return "/".join([*(part for part in packages if part), file])


def go(lines: Sequence[str], at: int) -> Trace | None:
    """A panic. It is printed twice if it was recovered in between."""
    raised = _GO_PANIC.fullmatch(lines[at])
    if raised is None:
        return None
    after = at + 1
    while after < len(lines) and lines[after].startswith(("\tpanic: ", "[signal ")):
        after += 1
    if not (after + 1 < len(lines) and _GO_GOROUTINE.match(lines[after + 1])):
        return None
    spans: list[ToolSpan] = []
    after += 1
    goroutine = 0
    while after < len(lines) and (line := lines[after]).strip():
        goroutine += _GO_GOROUTINE.match(line) is not None
        frame = _GO_FRAME.fullmatch(line) if goroutine == 1 else None
        if frame and len(spans) < 100:
            spans.append(on_line(frame[1], frame[2]))
        elif line.startswith(("FAIL\t", "exit status ")):
            break
        after += 1
    message = raised[1].removesuffix(" [recovered]")
    return Trace("panic", f"panic: {message}", tuple(own(spans)), after)
