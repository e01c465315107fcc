"""Reading `code.db`: find items by name or place, and their surroundings.

A name is any suffix of a qualified name: `connect`, `Client.connect`, `net.client.Client`; `::`,
`.`, `#` and `/` are equivalent. A place is a path, `src/net.py`, with a line, `src/net.py:42`, or
with a name, `src/net.py#connect`.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code import index_file
from ctx.code.code_graph import CodeGraph, Follow
from ctx.code.qualified_names import QualifiedNames
from ctx.code.vocabulary import KINDS, SLOTS, VISIBILITIES, file_of, item_id

_SEPARATORS = re.compile(r"::|[.#/]")
PLACE = re.compile(r"(.+?):(\d{1,9})(?::\d+)?", re.DOTALL)
"""A path and a line, as compilers print them."""

_MOST_NAMESAKES = 2_000
_AT_ONCE = 400
# Files that are named after their folder or package.
_NAMED_BY_FOLDER = ("%/{0}/__init__.py", "%/{0}/mod.rs", "%lib.rs", "%main.rs")
# Prefixes for the current crate or module, which do not help to find an item.
_HERE = frozenset({"", "crate", "self", "super", "this"})


class LocatedItem(NamedTuple):
    """An item of the code with its location."""

    id: int
    name: str
    """Its qualified name."""
    kind: str
    visibility: str
    path: str
    line: int
    end_line: int
    signature: str
    doc: str
    """The first sentence of its documentation."""


class IndexedFile(NamedTuple):
    """A file of the project in the index."""

    id: int
    path: str
    language: str | None
    lines: int
    skipped: str | None
    """Why it was not parsed; None if it was."""
    problems: int
    """Places with a syntax error."""


class OutlineEntry(NamedTuple):
    """An item in an outline."""

    name: str
    kind: str
    visibility: str
    depth: int
    line: int
    end_line: int
    signature: str
    doc: str


class _Matching(NamedTuple):
    """Items by how much of their qualified name matches."""

    whole: list[LocatedItem]
    ending: list[LocatedItem]
    shortened: list[LocatedItem]
    """Names in the middle are missing."""


class Code(CodeGraph):
    """An open code index. Close it, or use it as a context manager."""

    def __init__(self, connection: Connection, root: str, follow: Follow | None = None) -> None:
        super().__init__(connection, follow)
        self._root = root
        self._names = QualifiedNames(connection, root)

    def __enter__(self) -> "Code":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # Finding

    def files_with_hash(self, prefix: str) -> list[tuple[str, bytes]]:
        """The files whose content has a hash that begins with these hexadecimal digits."""
        rows = self.connection.execute(
            "SELECT path, hash FROM files WHERE hash NOT NULL"
            " AND substr(lower(hex(hash)), 1, ?) = ? ORDER BY path",
            (len(prefix), prefix),
        )
        return [(path, hash) for path, hash in rows]

    def find(self, text: str, folder: str = "") -> list[LocatedItem]:
        """The items that a person refers to, in file order; paths may be relative to a folder.

        The result may have no, one or several items: an `impl` has the name of its type.
        """
        text = text.strip()
        placed = self._items_at_path(text, folder)
        if placed is not None:
            return placed
        return self.named(text)

    def _items_at_path(self, text: str, folder: str) -> list[LocatedItem] | None:
        """The items at a path; None if the text does not begin with one."""
        file = self.file(text, folder)
        if file:
            return self.located([item_id(file.id, 0)])
        if match := PLACE.fullmatch(text):
            file = self.file(match[1], folder)
            return self._at_line(file, int(match[2])) if file else None
        path, mark, name = text.partition("#")
        file = self.file(path, folder) if mark else None
        return self._items_in_file(file, name) if file else None

    def _at_line(self, file: IndexedFile, line: int) -> list[LocatedItem]:
        if not 1 <= line <= max(file.lines, 1):
            return []
        row = self.connection.execute(
            "SELECT id FROM items WHERE id BETWEEN ? AND ? AND (line <= ? AND end_line >= ?"
            " OR parent IS NULL) ORDER BY parent IS NULL, end_line - line, id DESC LIMIT 1",
            (*_span(file.id), line, line),
        ).fetchone()
        return self.located(row) if row else []

    def _items_in_file(self, file: IndexedFile, name: str) -> list[LocatedItem]:
        """The items of a file whose name ends with this."""
        wanted = name_parts(name)
        ids = self._ids(
            "SELECT id FROM items WHERE id BETWEEN ? AND ? AND name IN (?, ?)",
            *(*_span(file.id), wanted[-1] if wanted else name, name),
        )
        matching = self._sort_matches(ids, wanted)
        return matching.whole + matching.ending or matching.shortened

    def named(self, text: str) -> list[LocatedItem]:
        """The items whose qualified name ends with this; for a name of several words, only exact
        suffixes if there are any.

        Otherwise names in the middle may be missing: people often import an item from a package
        that re-exports it.
        """
        wanted = name_parts(text)
        if not wanted:
            return []
        last = wanted[-1]
        ids = self._ids(
            "SELECT id FROM items WHERE name IN (?, ?) LIMIT ?", last, text, _MOST_NAMESAKES
        )
        escaped = re.sub(r"([%_\\])", r"\\\1", last)
        for pattern in _NAMED_BY_FOLDER:
            like = pattern.replace("_", r"\_").format(escaped)
            ids += self._ids(
                "SELECT id << 16 FROM files WHERE path LIKE ? ESCAPE '\\' LIMIT ?", like, 200
            )
        matching = self._sort_matches(dict.fromkeys(ids), wanted)
        if len(wanted) > 1:
            return matching.whole or matching.ending or matching.shortened
        # A single word more often refers to an item than to a file, and an item that is named by it
        # alone hides nothing else.
        items = [item for item in matching.whole if item.kind != "module"]
        files = [item for item in matching.whole if item.kind == "module"]
        return [*items, *matching.ending, *files] or matching.shortened

    def _sort_matches(self, ids: Iterable[int], wanted: list[str]) -> _Matching:
        matching = _Matching([], [], [])
        for item in self.located(ids):
            own = name_parts(item.name)
            if own == wanted:
                matching.whole.append(item)
            elif own[-len(wanted) :] == wanted:
                matching.ending.append(item)
            elif own[-1:] == wanted[-1:] and _has_in_order(own, wanted):
                matching.shortened.append(item)
        return matching

    def _ids(self, query: str, *values: object) -> list[int]:
        return [item for (item,) in self.connection.execute(query, values)]

    def located(self, ids: Iterable[int]) -> list[LocatedItem]:
        """Items by id, in file order."""
        wanted = list(ids)
        items: list[LocatedItem] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            self._names.load(part)
            rows = self.connection.execute(
                "SELECT items.id, kind, visibility, path, line, end_line, signature, doc FROM items"
                " JOIN files ON files.id = items.id >> 16"
                f" WHERE items.id IN ({', '.join('?' * len(part))})",
                part,
            )
            for item, kind, visibility, path, line, end_line, signature, doc in rows:
                shape = KINDS[kind], VISIBILITIES[visibility], path, line, end_line, signature, doc
                items.append(LocatedItem(item, self._names.qualified_name(item), *shape))
        return sorted(items, key=lambda item: (item.path, item.line, item.id))

    # Files

    def file(self, path: str, folder: str = "") -> IndexedFile | None:
        """A file by absolute path, or relative to a folder, else to the project's root."""
        for inside in self.inside(path, folder):
            row = self.connection.execute(
                "SELECT id, path, language, lines, skipped, problems FROM files WHERE path = ?",
                (inside,),
            ).fetchone()
            if row:
                return IndexedFile(*row)
        return None

    def files_named(self, name: str, most: int) -> list[str]:
        """The paths of files with a name, in any folder."""
        escaped = re.sub(r"([%_\\])", r"\\\1", name)
        rows = self.connection.execute(
            "SELECT path FROM files WHERE path = ? OR path LIKE ? ESCAPE '\\'"
            " ORDER BY path LIMIT ?",
            (name, f"%/{escaped}", most),
        )
        return [path for (path,) in rows]

    def inside(self, path: str, folder: str = "") -> list[str]:
        """The paths from the root that a path can mean; those with `..` at the beginning are
        outside."""
        path = os.path.expanduser(path) if path.startswith("~/") else path
        if not os.path.isabs(path) or "\0" in path:
            joined = (posixpath.join(base, path) for base in (folder, ""))
            return list(dict.fromkeys(map(posixpath.normpath, joined)))
        # The folder may have been reached through a link, unlike the root. A link as the last
        # component is not followed: links are not files of the project.
        above, name = os.path.split(os.path.normpath(path))
        return [os.path.relpath(os.path.join(os.path.realpath(above), name), self._root)]

    def outline(self, file: IndexedFile) -> list[OutlineEntry]:
        """The items of a file in order, without the file itself."""
        return [entry for _, entry in self.outline_with_ids(file)]

    def outline_with_ids(self, file: IndexedFile) -> list[tuple[int, OutlineEntry]]:
        depths: dict[int | None, int] = {None: -1}
        rows = self.connection.execute(
            "SELECT id, parent, kind, visibility, name, line, end_line, signature, doc FROM items"
            " WHERE id BETWEEN ? AND ? ORDER BY start, stop DESC, id",
            _span(file.id),
        ).fetchall()
        parents = {row[0]: row[1] for row in rows}
        entries = []
        for item, parent, kind, visibility, name, *where in rows:
            if parent is None:
                depths[item] = 0
                continue
            if parent not in depths:
                depths[parent] = depths.get(parents.get(parent), 0) + 1
            depths[item] = depths[parent] + 1
            shape = KINDS[kind], VISIBILITIES[visibility], depths[item] - 1
            entries.append((item, OutlineEntry(name, *shape, *where)))
        return entries

    def within(self, items: Iterable[int]) -> list[int]:
        """Items with everything they contain."""
        ids: dict[int, None] = {}
        for item in items:
            first, last = _span(file_of(item))
            if item == first:
                rows = self._ids("SELECT id FROM items WHERE id BETWEEN ? AND ?", first, last)
            else:
                rows = self._ids(
                    "WITH RECURSIVE inside(id) AS (SELECT ?1 UNION SELECT items.id FROM items"
                    " JOIN inside ON items.parent = inside.id WHERE items.id BETWEEN ?2 AND ?3)"
                    " SELECT id FROM inside",
                    *(item, first, last),
                )
            ids.update(dict.fromkeys(rows))
        return list(ids)


def open_index(database: str, root: str, follow: Follow | None = None) -> Code | None:
    """Open the index as it is; None if there is none that can be read."""
    connection = index_file.open_for_reading(database)
    return Code(connection, root, follow) if connection else None


def without_impls(items: Sequence[LocatedItem]) -> list[LocatedItem]:
    """Items without the `impl` blocks that only extend one of them."""
    named = {item.name for item in items if item.kind != "impl"}
    return [item for item in items if item.kind != "impl" or item.name not in named]


def exact_matches(items: Sequence[LocatedItem], name: str) -> list[LocatedItem]:
    """Those with exactly this name, else all."""
    return [item for item in items if item.name == name] or list(items)


def name_parts(text: str) -> list[str]:
    """The single names in a qualified name."""
    parts = _SEPARATORS.split(text)
    while parts and parts[0] in _HERE:
        parts.pop(0)
    return [part for part in parts if part]


def _has_in_order(own: Sequence[str], wanted: Sequence[str]) -> bool:
    left = iter(own)
    return all(part in left for part in wanted)


def _span(file_id: int) -> tuple[int, int]:
    return item_id(file_id, 0), item_id(file_id, (1 << SLOTS) - 1)
