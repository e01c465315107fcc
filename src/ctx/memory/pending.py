"""What one command leaves for a later one: results to be shown, the current task.

It is not memory. What belongs to a session has no records and is gone after a day; the current task
of a place follows from its records, so that it can be undone.
"""

import json
from sqlite3 import Connection
from typing import Any

from ctx import clock
from ctx.memory.graph import Graph

_KEPT_MS = 86_400_000
_MOST_WAITING = 50


def put(graph: Graph, key: str, value: str) -> None:
    """Inside a transaction or on its own. What nobody came back for goes."""
    _expire(graph.connection)
    write(graph.connection, key, value, clock.iso(clock.now_ms()))


def write(connection: Connection, key: str, value: str, created_at: str) -> None:
    connection.execute(
        "INSERT INTO pending (key, value, created_at) VALUES (?, ?, ?) ON CONFLICT (key)"
        " DO UPDATE SET value = excluded.value, created_at = excluded.created_at",
        (key, value, created_at),
    )


def append(connection: Connection, key: str, *more: Any) -> None:
    """Add to a list of JSON values, inside a transaction. The same value is added once."""
    _expire(connection)
    found = read(connection, key)
    waiting = json.loads(found) if found else []
    # Compare as they will be read: a tuple comes back as a list.
    new = [each for each in json.loads(json.dumps(more)) if each not in waiting]
    # No agent could be given more than this.
    if new and len(waiting) < _MOST_WAITING:
        write(connection, key, json.dumps(waiting + new), clock.iso(clock.now_ms()))


def notices(session: str) -> str:
    """The key of what an agent is told about its commands."""
    return f"command_problems:{session}"


def get(graph: Graph, key: str) -> str | None:
    return read(graph.connection, key)


def read(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM pending WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def take(graph: Graph, key: str) -> str | None:
    """The value, which is gone afterwards: of two who ask at once, one gets it."""
    row = graph.connection.execute(
        "DELETE FROM pending WHERE key = ? RETURNING value", (key,)
    ).fetchone()
    return row[0] if row else None


def _expire(connection: Connection) -> None:
    """Forget what no session came back for. The current task outlives sessions."""
    connection.execute(
        "DELETE FROM pending WHERE created_at < ? AND key NOT LIKE 'current\\_task%' ESCAPE '\\'",
        (clock.iso(clock.now_ms() - _KEPT_MS),),
    )


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction: what waits for a session, or is known of it."""
    connection.execute("DELETE FROM pending WHERE instr(key, ?)", (f":{session}",))


def current_task(graph: Graph, key: str) -> str | None:
    return get(graph, key)
