"""A log of what ctx itself did and what it cost, for measuring how well it works.

It is not memory: nothing is derived from it, and it can be deleted at any time. It holds numbers
and names that ctx defines, never text of a person or an agent.
"""

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock

CONTEXT = "hook.context_inject"
"""A context was given to a session."""
RELEVANT = "hook.relevant_inject"
"""Relevant memory was added to a prompt."""
MODEL_FAILED = "llm.failed"
"""A request to a model about a session failed."""
SCRUBBED = "store.scrubbed"
"""Something was scrubbed from the store."""

AUTHORS = "authors.corrected"
"""Nodes that were stored as the user's words by mistake were corrected."""

IMPORTED = "session.imported"
"""A past session was imported, or learnings were made of such sessions; `session` is the import."""

_KEPT_DAYS = 90


class EventLogEntry(NamedTuple):
    at: str
    session: str
    type: str
    data: dict[str, Any]
    duration_ms: int | None
    tokens_out: int | None


def add(
    connection: Connection,
    type: str,
    session: str,
    data: Mapping[str, Any],
    duration_ms: int | None = None,
    tokens_out: int | None = None,
) -> None:
    """Add an entry, inside a transaction or on its own."""
    put(
        connection,
        EventLogEntry(
            clock.iso(clock.now_ms()), session, type, dict(data), duration_ms, tokens_out
        ),
    )


def put(connection: Connection, entry: EventLogEntry) -> None:
    """Add an entry with its own time."""
    connection.execute(
        "INSERT INTO event_log (at, session, type, data, duration_ms, tokens_out)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (*entry[:3], json.dumps(entry.data), *entry[4:]),
    )


def since(
    connection: Connection, at: str, type: str | None = None, limit: int = 1_000
) -> list[EventLogEntry]:
    """The entries since a time, newest first."""
    rows = connection.execute(
        "SELECT at, session, type, data, duration_ms, tokens_out FROM event_log"
        " WHERE at >= ?1 AND (?2 IS NULL OR type = ?2) ORDER BY at DESC, id DESC LIMIT ?3",
        (at, type, limit),
    )
    return [EventLogEntry._make((*row[:3], _read_data(row[3]), *row[4:])) for row in rows]


def last_id(connection: Connection, type: str) -> int:
    """The id of the last entry of a type; 0 if there is none."""
    rows = connection.execute("SELECT max(id) FROM event_log WHERE type = ?", (type,))
    return rows.fetchone()[0] or 0


def durations(connection: Connection, type: str, at: str) -> list[int]:
    """How many milliseconds the entries of a type took since a time, in ascending order."""
    rows = connection.execute(
        "SELECT duration_ms FROM event_log WHERE type = ? AND at >= ?"
        " AND duration_ms IS NOT NULL ORDER BY duration_ms",
        (type, at),
    )
    return [row[0] for row in rows]


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM event_log WHERE session = ?", (session,))


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    connection.execute(
        "DELETE FROM event_log WHERE at >= ? AND at < ?", clock.expired_range(_KEPT_DAYS)
    )


def _read_data(text: str) -> dict[str, Any]:
    """The data of an entry; empty if they are damaged."""
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
