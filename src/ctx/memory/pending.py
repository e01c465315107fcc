"""What one command leaves for a later one: results to be shown, the current task.

It is not memory. What belongs to a session has no records and is gone after a day; the current task
of a place follows from its records, so that it can be undone.
"""

from sqlite3 import Connection

from ctx import clock
from ctx.memory.graph import Graph

_KEPT_MS = 86_400_000


def put(graph: Graph, key: str, value: str) -> None:
    """Inside a transaction or on its own. What nobody came back for goes."""
    _expire(graph)
    write(graph.connection, key, value, clock.iso(clock.now_ms()))


def write(connection: Connection, key: str, value: str, created_at: str) -> None:
    connection.execute(
        "INSERT INTO pending (key, value, created_at) VALUES (?, ?, ?) ON CONFLICT (key)"
        " DO UPDATE SET value = excluded.value, created_at = excluded.created_at",
        (key, value, created_at),
    )


def get(graph: Graph, key: str) -> str | None:
    row = graph.connection.execute("SELECT value FROM pending WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def take(graph: Graph, key: str) -> str | None:
    """The value, which is gone afterwards: of two who ask at once, one gets it."""
    row = graph.connection.execute(
        "DELETE FROM pending WHERE key = ? RETURNING value", (key,)
    ).fetchone()
    return row[0] if row else None


def _expire(graph: Graph) -> None:
    """Forget what no session came back for. The current task outlives sessions."""
    graph.connection.execute(
        "DELETE FROM pending WHERE created_at < ? AND key NOT LIKE 'current\\_task%' ESCAPE '\\'",
        (clock.iso(clock.now_ms() - _KEPT_MS),),
    )


def current_task(graph: Graph, key: str) -> str | None:
    return get(graph, key)
