"""How much of the code is indexed, what its folders contain, and the age of the index."""

from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.code import index_file


class LanguageFiles(NamedTuple):
    language: str
    files: int
    lines: int


class UnreadFiles(NamedTuple):
    reason: str
    files: int


class Coverage(NamedTuple):
    """How much of the code is indexed, what its folders contain, and the age of the index."""

    files: int
    parsed: int
    items: int
    edges: int
    problems: int
    """Files with syntax that was not understood."""
    unresolved: int
    """Files whose mentions are not resolved yet."""
    left_out: int
    """Links, submodules and the like, which are never indexed."""
    refreshed_at: str | None
    languages: tuple[LanguageFiles, ...]
    skipped: tuple[UnreadFiles, ...]


def refreshed_at(connection: Connection) -> str | None:
    """The time of the last refresh; None until the first one is complete."""
    ms = index_file.read_note(connection, "refreshed_at")
    return clock.iso(ms) if isinstance(ms, int) else None


def measure(connection: Connection) -> Coverage:
    files, parsed, problems, unresolved = connection.execute(
        "SELECT count(*), total(skipped IS NULL AND hash NOT NULL), total(problems > 0),"
        " total(resolved = 0) FROM files"
    ).fetchone()
    items, edges = connection.execute(
        "SELECT (SELECT count(*) FROM items WHERE parent NOT NULL), (SELECT count(*) FROM edges)"
    ).fetchone()
    languages = connection.execute(
        "SELECT language, count(*), sum(lines) FROM files WHERE skipped IS NULL"
        " AND language NOT NULL GROUP BY language ORDER BY 2 DESC, 1"
    )
    skipped = connection.execute(
        "SELECT skipped, count(*) FROM files WHERE skipped NOT NULL"
        " GROUP BY skipped ORDER BY 2 DESC, 1"
    )
    left_out = index_file.read_note(connection, "left_out")
    return Coverage(
        files,
        int(parsed),
        items,
        edges,
        int(problems),
        int(unresolved),
        left_out if isinstance(left_out, int) else 0,
        refreshed_at(connection),
        tuple(LanguageFiles(*row) for row in languages),
        tuple(UnreadFiles(*row) for row in skipped),
    )


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
