"""Reading `code.db`: items by what people call them, and what is around them.

A name is any end of a qualified name: `connect`, `Client.connect`, `net.client.Client`; `::`, `.`,
`#` and `/` are the same. A place is a path, `src/net.py`, with a line, `src/net.py:42`, or with a
name in it, `src/net.py#connect`.
"""

import posixpath
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code import index_file
from ctx.code.model import (
    CONFIDENCES,
    IMPORTS,
    KINDS,
    LABELS,
    LOW,
    SLOTS,
    VISIBILITIES,
    Import,
    file_of,
    item_id,
)
from ctx.code.qualified import Names

_SEPARATORS = re.compile(r"::|[.#/]")
_LINE = re.compile(r"(.+?):(\d{1,9})(?::\d+)?", re.DOTALL)
_MOST_NAMESAKES = 2_000
_MOST_WORDS = 4_000
_AT_ONCE = 400
# Files that are called like their folder, or like the whole they begin.
_NAMED_BY_FOLDER = ("%/{0}/__init__.py", "%/{0}/mod.rs", "%lib.rs", "%main.rs")
# What stands for the crate that a person is in says nothing to others.
_HERE = frozenset({"", "crate", "self", "super", "this"})


class Located(NamedTuple):
    """An item of the code, and where it is."""

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


class File(NamedTuple):
    """A file of the project, as the index has it."""

    id: int
    path: str
    language: str | None
    lines: int
    skipped: str | None
    """Why nothing was read out of it; None: it was."""
    problems: int
    """Places that could not be understood."""


class Outlined(NamedTuple):
    """An item as an outline has it."""

    name: str
    kind: str
    visibility: str
    depth: int
    line: int
    end_line: int
    signature: str
    doc: str


class Edge(NamedTuple):
    """One item has to do with another."""

    source: int
    label: str
    target: int
    confidence: str
    line: int
    """In the file of the source."""
    times: int


class Imported(NamedTuple):
    """An import as it is written, and the item it leads to."""

    line: int
    written: Import
    target: int | None
    """None: out of the repository, or nobody knows."""


class Code:
    """One index of code, open for reading. To be closed, or used as a context."""

    def __init__(self, connection: Connection, root: str) -> None:
        self.connection = connection
        self._names = Names(connection, root)

    def __enter__(self) -> "Code":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # Finding

    def find(self, text: str, folder: str = "") -> list[Located]:
        """What a person means, in the order of the files; paths may begin in a folder.

        Nothing, one item, or several: an `impl` has the name of its type.
        """
        text = text.strip()
        placed = self._placed(text, folder)
        if placed is not None:
            return placed
        return self.named(text)

    def _placed(self, text: str, folder: str) -> list[Located] | None:
        """What a path leads to; None where the text begins with none."""
        file = self.file(text, folder)
        if file:
            return self.located([item_id(file.id, 0)])
        if found := _LINE.fullmatch(text):
            file = self.file(found[1], folder)
            return self._at_line(file.id, int(found[2])) if file else None
        path, mark, name = text.partition("#")
        file = self.file(path, folder) if mark else None
        if file is None:
            return None
        return [each for each in self.named(name) if each.path == file.path]

    def _at_line(self, file_id: int, line: int) -> list[Located]:
        row = self.connection.execute(
            "SELECT id FROM items WHERE id BETWEEN ? AND ? AND (line <= ? AND end_line >= ?"
            " OR parent IS NULL) ORDER BY parent IS NULL, end_line - line, id DESC LIMIT 1",
            (*_span(file_id), line, line),
        ).fetchone()
        return self.located(row) if row else []

    def named(self, text: str) -> list[Located]:
        """The items whose qualified name ends so; those that have all of it, where there are any.

        Where none has, names in between may be left out: many import a thing from where it is
        offered rather than from where it stands.
        """
        wanted = _parts(text)
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
        whole: list[Located] = []
        ending: list[Located] = []
        shortened: list[Located] = []
        for each in self.located(dict.fromkeys(ids)):
            parts = _parts(each.name)
            if parts == wanted:
                whole.append(each)
            elif parts[-len(wanted) :] == wanted:
                ending.append(each)
            elif parts[-1:] == wanted[-1:] and _has_in_order(parts, wanted):
                shortened.append(each)
        if len(wanted) == 1 and all(each.kind == "module" for each in whole):
            # One word is more often something in a file than the file of that name.
            return [*ending, *whole] or shortened
        return whole or ending or shortened

    def _ids(self, query: str, *values: object) -> list[int]:
        return [each for (each,) in self.connection.execute(query, values)]

    def located(self, ids: Iterable[int]) -> list[Located]:
        """Items by their ids, in the order of the files."""
        wanted = list(ids)
        found: list[Located] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            rows = self.connection.execute(
                "SELECT items.id, kind, visibility, path, line, end_line, signature, doc FROM items"
                " JOIN files ON files.id = items.id >> 16"
                f" WHERE items.id IN ({', '.join('?' * len(part))})",
                part,
            )
            for each, kind, visibility, path, line, end_line, signature, doc in rows:
                shape = KINDS[kind], VISIBILITIES[visibility], path, line, end_line, signature, doc
                found.append(Located(each, self._names.of(each), *shape))
        return sorted(found, key=lambda each: (each.path, each.line, each.id))

    def near(self, text: str) -> list[str]:
        """Names that somebody may have meant who wrote one that nobody has."""
        import difflib

        wanted = _parts(text) or [text]
        last = wanted[-1]
        if len(wanted) > 1 and (namesakes := self.named(last)):
            # The name is right, and what stands before it is not, or not all of it.
            best = sorted(namesakes, key=lambda each: -len({*wanted} & {*_parts(each.name)}))
            return list(dict.fromkeys(each.name for each in best))[:3]
        for length in (2, 1):
            beginning = last[:length]
            if not beginning:
                continue
            names = self._ids(
                "SELECT DISTINCT name FROM items WHERE name >= ? AND name < ? LIMIT ?",
                beginning,
                beginning + "\U0010ffff",
                _MOST_WORDS,
            )
            if found := difflib.get_close_matches(last, map(str, names), n=3):
                return found
        return []

    def near_path(self, path: str) -> list[str]:
        import difflib

        name = posixpath.basename(path)
        every: list[str] = []
        for (each,) in self.connection.execute("SELECT path FROM files ORDER BY path"):
            if posixpath.basename(each)[:1] == name[:1]:
                every.append(each)
        names = {posixpath.basename(each): each for each in every[:_MOST_WORDS]}
        return [names[each] for each in difflib.get_close_matches(name, list(names), n=3)]

    def beginning(self, text: str, most: int) -> Iterator[tuple[str, str]]:
        """Names that begin so, with their kinds: what a shell offers."""
        for name, kind in self.connection.execute(
            "SELECT name, min(kind) FROM items WHERE name >= ? AND name < ? AND parent NOT NULL"
            " GROUP BY name LIMIT ?",
            (text, text + "\U0010ffff", most),
        ):
            yield name, KINDS[kind]

    # Files

    def file(self, path: str, folder: str = "") -> File | None:
        """A file by its path from a folder, else from the project's root."""
        for base in dict.fromkeys((folder, "")):
            inside = posixpath.normpath(posixpath.join(base, path))
            row = self.connection.execute(
                "SELECT id, path, language, lines, skipped, problems FROM files WHERE path = ?",
                (inside,),
            ).fetchone()
            if row:
                return File(*row)
        return None

    def outline(self, file: File) -> list[Outlined]:
        """What is in a file, in its order. The file itself is not in it."""
        depths: dict[int | None, int] = {None: -1}
        rows = self.connection.execute(
            "SELECT id, parent, kind, visibility, name, line, end_line, signature, doc FROM items"
            " WHERE id BETWEEN ? AND ? ORDER BY start, stop DESC, id",
            _span(file.id),
        ).fetchall()
        parents = {row[0]: row[1] for row in rows}
        found = []
        for each, parent, kind, visibility, name, *where in rows:
            if parent is None:
                depths[each] = 0
                continue
            if parent not in depths:
                depths[parent] = depths.get(parents.get(parent), 0) + 1
            depths[each] = depths[parent] + 1
            shape = KINDS[kind], VISIBILITIES[visibility], depths[each] - 1
            found.append(Outlined(name, *shape, *where))
        return found

    def within(self, items: Iterable[int]) -> list[int]:
        """Items with all that is in them."""
        found: dict[int, None] = {}
        for each in items:
            first, last = _span(file_of(each))
            if each == first:
                rows = self._ids("SELECT id FROM items WHERE id BETWEEN ? AND ?", first, last)
            else:
                rows = self._ids(
                    "WITH RECURSIVE inside(id) AS (SELECT ?1 UNION SELECT items.id FROM items"
                    " JOIN inside ON items.parent = inside.id WHERE items.id BETWEEN ?2 AND ?3)"
                    " SELECT id FROM inside",
                    *(each, first, last),
                )
            found.update(dict.fromkeys(rows))
        return list(found)

    # Edges

    def edges_from(
        self, items: Iterable[int], labels: Sequence[str] = LABELS, least: int = LOW
    ) -> list[Edge]:
        return self._edges("source", items, labels, least)

    def edges_to(
        self, items: Iterable[int], labels: Sequence[str] = LABELS, least: int = LOW
    ) -> list[Edge]:
        return self._edges("target", items, labels, least)

    def _edges(
        self, end: str, items: Iterable[int], labels: Sequence[str], least: int
    ) -> list[Edge]:
        """The edges at some items, the surest first, then those of items in their order."""
        found: list[Edge] = []
        numbers = ", ".join(str(LABELS.index(label)) for label in labels)
        for item in items:
            rows = self.connection.execute(
                "SELECT source, label, target, confidence, line, times FROM edges"
                f" WHERE {end} = ? AND label IN ({numbers}) AND confidence >= ?",
                (item, least),
            )
            for source, label, target, confidence, line, times in rows:
                edge = Edge(source, LABELS[label], target, CONFIDENCES[confidence], line, times)
                found.append(edge)
        return sorted(
            found, key=lambda edge: (-CONFIDENCES.index(edge.confidence), edge.source, edge.line)
        )

    def imports(self, file_id: int) -> list[tuple[int, Imported]]:
        """The imports of a file, each with the item that has it."""
        from ctx.code.resolve import facts

        row = self.connection.execute(
            "SELECT slots, facts, targets FROM facts WHERE file_id = ?", (file_id,)
        ).fetchone()
        if row is None:
            return []
        slots = array("H", row[0]) if row[0] else None
        targets = array("q", row[2]) if row[2] else ()
        found = []
        for number, each in enumerate(facts.decode(row[1]).imports):
            scope = max(each.scope, 0)
            target = targets[number] if number < len(targets) else 0
            owner = item_id(file_id, slots[scope] if slots else scope)
            found.append((owner, Imported(each.line, each, target or None)))
        return found

    def importing_files(self) -> Iterator[tuple[int, int]]:
        """Which file imports which other, by their ids, each pair once."""
        yield from self.connection.execute(
            "SELECT DISTINCT source >> 16, target >> 16 FROM edges"
            " WHERE label = ? AND source >> 16 <> target >> 16",
            (IMPORTS,),
        )


def opened(database: str, root: str) -> Code | None:
    """The index as it is; None where there is none that can be read."""
    connection = index_file.open_for_reading(database)
    return Code(connection, root) if connection else None


def without_impls(found: Sequence[Located]) -> list[Located]:
    """Items without the blocks that only add to one of them."""
    named = {each.name for each in found if each.kind != "impl"}
    return [each for each in found if each.kind != "impl" or each.name not in named]


def _has_in_order(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    left = iter(parts)
    return all(part in left for part in wanted)


def _span(file_id: int) -> tuple[int, int]:
    return item_id(file_id, 0), item_id(file_id, (1 << SLOTS) - 1)


def _parts(text: str) -> list[str]:
    parts = _SEPARATORS.split(text)
    while parts and parts[0] in _HERE:
        parts.pop(0)
    return [part for part in parts if part]
