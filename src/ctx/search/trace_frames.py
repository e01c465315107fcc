"""Stack traces in pasted text, in the forms of many languages and tools.

A trace is often pasted with the prefixes of a log, a quote or a container. They are removed before
a line is compared. Every pattern is bounded, so the time is linear in the length of the text.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

_MOST_LINES = 2_000
_LONGEST_NAME = 160


class CodeFrame(NamedTuple):
    """A place in the code: a frame of a pasted stack trace, or a line that is named."""

    path: str
    """As in the trace, which is often from another machine."""
    line: int
    name: str
    """The function; empty if the trace does not name it."""


class TraceLines(NamedTuple):
    """The frames in a text, and the lines that contain nothing else."""

    frames: tuple[CodeFrame, ...]
    """Innermost first, whatever order the language prints them in."""
    lines: frozenset[int]


class _Form(NamedTuple):
    """How a language or a tool prints a frame on one line."""

    marker: str
    """Only lines that contain it are compared."""
    pattern: str
    """`PATH` is a path without spaces, `DRIVE` the beginning of any path, `LINE` its line."""
    distance: int = 0
    """The maximum number of lines to the next frame if the innermost frame is printed last; 0: it
    is printed first."""
    is_whole_line: bool = True
    """False: the line has a message too."""


_PYTHON = _Form(
    'File "', r'.{0,200}?File "(?P<path>[^"]{1,400})", line LINE(?:, in (?P<name>\S{1,160}))?', 8
)
_IPYTHON = _Form(
    "File ", r"\s*File (?P<path>DRIVE[^:\"]{1,400}):LINE(?:, in (?P<name>.{1,160}))?", 16
)
_RUBY = _Form(":in", r"\s*(?:from )?PATH:LINE:in ?[`'](?P<name>[^`']{1,160})'")
_FORMS = (
    _PYTHON,
    _IPYTHON,
    # pytest, rich
    _Form(" in ", r"PATH:LINE:? in (?P<name>[^\s'(]{1,160})\s*│?\s*$", 80),
    _Form(".py:", r"PATH:LINE: (?:[a-z_.]{0,60}[A-Z]\w{0,80})?\s*$", 80),
    # C#
    _Form(
        ":line ",
        r"\s*at (?P<name>[^\s(]{1,300})\([^()]{0,600}\) in (?P<path>DRIVE[^:]{1,400}):line LINE",
    ),
    # JavaScript
    _Form("at ", r"\s*at (?P<name>[^()]{1,160}) \((?P<path>[^()]{1,400}):LINE:\d{1,9}\)"),
    _Form(
        "at ",
        r"\s*at (?:async )?\(?(?P<path>(?:[a-z-]{2,20}://[^/\s()]{0,100}|node:|DRIVE)"
        r"[^()\s:]{1,400}):LINE:\d{1,9}\)?\s*$",
    ),
    _Form(
        "@",
        r"\s*(?P<name>[\w.$/<>*]{0,160})@(?P<path>[a-z-]{2,20}://[^/\s]{0,100}[^\s:]{1,400})"
        r":LINE:\d{1,9}\s*$",
    ),
    # Ruby: some versions print the innermost frame last, and number the others.
    _Form(": from ", r"\s*\d{1,4}: from PATH:LINE:in ?[`'](?P<name>[^`']{1,160})'", 2),
    _RUBY,
    # PHP
    _Form(".php(", r"\s*#\d{1,4} (?P<path>DRIVE[^(:]{1,400})\(LINE\): (?P<name>[^\s(]{1,200})"),
    _Form(".php:", r".{0,800} in PATH:LINE(?=\s|$)", is_whole_line=False),
    # Sanitizers, gdb
    _Form(
        " in ",
        r"\s*#\d{1,4}\s{1,4}0x[0-9a-fA-F]{1,16} in (?P<name>\S{1,160})"
        r" (?P<path>/[^\s:]{1,300}):LINE",
    ),
    _Form(
        " at ",
        r"\s*#\d{1,4}\s{1,4}(?:0x[0-9a-fA-F]{1,16} in )?(?P<name>[^\s(]{1,160})"
        r".{0,300} at PATH:LINE",
    ),
    # Rust
    _Form(
        "panicked at",
        r".{0,120}?panicked at (?:.{0,600}, )?(?P<path>DRIVE[^\s:,']{1,300})"
        r":LINE(?::\d{1,9})?:?\s*$",
        is_whole_line=False,
    ),
)
_JAVA = r"\bat ([\w.$/<>@-]{1,300})\(([\w.$-]{1,160}):(\d{1,9})\)"
_RUST_NAME = r"\s*\d{1,4}: (?:\s{0,20}0x[0-9a-f]{1,16} - )?(\S.{0,300})$"
_RUST_PLACE = r"\s+at PATH:LINE(?::\d{1,9})?\s*$"
_GO_NAME = (
    r"(?:created by )?(panic|[\w/@-]{0,200}[.][\w./*()·@-]{1,250}?)"
    r"(?:\([^()]{0,400}\)| in goroutine \d{1,9})?\s*$"
)
_GO_PLACE = r"\s*PATH:LINE(?: \+0x[0-9a-f]{1,16})?\s*$"
# IPython 7 prints the file above the lines around the place, to which an arrow points.
_FILE_ABOVE = (
    r"(?P<path>DRIVE[^:\"()]{1,400}\.pyx?|<[\w-]{1,80}>) in (?P<name>[\w.<>]{1,160})(?:\(|$)"
)
_NUMBERED = r"(?P<arrow>-{1,8}> ?)?\s{0,8}(?P<line>\d{1,6})(?: |$)"
_CELL = r"\s*(?:Cell|Input) In ?\[\d{1,6}\]"

_PREFIX = re.compile(
    r"(?>[ \t]{0,8}(?:"
    r"INTERNALERROR> ?|[>|│┃] ?|E {2,4}(?=\S| {2})"
    # 2024-05-01T10:00:00.123Z, 10:00:00,123, Wed, Sep 1 2021 9:38:45 am, Aug  7 17:52:05
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]?"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?[ \t]"
    r"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" {1,2}\d{1,2}(?: \d{4})? \d{1,2}:\d\d:\d\d(?: [ap]m)?(?: [\w.-]{1,60}(?= \S{1,60}\[\d))? ?"
    r"|[\[(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|SEVERE|CRITICAL|stderr|stdout)"
    r"(?:[\])|:]{1,2}|(?= [|\[-]))(?: ?[|-])?[ \t]?"
    r"|\d{1,7}\.\d{3,9}[ \t]|[A-Z]:\d{1,12}[ \t]"
    # [pod/name], web_1  |, daemon[123]:
    r"|\[[\w./:@ -]{1,80}\][ \t]?|[\w./-]{1,60} {0,20}\| ?|[\w./-]{1,60}\[\d{1,7}\]:[ \t]?"
    r")){1,6}"
)
_ENDS_TRACE = ("Traceback (", "During handling of", "The above exception", "```", "___")
_OF_OTHERS = re.compile(
    r"site-packages|dist-packages|node_modules|/rustc/|\.cargo/|\.rustup/|^node:|/lib/python\d|/usr/"
    r"|/pkg/mod/|/go/\d|/gems/|/vendor/|^(?:java|javax|jdk|sun|kotlin|kotlinx|scala)/|^<"
)
_RUNTIME_NAMES = re.compile(
    r"::h[0-9a-f]{16}$|::\{\{closure\}\}|\.func\d+|·\d+|(?<=\.)\(\*?(\w+)\)|<anonymous>|<module>|<main>"
    r"|<lambda>|<cell line: \d+>|<top \(required\)>"
    r"|<>c__DisplayClass\w+\.|<(\w+)>[bdg]__\w*(?:\.MoveNext)?"
    r"|lambda\$(\w+)\$\d+| \[as [^\]]{1,80}\]|/\d{1,2}$"
)
# Functions and files that are in nearly every trace of a program.
_PLUMBING_NAMES = frozenset(
    "__call__ __enter__ __exit__ _call _run _wrapped apply call call_next decorated decorator"
    " dispatch entry entrypoint entry_point execute handle handler inner inner_wrapper intercept"
    " invoke invokesuspend main middleware next perform process_request proxy run run_forever"
    " runner serve servehttp start wrap wrapped wrapper _inner _wrapper <module>".split()
)
_PLUMBING_FILES = frozenset(
    "__main__ bootstrap cli compat decorator decorators entrypoint eventloop main manage"
    " middleware runner wrapper wrappers wsgi asgi".split()
)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # Compiled when the first line with the marker of the form is read: most tasks have none.
    drive = r"(?:[A-Za-z]:)?"
    text = text.replace("PATH", r"(?P<path>DRIVE[^\s:]{1,400})").replace("DRIVE", drive)
    return re.compile(text.replace("LINE", r"(?P<line>\d{1,9})"))


def read(lines: Sequence[str]) -> TraceLines:
    return _TraceReader([_without_prefix(line) for line in lines]).read()


def _without_prefix(line: str) -> str:
    prefix = _PREFIX.match(line)
    return line[prefix.end() :] if prefix else line


def is_of_others(frame: CodeFrame) -> bool:
    """Whether the path looks like one of a library or of the runtime."""
    return _OF_OTHERS.search(frame.path) is not None


def is_plumbing(frame: CodeFrame) -> bool:
    """Whether a frame is likely in every trace of the program: an entry point or a wrapper."""
    name = re.split(r"::|[.#]", frame.name)[-1].lower()
    stem = re.split(r"[\\/]", frame.path)[-1].partition(".")[0].lower()
    return name in _PLUMBING_NAMES or stem in _PLUMBING_FILES


class _TraceReader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._frames: list[CodeFrame] = []
        self._own_lines: set[int] = set()
        self._innermost_last: list[CodeFrame] = []
        self._ends_at = 0
        """The line where a trace with the innermost frame last ends."""
        self._causes: list[list[CodeFrame]] = [[]]
        """The frames of an exception, and of its causes, which are printed below it."""

    def read(self) -> TraceLines:
        number = 0
        while number < len(self._lines) and len(self._own_lines) < _MOST_LINES:
            line = self._lines[number]
            if number > self._ends_at or line.startswith(_ENDS_TRACE):
                self._end_innermost_last()
            if line.lstrip().startswith("Caused by: "):
                self._causes.append([])
            if line:
                number = self._read_frame(number, line)
            number += 1
        self._end_innermost_last()
        self._end_causes()
        return TraceLines(tuple(self._frames), frozenset(self._own_lines))

    def _read_frame(self, number: int, line: str) -> int:
        """Read the frame that begins on a line. Returns the number of its last line."""
        if "at " in line and (places := list(_pattern(_JAVA).finditer(line))):
            for place in places:
                self._add(_java_frame(place), 0, number)
            if line.lstrip().startswith("at "):
                self._own_lines.add(number)
            return number
        if self._read_place_below_name(number, line):
            return number
        if " in " in line and (match := _pattern(_FILE_ABOVE).match(line)):
            return self._read_around(number, match)
        if " In" in line and _pattern(_CELL).match(line):
            return self._read_around(number, None)
        for form in _FORMS:
            if form.marker in line and (match := _pattern(form.pattern).match(line)):
                frame = _frame(match, match.groupdict().get("name"))
                # The numbered frames of Ruby are followed by the innermost one, without a number.
                is_last = form is _RUBY and bool(self._innermost_last)
                self._add(frame, form.distance or int(is_last), number)
                if form.is_whole_line:
                    self._own_lines.add(number)
                if form is _IPYTHON:
                    return self._read_around(number, None)
                if form is _PYTHON and self._line(number + 1).startswith("    "):
                    # The source line repeats the frame.
                    number += 1
                    self._own_lines.add(number)
                return number
        return number

    def _read_place_below_name(self, number: int, line: str) -> bool:
        """Read the place of a frame whose function is on the line above, as in Rust and Go."""
        forms = ((_RUST_NAME, _RUST_PLACE),) if "at " in line else ()
        if ".go:" in line:
            forms = ((_GO_NAME, _GO_PLACE),)
        above = self._line(number - 1) if number else ""
        for name, place in forms:
            named = _pattern(name).match(above)
            match = _pattern(place).match(line) if named else None
            if named and match:
                self._own_lines.update((number - 1, number))
                self._add(_frame(match, named[1].rpartition("/")[2]), 0, number)
                return True
        return False

    def _read_around(self, number: int, above: re.Match[str] | None) -> int:
        """Read the numbered lines below a line; with the file and function above them, they are a
        frame."""
        self._own_lines.add(number)
        while numbered := _pattern(_NUMBERED).match(self._line(number + 1)):
            number += 1
            self._own_lines.add(number)
            if above and numbered["arrow"]:
                frame = CodeFrame(
                    _path(above["path"]), int(numbered["line"]), _function(above["name"])
                )
                self._add(frame, _IPYTHON.distance, number)
                above = None
        return number

    def _add(self, frame: CodeFrame, distance: int, number: int) -> None:
        if frame.path.startswith("<"):
            # Input at a prompt, or code of the runtime.
            return
        if distance:
            self._end_causes()
            self._innermost_last.append(frame)
            self._ends_at = number + distance
        else:
            self._end_innermost_last()
            self._causes[-1].append(frame)

    def _end_innermost_last(self) -> None:
        self._frames += reversed(self._innermost_last)
        self._innermost_last.clear()

    def _end_causes(self) -> None:
        for frames in reversed(self._causes):
            self._frames += frames
        self._causes = [[]]

    def _line(self, number: int) -> str:
        return self._lines[number] if number < len(self._lines) else ""


def _frame(match: re.Match[str], name: str | None) -> CodeFrame:
    return CodeFrame(_path(match["path"]), int(match["line"]), _function(name))


def _java_frame(match: re.Match[str]) -> CodeFrame:
    """Java prints the class and the file name, which together give the path from the source
    root."""
    qualified = match[1].rpartition("/")[2]
    package = qualified.split(".")[:-2]
    return CodeFrame("/".join([*package, match[2]]), int(match[3]), _function(qualified))


def _path(text: str) -> str:
    """A path in a trace, without the scheme and the host of an address."""
    # Markdown turns the underscores of `__init__.py` into bold text.
    text = text.strip().replace("**", "__")
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    if scheme.startswith("webpack"):
        # webpack:///./src/a.js, webpack://package/./src/a.js
        return rest.rpartition("/./")[2].lstrip("/").partition("?")[0]
    host, slash, path = rest.partition("/")
    return (slash + path if scheme == "file" or host else rest).partition("?")[0]


def _function(name: str | None) -> str:
    """The function name in a trace, without what a runtime adds."""
    bare = (name or "").strip().replace("**", "__").removeprefix("async ").removeprefix("new ")
    bare = bare.rpartition(" in ")[2].replace("->", ".").replace("\\", ".")
    bare = _RUNTIME_NAMES.sub(lambda match: next(filter(None, match.groups()), ""), bare)
    return bare.partition("(")[0].replace("$", ".").strip(" .:<>")[:_LONGEST_NAME]
