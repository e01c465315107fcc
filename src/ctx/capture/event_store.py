"""An event that a hook reported, as it is stored.

`event_bodies` makes its body.
"""

import json
from sqlite3 import Connection
from typing import Any

from ctx import clock
from ctx.capture import event_bodies, event_table
from ctx.errors import ContentRefused
from ctx.hook_files import spool
from ctx.hosts.events import Event, Heading
from ctx.hosts.host_registry import FIRST, Hosts
from ctx.memory import pending
from ctx.redaction import redact

SAME_MS = 3_000
"""If hooks are registered twice, the client reports every event twice within this time."""

_HOST = "ctx_host"
"""The field of a stored payload that names its host, unless that is the first one."""


def read(name: str, data: bytes, hosts: Hosts) -> Event:
    """The event in a spool file. Raises `ContentRefused` if it is not a valid event."""
    expected = spool.EVENTS.get(spool.kind_of(name))
    try:
        # Python accepts `NaN`, which SQLite's JSON functions reject.
        payload = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise ContentRefused("It is not JSON.") from None
    if expected is None or not isinstance(payload, dict):
        raise ContentRefused("ctx does not know this event.")
    event_id = spool.id_of(name)
    host = hosts.named(spool.host_of(name) or FIRST)
    return host.read(event_id, expected, clock.iso(spool.made_ms(event_id)), payload)


def keep(connection: Connection, event: Event) -> bool:
    """Inside a transaction: store an event; whether it is new.

    Storing it again is harmless: an event has one id, and each tool call is one event, whoever
    reports it. If hooks are registered twice, the client reports everything twice at once.
    """
    event = _in_main_session(connection, event)
    named = {} if event.host == FIRST else {_HOST: event.host}
    body = event_bodies.body({**named, **event.payload})
    if _is_known(connection, event, body):
        return False
    done = connection.execute(
        "INSERT OR IGNORE INTO events (id, session, event, at, folder, tool, tool_use, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*event[:5], redact(event.tool).text if event.tool else None, event.tool_use, body),
    )
    return done.rowcount > 0


def _in_main_session(connection: Connection, event: Event) -> Event:
    """A subagent's event in the session of the main agent: a host may name only the subagent that
    started it."""
    if not event.agent:
        return event
    lead = pending.read(connection, _lead_key(event.session)) or event.session
    if event.agent != lead and pending.read(connection, _lead_key(event.agent)) is None:
        pending.write(connection, _lead_key(event.agent), lead, clock.iso(clock.now_ms()))
    return event._replace(session=lead)


def _lead_key(session: str) -> str:
    return f"lead:{session}"


def _is_known(connection: Connection, event: Event, body: str) -> bool:
    if event.tool_use is not None:
        sql = "SELECT 1 FROM events WHERE tool_use = ? AND session = ?"
        return connection.execute(sql, (event.tool_use, event.session)).fetchone() is not None
    made_ms = spool.made_ms(event.id)
    # Ids sort by time: a duplicate is among the last few events of the session.
    since, until = (f"{max(0, made_ms + ms):013d}" for ms in (-SAME_MS, SAME_MS))
    found = connection.execute(
        "SELECT 1 FROM events WHERE session = ? AND id BETWEEN ? AND ? AND event = ? AND body = ?",
        (event.session, since, until, event.name, body),
    )
    return found.fetchone() is not None


def pending_events(
    connection: Connection, after: str, most: int, hosts: Hosts
) -> list[tuple[Event, int]]:
    """The oldest events that are not processed yet, each with its number of attempts."""
    rows = connection.execute(
        "SELECT id, session, event, at, folder, tool, tool_use, body, attempts FROM events"
        " WHERE status = 'new' AND id > ? ORDER BY id LIMIT ?",
        (after, most),
    )
    return [(restore(Heading._make(row[:7]), row[7], hosts), row[8]) for row in rows]


def restore(heading: Heading, body: str, hosts: Hosts) -> Event:
    """An unprocessed event from its row."""
    payload = _object(body)
    name = payload.pop(_HOST, FIRST)
    try:
        return hosts.named(str(name)).restore(heading, payload)
    except ContentRefused:
        # Its host is known only to another version of ctx; the pipeline reports it.
        return Event(*heading, payload, str(name))


def is_over(connection: Connection, session: str) -> bool:
    """Whether the last event of a session is its end."""
    return event_table.last_name(connection, session) == "SessionEnd"


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
