"""What is asked about the sessions in the store, and what becomes of their rows.

`session_state` and this module own the table.
"""

from sqlite3 import Connection


def newest(connection: Connection, project: str | None, most: int) -> list[tuple[str, str]]:
    """The last sessions of a project (None: outside of any), by id, and when each was heard of."""
    return connection.execute(
        "SELECT id, last_at FROM sessions WHERE project IS ? ORDER BY last_at DESC LIMIT ?",
        (project, most),
    ).fetchall()


def count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])


def folders(connection: Connection) -> list[str]:
    """Where sessions were."""
    rows = connection.execute("SELECT DISTINCT folder FROM sessions ORDER BY folder")
    return [row[0] for row in rows]


def transcripts(connection: Connection, most: int) -> list[str]:
    """The files of transcripts, the one that was heard of last first."""
    rows = connection.execute(
        "SELECT DISTINCT transcript FROM sessions WHERE transcript <> ''"
        " ORDER BY last_at DESC LIMIT ?",
        (most,),
    )
    return [row[0] for row in rows]


def made_memory(connection: Connection, session: str, upto: str, summary: str | None) -> None:
    """Inside a transaction: memory was made of its events up to one. The row may be gone, or newer
    than what was read."""
    connection.execute(
        "UPDATE sessions SET synthesised = max(synthesised, ?), summary = coalesce(?, summary)"
        " WHERE id = ?",
        (upto, summary, session),
    )


def expect_again(connection: Connection, session: str) -> None:
    """Inside a transaction: memory is to be made of it anew."""
    connection.execute("UPDATE sessions SET synthesised = '' WHERE id = ?", (session,))


def expect_late(connection: Connection) -> None:
    """Inside a transaction: the same for each session of which an event came late, and has its
    place among those that memory was made of already."""
    connection.execute(
        "UPDATE sessions SET synthesised = '' WHERE id IN"
        " (SELECT session FROM events WHERE status = 'new') AND EXISTS (SELECT 1 FROM events e"
        " WHERE e.status = 'new' AND e.session = sessions.id AND e.id <= sessions.synthesised)"
    )


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
