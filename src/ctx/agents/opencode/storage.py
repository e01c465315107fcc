"""The database in which OpenCode keeps its sessions, read-only.

    session   id, parent_id, directory, time_created, time_updated
    message   id, session_id, data: {"role": "user" or "assistant", "time", "error", "summary", …}
    part      id, message_id, session_id, time_created, data: {"type": "text" or "tool", …}

A session is named by the path of the database and its id: `/…/opencode.db#ses_1`. A position in it
is a time in milliseconds: parts are stored in the order in which they began.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.hook_files import live
from ctx.hosts.json_fields import fields_of, parsed
from ctx.sqlite.connection import IMMUTABLE, connect

FILE = "opencode.db"

_SEPARATOR = "#"
_BUSY_MS = 1_000


class SessionRow(NamedTuple):
    id: str
    parent: str
    folder: str
    began_ms: int
    changed_ms: int


class PartRow(NamedTuple):
    """A part of a message."""

    id: str
    message: str
    began_ms: int
    size: int
    part: dict[str, Any]
    message_data: dict[str, Any]


def name_of(database: str, session: str) -> str:
    """What a session in a database is called."""
    return f"{database}{_SEPARATOR}{session}"


def split_name(name: str) -> tuple[str, str]:
    """The database and the session; empty if it is not the name of one."""
    database, is_named, session = name.rpartition(_SEPARATOR)
    is_session = os.path.basename(database) == FILE and live.is_session(session)
    return (database, session) if is_named and is_session else ("", "")


@contextmanager
def opened(database: str) -> Iterator[Connection]:
    """A connection that only reads. `OSError` if there is no database, or it cannot be read."""
    os.stat(database)
    # Without a log no process has it open, and SQLite would create the log's files.
    is_unused = not os.path.exists(f"{database}-wal")
    try:
        with closing(
            connect(database, IMMUTABLE if is_unused else "mode=ro", _BUSY_MS)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        raise OSError(None, str(error)) from error


def sessions(connection: Connection) -> list[SessionRow]:
    """The sessions that are not those of subagents."""
    return _sessions(connection, "parent_id IS NULL")


def find(connection: Connection, session: str) -> SessionRow | None:
    return next(iter(_sessions(connection, "id = ?", session)), None)


def main_of(connection: Connection, row: SessionRow) -> SessionRow:
    """The session that started a subagent, directly or through others; otherwise the row itself."""
    known = {row.id}
    while row.parent and row.parent not in known:
        known.add(row.parent)
        parent = find(connection, row.parent)
        if parent is None:
            break
        row = parent
    return row


def children(connection: Connection, session: str, since_ms: int) -> list[SessionRow]:
    """The sessions of subagents that changed since a time."""
    return _sessions(connection, "parent_id = ? AND time_updated >= ?", session, since_ms)


def last_ms(connection: Connection, session: str) -> int:
    """When the last part of a session began; 0 if there is none."""
    rows = connection.execute("SELECT max(time_created) FROM part WHERE session_id = ?", (session,))
    found = rows.fetchone()[0]
    return found if isinstance(found, int) else 0


def last_message(connection: Connection, session: str) -> str:
    row = connection.execute(
        "SELECT id FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1",
        (session,),
    ).fetchone()
    return str(row[0]) if row else ""


def parts(connection: Connection, session: str, since_ms: int) -> Iterator[PartRow]:
    """The parts of a session from a time on, the oldest first."""
    rows = connection.execute(
        "SELECT part.id, part.message_id, part.time_created, part.data, message.data FROM part"
        " JOIN message ON message.id = part.message_id"
        " WHERE part.session_id = ? AND part.time_created >= ?"
        " ORDER BY part.time_created, part.id",
        (session, since_ms),
    )
    for name, message, began_ms, part, data in rows:
        yield PartRow(
            str(name), str(message), int(began_ms), len(str(part)), _object(part), _object(data)
        )


def _sessions(connection: Connection, where: str, *values: object) -> list[SessionRow]:
    rows = connection.execute(
        "SELECT id, parent_id, directory, time_created, time_updated FROM session"
        f" WHERE {where} ORDER BY time_created, id",
        values,
    )
    return [
        SessionRow(str(name), parent or "", str(folder), int(began), int(changed))
        for name, parent, folder, began, changed in rows
    ]


def _object(text: object) -> dict[str, Any]:
    return dict(fields_of(parsed(text))) if isinstance(text, str) else {}
