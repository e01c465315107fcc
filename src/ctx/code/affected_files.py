"""Which files must be resolved again when the meaning of a name changes, or may change.

These are all files that mention the name, or another name that is derived from it: see decision
0011.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from zlib import crc32

from ctx.code import code_tables
from ctx.code.resolve import facts
from ctx.code.resolve.facts import EVERYTHING

_ECMASCRIPT = ("typescript", "tsx", "javascript")
MANIFESTS = {
    "Cargo.toml": ("rust",),
    "go.mod": ("go",),
    "go.work": ("go",),
    "package.json": _ECMASCRIPT,
    "tsconfig.json": _ECMASCRIPT,
    "jsconfig.json": _ECMASCRIPT,
    "pnpm-workspace.yaml": _ECMASCRIPT,
}
"""Files that decide where imports lead, by language."""

_ALWAYS_COUNTED = 200
_CALLED_BY_MANIFESTS = frozenset(name for names in MANIFESTS.values() for name in names)
_FOLDER_MODULES = frozenset({"__init__", "index", "mod", "lib", "main"})
_FOLDER_IS_PACKAGE = (".go", ".java")
_MAKES_A_PACKAGE = frozenset({"__init__.py", "__init__.pyi"})
_AROUND_ITS_FOLDER = frozenset({"lib.rs", "main.rs", "mod.rs"})
_AROUND = frozenset({"super", "crate"})
"""Rust's names for enclosing modules."""


def files_affected_by(connection: Connection, names: set[str]) -> set[int] | None:
    """The files whose edges may change when these names mean something else: those that mention
    one, or a name that is derived from one, and so on. None: all files.

    If a large part of the files mentions the names, nearly all files are affected, and finding the
    rest would take longer than it saves.
    """
    (total,) = connection.execute("SELECT count(*) FROM mentioned").fetchone()
    most = max(_ALWAYS_COUNTED, total // 4)
    known = set(names)
    files: set[int] = set()
    while names:
        hashes = {crc32(name.encode("utf-8", "replace")) for name in names}
        # Includes files that were found before: they may pass on further names.
        speaking = dict(code_tables.files_mentioning(connection, hashes))
        files.update(speaking)
        if len(files) > most:
            return None
        making = [file_id for file_id, is_making in speaking.items() if is_making]
        names = _reexported_names(connection, making, names) - known
        known |= names
    return files


def _reexported_names(connection: Connection, files: Iterable[int], names: set[str]) -> set[str]:
    passed: set[str] = set()
    for path, known in code_tables.facts_of(connection, files):
        passing = facts.reexported_names(known, names)
        passed |= passing
        if EVERYTHING in passing:
            # Any name that is looked up in this file may come from there.
            passed |= names_of_file(path)
    return passed


def files_leading_to(connection: Connection, items: Sequence[int]) -> set[int] | None:
    """The files that may have an edge to these items, or have one stored; None: any file."""
    names: set[str] = set()
    for item in items:
        row = connection.execute(
            "SELECT name, parent, path, language FROM items"
            " JOIN files ON files.id = items.id >> 16 WHERE items.id = ?",
            (item,),
        ).fetchone()
        if row is None:
            continue
        name, parent, path, language = row
        names.add(name)
        if parent is None:
            if language in _CALLED_BY_MANIFESTS:
                # Its package may have a name that occurs in no path.
                return None
            names |= _names_of(path)
    files = files_affected_by(connection, names)
    if files is None:
        return None
    rows = connection.execute(
        "SELECT source >> 16 FROM edges WHERE target IN (SELECT value FROM json_each(?))",
        (str(list(items)),),
    )
    return files.union(file_id for (file_id,) in rows)


def names_in_path(connection: Connection, path: str) -> set[str]:
    """The names of a file, and of other files whose names depend on it."""
    names = _names_of(path)
    folder, _, name = path.rpartition("/")
    if name in _MAKES_A_PACKAGE:
        names.update(*(_names_of(file_id) for file_id in _paths_in_folder(connection, folder)))
    if name in _AROUND_ITS_FOLDER or (
        name.endswith(".rs") and any(_paths_in_folder(connection, path.removesuffix(".rs")))
    ):
        names |= _AROUND
    return names


def _paths_in_folder(connection: Connection, folder: str) -> Iterator[str]:
    """The paths of all files under a folder."""
    # "0" comes right after "/".
    span = (f"{folder}/", f"{folder}0") if folder else ("", "\U0010ffff")
    rows = connection.execute("SELECT path FROM files WHERE path BETWEEN ? AND ?", span)
    return (path for (path,) in rows)


def _names_of(path: str) -> set[str]:
    """The names by which a file may be imported: its own, or its folder's if it stands for the
    folder."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    names = {stem, os.path.splitext(name)[0]}
    if stem in _FOLDER_MODULES or name.endswith(_FOLDER_IS_PACKAGE):
        names.add(folder.rpartition("/")[2])
    return names


def names_of_file(path: str) -> set[str]:
    """The names by which other files may reach what a file re-exports."""
    return _names_of(path) | (_AROUND if path.endswith(".rs") else frozenset())
