"""Reads and writes the table `session_commands`: the commands that a session ran."""

from collections.abc import Sequence
from sqlite3 import Connection

from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.sqlite.connection import transaction
from ctx.synthesis.project_commands import SessionCommand, session_commands
from ctx.synthesis.timeline import Timeline

_COLUMNS = ", ".join(SessionCommand._fields)


def renew(connection: Connection, session: Session, steps: Sequence[Step]) -> None:
    """Replace the commands of a session by those of its steps."""
    rows = session_commands(Timeline(steps), session.folder)
    if of_session(connection, session.id) == sorted(rows):
        return
    places = ", ".join("?" * len(SessionCommand._fields))
    with transaction(connection):
        forget_session(connection, session.id)
        connection.executemany(
            f"INSERT INTO session_commands (session, {_COLUMNS}) VALUES (?, {places})",
            [(session.id, *row) for row in rows],
        )


def of_session(connection: Connection, session: str) -> list[SessionCommand]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM session_commands WHERE session = ? ORDER BY command", (session,)
    )
    return [SessionCommand._make(row) for row in rows]


def sessions(connection: Connection) -> set[str]:
    """The sessions that have commands."""
    return {row[0] for row in connection.execute("SELECT DISTINCT session FROM session_commands")}


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM session_commands WHERE session = ?", (session,))
