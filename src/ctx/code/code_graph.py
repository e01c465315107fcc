"""Reading the edges of the code.

Names are resolved on demand, so all access to edges goes through here: the files that matter for an
answer are resolved first, and the answer is the same as if all files were.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx.code import index_file
from ctx.code.vocabulary import CALLS, CONFIDENCES, IMPORTS, LABELS, LOW, file_of, item_id

if TYPE_CHECKING:
    from ctx.code.source_model import SourceImport

Follow = Callable[[Sequence[int]], None]
"""Resolves pending files, by id. If that is not possible, they stay pending, and their edges are
older than the rest."""


class CodeEdge(NamedTuple):
    """An edge from one item to another."""

    source: int
    label: str
    target: int
    confidence: str
    line: int
    """In the file of the source."""
    times: int


class FileImport(NamedTuple):
    """An import as written, and the item it leads to."""

    line: int
    written: "SourceImport"
    target: int | None
    """None: outside of the repository, or unknown."""


class CodeGraph:
    """The edges of one index. Without `follow`, only edges that are resolved already."""

    def __init__(self, connection: Connection, follow: Follow | None = None) -> None:
        self.connection = connection
        self._follow = follow

    def edges_from(
        self, items: Iterable[int], labels: Sequence[str] = LABELS, least: int = LOW
    ) -> list[CodeEdge]:
        wanted = list(items)
        if waiting := self._unresolved_files():
            self._have_followed(waiting, map(file_of, wanted))
        return self._edges("source", wanted, labels, least)

    def edges_to(
        self, items: Iterable[int], labels: Sequence[str] = LABELS, least: int = LOW
    ) -> list[CodeEdge]:
        wanted = list(items)
        if waiting := self._unresolved_files():
            from ctx.code import affected_files

            files = affected_files.files_leading_to(self.connection, wanted)
            self._have_followed(waiting, waiting if files is None else files)
        return self._edges("target", wanted, labels, least)

    def _edges(
        self, end: str, items: Iterable[int], labels: Sequence[str], least: int
    ) -> list[CodeEdge]:
        """The edges of some items, the most certain first, then in the order of the items."""
        place_of = {item: place for place, item in enumerate(items)}
        numbers = ", ".join(str(LABELS.index(label)) for label in labels)
        rows = self.connection.execute(
            f"SELECT source, label, target, confidence, line, times, {end} FROM edges"
            f" WHERE {end} IN (SELECT value FROM json_each(?))"
            f" AND label IN ({numbers}) AND confidence >= ?",
            (str(list(place_of)), least),
        ).fetchall()
        rows.sort(key=lambda row: (-row[3], row[0], row[4], place_of[row[6]], row[1], row[2]))
        return [
            CodeEdge(source, LABELS[label], target, CONFIDENCES[confidence], line, times)
            for source, label, target, confidence, line, times, _ in rows
        ]

    def joined_files(
        self, files: Iterable[int], labels: Sequence[str] = LABELS, least: int = LOW
    ) -> dict[int, set[int]]:
        """For each of some files, the others among them that an edge connects it to, in either
        direction."""
        wanted = set(files)
        if waiting := self._unresolved_files():
            self._have_followed(waiting, wanted)
        numbers = ", ".join(str(LABELS.index(label)) for label in labels)
        joined: dict[int, set[int]] = {file_id: set() for file_id in wanted}
        for file_id in wanted:
            rows = self.connection.execute(
                "SELECT DISTINCT target >> 16 FROM edges WHERE source BETWEEN ? AND ?"
                f" AND label IN ({numbers}) AND confidence >= ?",
                (item_id(file_id, 0), item_id(file_id + 1, 0) - 1, least),
            )
            for (other,) in rows:
                if other in wanted and other != file_id:
                    joined[file_id].add(other)
                    joined[other].add(file_id)
        return joined

    def imports(self, file_id: int) -> list[tuple[int, FileImport]]:
        """The imports of a file, each with the item that contains it."""
        from ctx.code.resolve import facts

        if waiting := self._unresolved_files():
            self._have_followed(waiting, (file_id,))
        row = self.connection.execute(
            "SELECT slots, facts, targets FROM facts WHERE file_id = ?", (file_id,)
        ).fetchone()
        if row is None:
            return []
        slots = array("H", row[0]) if row[0] else None
        targets = array("q", row[2]) if row[2] else ()
        imports = []
        for number, written in enumerate(facts.decode(row[1]).imports):
            scope = max(written.scope, 0)
            target = targets[number] if number < len(targets) else 0
            owner = item_id(file_id, slots[scope] if slots else scope)
            imports.append((owner, FileImport(written.line, written, target or None)))
        return imports

    def importing_files(self) -> list[tuple[int, int]]:
        """The pairs of files in which the first imports the second, by id, without duplicates."""
        self.have_all_followed()
        return self.connection.execute(
            "SELECT DISTINCT source >> 16, target >> 16 FROM edges"
            " WHERE label = ? AND source >> 16 <> target >> 16",
            (IMPORTS,),
        ).fetchall()

    def leading_to(self, items: Iterable[int], most: int) -> dict[int, int]:
        """The number of edges to each item, counted up to a limit."""
        rows = self.connection.execute(
            "SELECT value, (SELECT count(*) FROM"
            " (SELECT 1 FROM edges WHERE target = value LIMIT ?)) FROM json_each(?)",
            (most, str(list(items))),
        )
        return dict(rows)

    def calling_items(self, least: int) -> list[tuple[int, int]]:
        """The pairs of items in which the first calls the second."""
        self.have_all_followed()
        return self.connection.execute(
            "SELECT source, target FROM edges WHERE label = ? AND confidence >= ?", (CALLS, least)
        ).fetchall()

    # Pending files

    def _unresolved_files(self) -> set[int]:
        return set(index_file.unresolved_files(self.connection)) if self._follow else set()

    def _have_followed(self, waiting: set[int], files: Iterable[int]) -> None:
        wanted = waiting.intersection(files)
        if wanted and self._follow:
            self._follow(sorted(wanted))

    def have_all_followed(self) -> None:
        waiting = self._unresolved_files()
        self._have_followed(waiting, waiting)
