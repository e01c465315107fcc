"""What ctx itself did, and what that cost: for whoever wants to know how well it works.

It is no memory: nothing follows from it, and it can be deleted at any time. What is said here is
numbers and names of ctx's own, never what a person or an agent wrote.
"""

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock

CONTEXT = "hook.context_inject"
"""A session was given its context."""
RELEVANT = "hook.relevant_inject"
"""A prompt was given what memory knows about it."""
MODEL_FAILED = "llm.failed"
"""A model could not be asked what a session did."""
SCRUBBED = "store.scrubbed"
"""Something was taken out of what was stored."""

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
    """Inside a transaction or on its own."""
    put(
        connection,
        EventLogEntry(
            clock.iso(clock.now_ms()), session, type, dict(data), duration_ms, tokens_out
        ),
    )


def put(connection: Connection, entry: EventLogEntry) -> None:
    """The same for what happened at another time."""
    connection.execute(
        "INSERT INTO event_log (at, session, type, data, duration_ms, tokens_out)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (*entry[:3], json.dumps(entry.data), *entry[4:]),
    )


def since(
    connection: Connection, at: str, type: str | None = None, limit: int = 1_000
) -> list[EventLogEntry]:
    """What was done since then, the newest first."""
    rows = connection.execute(
        "SELECT at, session, type, data, duration_ms, tokens_out FROM event_log"
        " WHERE at >= ?1 AND (?2 IS NULL OR type = ?2) ORDER BY at DESC, id DESC LIMIT ?3",
        (at, type, limit),
    )
    return [EventLogEntry._make((*row[:3], _read(row[3]), *row[4:])) for row in rows]


def last_id(connection: Connection, type: str) -> int:
    """Of the last entry of this kind; 0 where there is none."""
    found = connection.execute("SELECT max(id) FROM event_log WHERE type = ?", (type,))
    return found.fetchone()[0] or 0


def tokens_by_day(connection: Connection, at: str) -> dict[str, int]:
    """How many tokens agents were given on each day since then, `2026-11-15` → 4,812."""
    rows = connection.execute(
        "SELECT substr(at, 1, 10), sum(tokens_out) FROM event_log"
        " WHERE type IN (?1, ?2) AND at >= ?3 AND tokens_out IS NOT NULL GROUP BY 1 ORDER BY 1",
        (CONTEXT, RELEVANT, at),
    )
    return dict(rows.fetchall())


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM event_log WHERE session = ?", (session,))


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM event_log WHERE at >= ? AND at < ?", clock.expired(_KEPT_DAYS))


def _read(text: str) -> dict[str, Any]:
    """What the data say; nothing where somebody has damaged them."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
