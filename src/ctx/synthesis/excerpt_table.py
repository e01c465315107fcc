"""The table `excerpts` in the user store."""

from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, terms
from ctx.synthesis.session_excerpts import Excerpt


def replace(
    connection: Connection,
    session: str,
    project: str | None,
    excerpts: Sequence[Excerpt],
    since: str,
) -> None:
    """Inside a transaction: store the excerpts of a session, instead of those from `since` on.

    `since` is the id of the first step that is still there. Excerpts of older steps stay. What the
    user disputed is not stored: out of its conversation, it reads like a fact.
    """
    sql = "SELECT step, part, kind, source, worth, text, id FROM excerpts"
    rows = connection.execute(f"{sql} WHERE session = ? AND step >= ?", (session, since)).fetchall()
    stored = {row[:6]: row[6] for row in rows}
    wanted = {
        (it.step, it.part, it.kind, it.source, it.worth, it.text): it
        for it in excerpts
        if not it.is_disputed
    }
    gone = [(number,) for key, number in stored.items() if key not in wanted]
    connection.executemany("DELETE FROM excerpts WHERE id = ?", gone)
    connection.executemany(
        "INSERT INTO excerpts (session, project, step, part, at, kind, source, worth, text, terms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(session, project, it.step, it.part, it.at),
                *(it.kind, it.source, it.worth, it.text, terms.column(it.text)),
            )
            for key, it in wanted.items()
            if key not in stored
        ],
    )


class StoredExcerpt(NamedTuple):
    session: str
    kind: str
    source: str
    text: str


def at_time(connection: Connection, session: str, at: str) -> list[StoredExcerpt]:
    """The excerpts of one moment of a session, of which the beginning of the id is known."""
    rows = connection.execute(
        "SELECT session, kind, source, text FROM excerpts"
        " WHERE session >= ?1 AND substr(session, 1, length(?1)) = ?1 AND at = ?2",
        (session, at),
    )
    return [StoredExcerpt._make(row) for row in rows]


def sessions(connection: Connection) -> set[str]:
    """The sessions that have excerpts."""
    return {row[0] for row in connection.execute("SELECT DISTINCT session FROM excerpts")}


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM excerpts WHERE session = ?", (session,))


def forget_old(connection: Connection, keep_days: int) -> None:
    """Inside a transaction: delete those that are older. The user's corrections stay."""
    connection.execute(
        "DELETE FROM excerpts WHERE at >= ? AND at < ? AND kind <> 'correction'",
        clock.expired_range(keep_days),
    )
