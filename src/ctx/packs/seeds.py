"""Look up what a task names: files, items, tasks and decisions.

A name that one item has refers to it with certainty. A name of several items is less certain, and a
very common name is left to the text search.
"""

import posixpath
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx.code.lookup import Code, LocatedItem, name_parts, without_impls
from ctx.errors import CtxError
from ctx.ids import NodeId
from ctx.memory import documents_by_number
from ctx.memory.graphs import Graphs
from ctx.search import trace_frames
from ctx.search.entities import Entities
from ctx.search.trace_frames import CodeFrame

_MOST_NAMESAKES = 12
_MOST_CHECKED = 100
_MOST_NAMES = 20
_MOST_PATHS = 20
_MOST_FRAMES = 12
_MOST_SCANS = 3
_FRAME_FADES = 0.85
"""The factor per stack frame: a caller is less related to a failure than the function it calls."""


class NamedSeeds(NamedTuple):
    """Items and files that a task names."""

    items: dict[int, float]
    """The confidence that each is meant, up to 1."""
    in_order: tuple[LocatedItem, ...]
    """The same items in the order in which they are named."""
    files: tuple[str, ...]


def in_code(code: Code, mentioned: Entities) -> NamedSeeds:
    files = _Files(code)
    items: dict[int, float] = {}
    located: dict[int, LocatedItem] = {}
    paths = dict.fromkeys(
        path for word in mentioned.paths[:_MOST_PATHS] for path in files.meant(word)
    )

    def take(meant: Sequence[LocatedItem], sure: float) -> None:
        for item in meant:
            items[item.id] = max(items.get(item.id, 0.0), sure)
            located.setdefault(item.id, item)

    sure = 1.0
    for frame in list(trace_frames.innermost(mentioned.frames))[:_MOST_FRAMES]:
        if meant := _of_frame(code, files, frame):
            take(meant, sure)
            paths.setdefault(meant[0].path)
            sure *= _FRAME_FADES
    for name in mentioned.names[:_MOST_NAMES]:
        meant = items_named(code, name)
        take(meant, 1.0 / len(meant) if meant else 0.0)
    return NamedSeeds(items, tuple(located.values()), tuple(paths))


def in_memory(graphs: Graphs, mentioned: Entities) -> list[NodeId]:
    """The tasks and decisions that are named."""
    node_ids: dict[NodeId, None] = {}
    for name in mentioned.tasks[:_MOST_NAMES]:
        for connection in graphs.connections:
            try:
                node_ids.setdefault(documents_by_number.find(connection, name))
            except CtxError:
                # There is no such document, or there are two.
                continue
    return list(node_ids)


def items_named(code: Code, name: str) -> list[LocatedItem]:
    """The items with a name, if it is specific enough."""
    wanted = name_parts(name)
    if not wanted:
        return []
    rows = code.connection.execute(
        "SELECT id FROM items WHERE name = ? LIMIT ?", (wanted[-1], _MOST_CHECKED + 1)
    ).fetchall()
    if len(rows) > (_MOST_CHECKED if len(wanted) > 1 else _MOST_NAMESAKES):
        return []
    every = code.located([item for (item,) in rows])
    meant = [item for item in every if name_parts(item.name)[-len(wanted) :] == wanted]
    if not meant and len(wanted) > 1:
        # Names in the middle may be missing, or the item is re-exported: only the owner must match.
        meant = [item for item in every if name_parts(item.name)[-2:] == wanted[-2:]]
    meant = without_impls(meant)
    return meant if len(meant) <= _MOST_NAMESAKES else []


def _of_frame(code: Code, files: "_Files", frame: CodeFrame) -> list[LocatedItem]:
    for path in files.meant(frame.path)[:1]:
        return [item for item in code.find(f"{path}:{frame.line}") if item.kind != "module"]
    meant = items_named(code, frame.name) if frame.name else []
    return meant if len(meant) == 1 else []


class _Files:
    """Finds files by paths that may begin elsewhere or be only a suffix."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._known: dict[str, list[str]] = {}
        self._scans = 0

    def meant(self, path: str) -> list[str]:
        if path not in self._known:
            self._known[path] = self._paths_ending(path)
        return self._known[path]

    def _paths_ending(self, path: str) -> list[str]:
        whole = path.replace("\\", "/")
        if "\0" in whole or len(whole) > 1_000:
            return []
        for end in _ends(whole):
            if file := self._code.file(end):
                return [file.path]
        # The beginning may be missing, which requires a scan of all paths.
        name = posixpath.normpath(whole).lstrip("/")
        if self._scans >= _MOST_SCANS or name.startswith(".."):
            return []
        self._scans += 1
        escaped = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = self._code.connection.execute(
            "SELECT path FROM files WHERE path LIKE ? ESCAPE '\\' ORDER BY length(path) LIMIT 4",
            (f"%/{escaped}",),
        ).fetchall()
        return [other for (other,) in rows] if len(rows) < 4 else []


def _ends(path: str) -> Iterable[str]:
    """The path, and its suffixes without the first folders; a bare name is too little."""
    pieces = [piece for piece in path.split("/") if piece not in ("", ".")]
    if path.startswith("/"):
        yield path
    for first in range(max(1, len(pieces) - 1) if len(pieces) > 1 else 1):
        if rest := "/".join(pieces[first:]):
            yield rest
