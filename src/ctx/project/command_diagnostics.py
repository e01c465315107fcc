"""Stores the diagnostics of a tool in a project's memory.

They are stored as a snapshot with the observation. Errors are also anchors in the graph, so that a
recurring error is one node with edges to its files.

Commits are shared, so paths of this machine and of its user are removed.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from ctx import clock, disk
from ctx.code.diagnostics.diagnostic_model import ToolDiagnostic, ToolReport, ToolSpan
from ctx.ids import NodeId, ObjectId
from ctx.memory.changes import Change
from ctx.memory.model import Evidence
from ctx.objects import object_store, object_types
from ctx.objects.object_store import Object
from ctx.project import anchors

MOST_ANCHORS = 10
MOST_KEPT = 50
"""The limit per snapshot, because each diagnostic has texts that are separate objects. The whole
output is stored too."""

_MOST_FILES = 3
_MOST_CHECKED_PATHS = 200
_LARGEST_FILE = 4 * 1024 * 1024
_LONGEST_NAME = 240
_SOURCES = ("", "src/main/java/", "src/test/java/", "src/main/kotlin/", "src/")
_LIBRARIES = ("site-packages", "dist-packages", "node_modules")
_ELSEWHERE = "…/"
# After the first `/` of a path, unless a longer path continues there. Options (`-I/usr`), line ends
# in JSON and colours also end in a letter.
_BEGINS = r"(?:(?<![\w.~-]/)|(?<=-[A-Za-z]/)|(?<=\\[nrt]/)|(?<=\dm/))"
_ENDS = r"(?![\w-]|\.\w)"


class DiagnosedProject(NamedTuple):
    root: str
    folder: str
    """Where the command was run, if known."""
    repo_id: str
    home: str = ""
    """The home folder of the user who ran it."""

    def shared(self, text: str) -> str:
        """A text without local paths: `.` for the project's root and `~` for the home folder."""
        places = _places(self)
        if not any(place in text for place in places):
            return text
        return _pattern(self).sub(lambda match: places[match[0]], text)


class DiagnosticsObjects(NamedTuple):
    snapshot: Object
    blobs: tuple[Object, ...]
    """The texts that the snapshot refers to."""


def relative_report(report: ToolReport, project: DiagnosedProject) -> ToolReport:
    """The report with paths relative to the project's root."""
    paths = _Paths(project)

    def relative(span: ToolSpan) -> ToolSpan:
        return span._replace(path=paths.shown(span.path), label=project.shared(span.label))

    every = [
        diagnostic._replace(
            message=project.shared(diagnostic.message),
            spans=tuple(map(relative, diagnostic.spans)),
            test=project.shared(diagnostic.test),
        )
        for diagnostic in report.diagnostics
    ]
    return report._replace(diagnostics=tuple(every))


def snapshot(report: ToolReport, project: DiagnosedProject) -> DiagnosticsObjects:
    """The snapshot object of a report and its blobs. The paths are relative to the root."""
    blobs: dict[ObjectId, Object] = {}
    paths = _Paths(project._replace(folder=project.root))

    def kept(text: str) -> ObjectId:
        blob = object_store.blob(text.encode())
        blobs[blob.id] = blob
        return blob.id

    chosen = sorted(report.diagnostics, key=lambda diagnostic: diagnostic.severity != "error")[
        :MOST_KEPT
    ]
    diagnostics = [
        object_types.Diagnostic(
            object_types.Severity(diagnostic.severity),
            kept(diagnostic.message),
            diagnostic.code,
            tuple(
                _span(span, project, paths) for span in diagnostic.spans if paths.is_here(span.path)
            ),
            kept(more) if (more := "\n".join(_related_lines(diagnostic))) else None,
        )
        for diagnostic in chosen
    ]
    made = object_types.DiagnosticsSnapshot(report.tool, clock.now_s(), tuple(diagnostics))
    return DiagnosticsObjects(object_store.typed(made), tuple(blobs.values()))


def relate(
    change: Change, observation: NodeId, errors: Sequence[ToolDiagnostic], project: DiagnosedProject
) -> None:
    """Create an anchor for each distinct error, with an edge from the observation."""
    paths = _Paths(project._replace(folder=project.root))
    distinct: dict[str, list[ToolDiagnostic]] = {}
    for diagnostic in errors:
        distinct.setdefault(name(diagnostic), []).append(diagnostic)
    for title, same in list(distinct.items())[:MOST_ANCHORS]:
        anchor = anchors.diagnostic(title)
        anchors.put(change, anchor)
        places = {
            span.path: span.place
            for diagnostic in reversed(same)
            for span in reversed(diagnostic.spans)
            if paths.is_here(span.path)
        }
        for path, place in list(places.items())[-_MOST_FILES:]:
            file = anchors.file(path)
            anchors.put(change, file)
            change.link(anchor.id, file.id, "REFERENCES", Evidence("parser", span=place))
        change.link(observation, anchor.id, "MENTIONS", Evidence("parser"))


def name(diagnostic: ToolDiagnostic) -> str:
    """The name of an error without its line: `rustc E0433: … @ src/lib.rs`."""
    what = " ".join(part for part in (diagnostic.tool, diagnostic.test or diagnostic.code) if part)
    where = f" @ {diagnostic.spans[0].path}" if diagnostic.spans else ""
    message = " ".join(diagnostic.message.partition("\n")[0].split())
    room = max(_LONGEST_NAME - len(what) - len(where) - 2, 40)
    short = message if len(message) <= room else f"{message[: room - 1].rstrip()}…"
    return f"{what}: {short}{where}"[: 2 * _LONGEST_NAME]


def _related_lines(diagnostic: ToolDiagnostic) -> Iterator[str]:
    """More lines: the test, and labels of places."""
    if diagnostic.test:
        yield f"test {diagnostic.test}"
    for span in diagnostic.spans:
        if span.label:
            yield f"{span.place}: {span.label}"


def _span(span: ToolSpan, project: DiagnosedProject, paths: "_Paths") -> object_types.Span:
    first, last = paths.bytes_of_lines(span)
    return object_types.Span(
        object_store.derived_id("file", project.repo_id, span.path),
        first,
        last,
        None,
        span.start_line,
        span.start_column,
        span.end_line,
        span.end_column,
    )


@cache
def _places(project: DiagnosedProject) -> dict[str, str]:
    """The local folders and their replacements."""
    named = dict.fromkeys((project.home, os.path.realpath(project.home)), "~")
    named |= dict.fromkeys(_roots(project), ".")
    every = sorted(filter(_is_somewhere, named), key=len, reverse=True)
    return {path: named[path] for path in every}


@cache
def _pattern(project: DiagnosedProject) -> re.Pattern[str]:
    every = "|".join(re.escape(path[1:]) for path in _places(project))
    return re.compile(f"/{_BEGINS}(?:{every}){_ENDS}")


def _roots(project: DiagnosedProject) -> list[str]:
    """The project's root by all its names, including one through a link."""
    real = os.path.realpath(project.root)
    below = os.path.relpath(os.path.realpath(project.folder), real)
    way = project.folder if below == "." else project.folder.removesuffix(f"/{below}")
    every = dict.fromkeys((real, project.root, way))
    return [path for path in every if _is_somewhere(path) and os.path.realpath(path) == real]


def _is_somewhere(folder: str) -> bool:
    return os.path.isabs(folder) and bool(folder.strip("/")) and not folder.endswith("/")


class _Paths:
    """Maps the paths that tools print to files of the project."""

    def __init__(self, project: DiagnosedProject) -> None:
        self._project = project
        self._root = os.path.realpath(project.root)
        self._roots = _roots(project)
        self._known: dict[str, str | None] = {}
        self._lines: dict[str, list[int]] = {}

    def shown(self, path: str) -> str:
        """A path from the project's root; of a path outside of it, only the end."""
        if path not in self._known:
            self._known[path] = (
                self._locate(path) if len(self._known) < _MOST_CHECKED_PATHS else None
            )
        return self._known[path] or self._outside_path(path)

    def is_here(self, path: str) -> bool:
        return self.shown(path) == path and self._known[path] is not None

    def _locate(self, path: str) -> str | None:
        if not path or "\0" in path or path.startswith(("<", _ELSEWHERE)):
            return None
        try:
            # A path inside the project's folder is never matched with another file by its end.
            if os.path.isabs(path) and (os.path.lexists(path) or self._relative_path(path)):
                return self._project_path(path)
            for folder in (self._project.folder, self._project.root):
                if (inside := self._project_path(os.path.join(folder, path))) is not None:
                    return inside
            return self._by_its_end(path)
        except OSError:  # Such as a name that is too long for any file.
            return None

    def _outside_path(self, path: str) -> str:
        """The path of a file that is not in the project (any more), without local folders."""
        parts = path.split("/")
        if not os.path.isabs(path) and ".." not in parts:
            return path
        if below := self._relative_path(os.path.join(self._project.folder, path)):
            return below
        library = max((at for at, part in enumerate(parts) if part in _LIBRARIES), default=-1)
        return _ELSEWHERE + "/".join(parts[library:])

    def _relative_path(self, path: str) -> str | None:
        """A path from the root by its text alone, whether or not the file exists."""
        whole = os.path.normpath(path)
        inside = (whole[len(root) + 1 :] for root in self._roots if whole.startswith(f"{root}/"))
        return next(inside, None)

    def _by_its_end(self, path: str) -> str | None:
        """The file of a path with another root: in a container, or of a Go or Java package."""
        parts = [part for part in path.replace("\\", "/").split("/") if part]
        is_go = path.endswith(".go") and not os.path.isabs(path)
        for first in range(len(parts) - (not is_go)):
            rest = "/".join(parts[first:])
            for source in _SOURCES if first == 0 else ("",):
                inside = self._project_path(os.path.join(self._root, f"{source}{rest}"))
                if inside is not None:
                    return inside
        return None

    def _project_path(self, full: str) -> str | None:
        real = os.path.realpath(full)
        inside = os.path.relpath(real, self._root)
        is_outside = inside.startswith("../") or inside.partition("/")[0] in ("..", ".git", ".ctx")
        return None if is_outside or not os.path.isfile(real) else inside.replace(os.sep, "/")

    def bytes_of_lines(self, span: ToolSpan) -> tuple[int, int]:
        """The byte range of a span's lines in the current file; 0, 0 if unknown."""
        if span.start_line is None:
            return 0, 0
        starts = self._starts(span.path)
        last = max(span.end_line or span.start_line, span.start_line)
        if not 0 < span.start_line <= last < len(starts):
            return 0, 0
        return starts[span.start_line - 1], starts[last]

    def _starts(self, path: str) -> list[int]:
        """The offset of each line of a file, and the end of the last line."""
        if path not in self._lines:
            content = b""
            with contextlib.suppress(OSError):
                if len(self._lines) < _MOST_CHECKED_PATHS:
                    content = disk.read_plain(os.path.join(self._root, path), _LARGEST_FILE)
            lengths = [len(line) + 1 for line in content.removesuffix(b"\n").split(b"\n")]
            self._lines[path] = [0, *accumulate(lengths)]
        return self._lines[path]
