"""How much of the code is indexed, and the age of the index."""

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
    """How much of the code is indexed, and the age of the index."""

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
