"""The facts of all files, loaded on demand."""

import os
from array import array
from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from ctx import disk
from ctx.code.resolve import facts
from ctx.code.resolve.facts import Facts, ItemFacts
from ctx.code.source_model import NameMention, SourceImport
from ctx.code.vocabulary import KINDS, SLOTS

_MOST_FILES = 700
_OVERLOADING = frozenset({"java", "cpp"})
_MOST_NAMESAKES = 9
_MOST_NAMES = 10_000
_LARGEST_MANIFEST = 1 << 20


class SourceFile:
    """One file, indexed for lookups."""

    __slots__ = ("facts", "id", "items", "names", "outside", "path", "slots", "stars")

    def __init__(self, file_id: int, path: str, known: Facts, slots: bytes | None) -> None:
        self.id = file_id
        self.path = path
        self.facts = known
        self.items: tuple[ItemFacts, ...] = known.items
        self.slots = array("H", slots) if slots else None
        names: dict[int, dict[str, int | SourceImport | str]] = {}
        """The meaning of the names in each item: the index of an item, an import, or the type of a
        binding. An item takes precedence over an import, and an import over a binding. Of several
        items the last counts, as in most languages."""
        self.names = names
        self.stars: list[SourceImport] = []
        for binding in known.bindings:
            names.setdefault(binding.scope, {})[binding.name] = binding.type
        for import_ in known.imports:
            if import_.bound:
                names.setdefault(import_.scope, {})[import_.bound] = import_
            elif import_.item == "*":
                self.stars.append(import_)
        self.outside: dict[str, int] = {}
        """For methods outside of their type, by the name of the type: a separate index, which no
        item has."""
        for place, item in enumerate(known.items):
            around = item.parent
            if item.kind == "method" and item.bases:
                around = self.outside.setdefault(item.bases[0], -2 - len(self.outside))
            if item.kind == "macro" and known.language == "rust":
                # Functions and macros may have the same names.
                names.setdefault(around, {})[item.name + "!"] = place
            elif item.kind != "impl":
                here = names.setdefault(around, {})
                # Of overloads that differ only in their parameters, the simplest comes first.
                if not (known.language in _OVERLOADING and type(here.get(item.name)) is int):
                    here[item.name] = place

    def item_id(self, place: int) -> int:
        return self.id << SLOTS | (self.slots[place] if self.slots else place)

    def member(self, place: int, name: str) -> int | None:
        """The direct member of an item with a name."""
        entry = self.names.get(place, _NOTHING).get(name)
        return entry if type(entry) is int else None

    def imported(self, place: int, name: str) -> SourceImport | None:
        entry = self.names.get(place, _NOTHING).get(name)
        return entry if type(entry) is SourceImport else None

    def binding(self, place: int, name: str) -> str | None:
        entry = self.names.get(place, _NOTHING).get(name)
        return entry if type(entry) is str else None

    def members(self, place: int) -> Iterator[tuple[str, int]]:
        """The direct members of an item, by name."""
        for name, entry in self.names.get(place, _NOTHING).items():
            if type(entry) is int:
                yield name, entry


_NOTHING: dict[str, int | SourceImport | str] = {}


class Namesake(NamedTuple):
    id: int
    kind: str
    file_id: int


class World:
    """All files of a repository in the index."""

    def __init__(self, connection: Connection, root: str) -> None:
        self._connection = connection
        self.root = root
        self._files: dict[int, SourceFile | None] = {}
        self._named: dict[str, list[Namesake]] = {}
        rows: list[tuple[int, str, str | None]] = connection.execute(
            # By path: no answer may depend on the order of insertion.
            "SELECT id, path, language FROM files ORDER BY path"
        ).fetchall()
        self.ids: dict[str, int] = {path: number for number, path, _ in rows}
        """The id of each path, whatever the file contains."""
        self.languages: dict[int, str | None] = {number: language for number, _, language in rows}
        self._paths = {number: path for number, path, _ in rows}
        self._folders: dict[str, list[int]] | None = None

    def file(self, file_id: int) -> SourceFile | None:
        """A file, if it was parsed."""
        try:
            return self._files[file_id]
        except KeyError:
            pass
        if len(self._files) >= _MOST_FILES:
            self._files.clear()
        row = self._connection.execute(
            "SELECT slots, facts FROM facts WHERE file_id = ?", (file_id,)
        ).fetchone()
        path = self._paths.get(file_id)
        file = None
        if row and path is not None:
            file = SourceFile(file_id, path, facts.decode(row[1]), row[0])
        self._files[file_id] = file
        return file

    def mentions(self, file_id: int) -> tuple[NameMention, ...]:
        row = self._connection.execute(
            "SELECT mentions FROM mentioned WHERE file_id = ?", (file_id,)
        ).fetchone()
        return facts.decode_mentions(row[0]) if row else ()

    def at(self, path: str) -> SourceFile | None:
        number = self.ids.get(path)
        return None if number is None else self.file(number)

    def path(self, file_id: int) -> str:
        return self._paths[file_id]

    def in_folder(self, folder: str) -> list[int]:
        """The direct files of a folder; the project's root is the empty path."""
        if self._folders is None:
            folders: dict[str, list[int]] = {}
            for path, number in self.ids.items():
                folders.setdefault(path.rpartition("/")[0], []).append(number)
            self._folders = folders
        return self._folders.get(folder, [])

    def folders(self) -> Iterator[str]:
        self.in_folder("")
        yield from self._folders or ()

    def named(self, name: str) -> list[Namesake]:
        """The items with a name anywhere. If there are more than a few, only some are returned."""
        namesakes = self._named.get(name)
        if namesakes is None:
            if len(self._named) >= _MOST_NAMES:
                self._named.clear()
            rows = self._connection.execute(
                "SELECT items.id, kind FROM items JOIN files ON files.id = items.id >> ?"
                " WHERE name = ? ORDER BY path, start LIMIT ?",
                (SLOTS, name, _MOST_NAMESAKES),
            )
            namesakes = [Namesake(item, KINDS[kind], item >> SLOTS) for item, kind in rows]
            self._named[name] = namesakes
        return namesakes

    def files_with(self, kind: str, name: str) -> list[int]:
        """The files that contain an item of a kind and a name."""
        rows = self._connection.execute(
            "SELECT DISTINCT files.id FROM items JOIN files ON files.id = items.id >> ?"
            " WHERE name = ? AND kind = ? ORDER BY path",
            (SLOTS, name, KINDS.index(kind)),
        )
        return [number for (number,) in rows]

    def content(self, path: str) -> bytes | None:
        """The current content of a file of the project: a manifest, or the settings of a tool."""
        if path not in self.ids:
            return None
        try:
            return disk.read_plain(os.path.join(self.root, path), _LARGEST_MANIFEST)
        except OSError:
            return None


def normal_path(path: str) -> str:
    """A path without `.` and `..`; those that lead out of the project are left out."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
