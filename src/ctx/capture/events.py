"""An event: what a hook reported, as it is kept in the store.

What is kept of it until a step is made of it, `bodies` says.
"""

import json
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, ids
from ctx.capture import bodies, event_table
from ctx.errors import ContentRefused, UsageError
from ctx.hook_files import spool

SAME_MS = 3_000
"""Where hooks are registered in two places, the client says everything twice within this time."""


class Event(NamedTuple):
    id: str
    session: str
    name: str
    """As the client calls it."""
    at: str
    folder: str
    tool: str | None
    tool_use: str | None
    said: dict[str, Any]
    """All of it, as it came."""


def read(name: str, said: bytes) -> Event:
    """What a file of the spool says. `ContentRefused` where that is nothing to keep."""
    expected = spool.EVENTS.get(spool.kind_of(name))
    try:
        # Python also reads `NaN`, which no database could read back.
        found = json.loads(said, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise ContentRefused("It is not JSON.") from None
    if expected is None or not isinstance(found, dict):
        raise ContentRefused("It is no event that ctx knows.")
    if found.get("hook_event_name", expected) != expected:
        raise ContentRefused(f"It is another event than {expected}.")
    try:
        session = ids.session_id(_text(found, "session_id"))
    except UsageError:
        raise ContentRefused("It names no session.") from None
    event_id = spool.id_of(name)
    folder = _text(found, "cwd")
    return Event(
        event_id,
        session,
        expected,
        clock.iso(spool.made_ms(event_id)),
        # No folder has such a name, and whoever looks for it is told so in an unkind way.
        "" if "\0" in folder else folder,
        _text(found, "tool_name") or None,
        _text(found, "tool_use_id") or None,
        found,
    )


def keep(connection: Connection, event: Event) -> bool:
    """Inside a transaction; whether it was news.

    To keep it twice is harmless: an event has one id, and each use of a tool is one event, whoever
    reports it. Where hooks are registered in two places, the client says everything twice at once.
    """
    body = bodies.body(event.said, event.tool)
    if _is_known(connection, event, body):
        return False
    done = connection.execute(
        "INSERT OR IGNORE INTO events (id, session, event, at, folder, tool, tool_use, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*event[:7], body),
    )
    return done.rowcount > 0


def _is_known(connection: Connection, event: Event, body: str) -> bool:
    if event.tool_use is not None:
        sql = "SELECT 1 FROM events WHERE tool_use = ? AND session = ?"
        return connection.execute(sql, (event.tool_use, event.session)).fetchone() is not None
    made_ms = spool.made_ms(event.id)
    # Ids sort by time: what is looked for lies among the last few of the session.
    since, until = (f"{max(0, made_ms + ms):013d}" for ms in (-SAME_MS, SAME_MS))
    found = connection.execute(
        "SELECT 1 FROM events WHERE session = ? AND id BETWEEN ? AND ? AND event = ? AND body = ?",
        (event.session, since, until, event.name, body),
    )
    return found.fetchone() is not None


def waiting(connection: Connection, after: str, most: int) -> list[tuple[Event, int]]:
    """The oldest events of which no step was made yet, and how often that was tried."""
    rows = connection.execute(
        "SELECT id, session, event, at, folder, tool, tool_use, body, attempts FROM events"
        " WHERE status = 'new' AND id > ? ORDER BY id LIMIT ?",
        (after, most),
    )
    return [(Event._make((*row[:7], _object(row[7]))), row[8]) for row in rows]


def is_over(connection: Connection, session: str) -> bool:
    """Whether the last thing that was heard of a session is that it ended."""
    return event_table.last_name(connection, session) == "SessionEnd"


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    return _safe(value) if isinstance(value, str) else ""


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _safe(text: str) -> str:
    """JSON can say what no file can hold: half of a character that is written with two."""
    return text.encode("utf-8", "replace").decode("utf-8")
