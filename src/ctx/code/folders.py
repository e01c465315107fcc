"""The folders of the code, from the paths in `code.db`."""

from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple


class FolderEntry(NamedTuple):
    """A file or a folder in a folder."""

    name: str
    path: str
    is_folder: bool
    files: int
    lines: int
    language: str | None
    """Null for a folder, and for a file in an unknown language."""


def entries(connection: Connection, folder: str) -> list[FolderEntry]:
    """What a folder contains, folders first. Empty if the index has no such folder."""
    start, where, values = _range(folder)
    rows = connection.execute(
        "SELECT iif(instr(rest, '/'), substr(rest, 1, instr(rest, '/')), rest) AS name, count(*),"
        " sum(lines), max(language) FROM (SELECT substr(path, ?) AS rest, lines, language"
        f" FROM files{where}) GROUP BY name",
        (len(start) + 1, *values),
    ).fetchall()
    made = [
        FolderEntry(
            name.rstrip("/"),
            start + name.rstrip("/"),
            name.endswith("/"),
            files,
            lines,
            None if name.endswith("/") else language,
        )
        for name, files, lines, language in rows
    ]
    return sorted(made, key=lambda each: (not each.is_folder, each.name))


def largest_files(connection: Connection, folder: str, most: int) -> list[tuple[str, int]]:
    """The paths below a folder with the most lines, and their lines."""
    _, where, values = _range(folder)
    rows = connection.execute(
        f"SELECT path, lines FROM files{where} ORDER BY lines DESC, path LIMIT ?", (*values, most)
    )
    return rows.fetchall()


def lines_of(connection: Connection, paths: Sequence[str]) -> dict[str, int]:
    """The lines of those of these files that the index has."""
    places = ", ".join("?" * len(paths))
    rows = connection.execute(f"SELECT path, lines FROM files WHERE path IN ({places})", paths)
    return dict(rows.fetchall())


def _range(folder: str) -> tuple[str, str, tuple[str, ...]]:
    """How paths in a folder begin, and the condition for them: `/` is followed by `0`."""
    if not folder:
        return "", "", ()
    return f"{folder}/", " WHERE path > ? AND path < ?", (f"{folder}/", f"{folder}0")
