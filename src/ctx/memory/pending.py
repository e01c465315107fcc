"""Values that one command stores for a later one: results to show, the current task.

They are not memory. Values of a session have no records and expire after a day, except how it is
staged; the current task of a place is computed from records, so that it can be undone.
"""

import json
from sqlite3 import Connection
from typing import Any

from ctx import clock
from ctx.memory.graph import Graph

_KEPT_MS = 86_400_000
_MOST_WAITING = 50
_STAGING = "staging:"
PROJECTIONS = "projections"
"""The key of the files that the worker keeps a block in (`operations/projection.py`)."""


def put(connection: Connection, key: str, value: str) -> None:
    """Store a value, inside a transaction or on its own. Removes expired values."""
    _expire(connection)
    write(connection, key, value, clock.iso(clock.now_ms()))


def write(connection: Connection, key: str, value: str, created_at: str) -> None:
    connection.execute(
        "INSERT INTO pending (key, value, created_at) VALUES (?, ?, ?) ON CONFLICT (key)"
        " DO UPDATE SET value = excluded.value, created_at = excluded.created_at",
        (key, value, created_at),
    )


def append(connection: Connection, key: str, *more: Any) -> None:
    """Append JSON values to a list, inside a transaction, without duplicates."""
    _expire(connection)
    stored = read(connection, key)
    waiting = json.loads(stored) if stored else []
    # Compare the parsed JSON: a tuple comes back as a list.
    new = [value for value in json.loads(json.dumps(more)) if value not in waiting]
    # An agent cannot be given more than this.
    if new and len(waiting) < _MOST_WAITING:
        write(connection, key, json.dumps(waiting + new), clock.iso(clock.now_ms()))


def notices(session: str) -> str:
    """The key of the notices about an agent's commands."""
    return f"command_problems:{session}"


def staging(session: str) -> str:
    """The key of how a captured session is staged."""
    return f"{_STAGING}{session}"


def stagings(connection: Connection) -> list[tuple[str, str]]:
    """Which captured sessions are staged, and how."""
    rows = connection.execute(
        "SELECT substr(key, ?), value FROM pending WHERE key LIKE ? ORDER BY key",
        (len(_STAGING) + 1, f"{_STAGING}%"),
    )
    return [(session, value) for session, value in rows]


def read(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM pending WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _expire(connection: Connection) -> None:
    """Delete values older than a day, except the current task, how sessions are staged, and the
    files with a block."""
    connection.execute(
        "DELETE FROM pending WHERE created_at < ? AND key NOT LIKE 'current\\_task%' ESCAPE '\\'"
        f" AND key NOT LIKE '{_STAGING}%' AND key <> '{PROJECTIONS}'",
        (clock.iso(clock.now_ms() - _KEPT_MS),),
    )


def forget_session(connection: Connection, session: str) -> None:
    """Delete all values of a session, inside a transaction."""
    connection.execute("DELETE FROM pending WHERE instr(key, ?)", (f":{session}",))


def current_task(graph: Graph, key: str) -> str | None:
    """The current task of a place. Unlike other values, it belongs to the graph."""
    return read(graph.connection, key)
