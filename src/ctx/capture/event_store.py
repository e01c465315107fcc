"""An event that a hook reported, as it is stored.

Its body is the part of a host's payload that is stored until it becomes a step. Secrets and private
text are never stored. The host's adapter has already removed what no step needs, such as the
content of files that were read. Other long texts lose their middle.
"""

import json
from collections.abc import Callable, Mapping
from math import isfinite
from sqlite3 import Connection
from typing import Any

from ctx import clock
from ctx.capture import event_table, written_lines
from ctx.capture.command_steps import STEERING
from ctx.capture.private_text import without_private
from ctx.capture.steps import NEW
from ctx.errors import ContentRefused
from ctx.hook_files import spool
from ctx.hosts.events import Event, Heading
from ctx.hosts.host_registry import FIRST, Hosts
from ctx.hosts.json_fields import fields_of, parsed
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
    content = body({**named, **event.payload})
    if _is_known(connection, event, content):
        return False
    done = connection.execute(
        "INSERT OR IGNORE INTO events (id, session, event, at, folder, tool, tool_use, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*event[:5], redact(event.tool).text if event.tool else None, event.tool_use, content),
    )
    return done.rowcount > 0


def learn_agent(connection: Connection, event: Event) -> bool:
    """Inside a transaction: record the subagent that made a call, if no hook named it; whether that
    is new."""
    known = 0
    for status, field in ((NEW, "$.agent_id"), ("step", "$.agent")):
        known += connection.execute(
            "UPDATE events SET body = json_set(body, ?1, ?2) WHERE tool_use = ?3 AND session = ?4"
            " AND status = ?5 AND json_extract(body, ?1) IS NULL",
            (field, event.agent, event.tool_use, event.session, status),
        ).rowcount
    return known > 0


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
    payload = dict(fields_of(parsed(body)))
    name = payload.pop(_HOST, FIRST)
    try:
        return hosts.named(str(name)).restore(heading, payload)
    except ContentRefused:
        # Its host is known only to another version of ctx; the pipeline reports it.
        return Event(*heading, payload, str(name))


def is_over(connection: Connection, session: str) -> bool:
    """Whether the last event of a session is its end."""
    return event_table.last_name(connection, session) == "SessionEnd"


_LONGEST_TEXT = 16_000
# Longer than any secret.
_BEYOND = 8_000
_MOST_DEPTH = 40
# No redaction rule matches across it.
_BREAK = "\n\0\n"
_FILES = ("before", "after")


# The keys of payloads that have no secrets. Nearly all payloads have the same keys.
_PLAIN_KEYS: set[str] = set()
_MOST_KEYS, _LONGEST_KEY = 1_000, 40


def body(payload: Mapping[str, Any]) -> str:
    texts: list[tuple[str, str]] = []
    shape = _shape("", payload, _MOST_DEPTH, texts)
    cleaned = _clean(texts)
    if len(_PLAIN_KEYS) < _MOST_KEYS:
        _PLAIN_KEYS.update(
            text
            for (name, text), clean in zip(texts, cleaned, strict=True)
            if not name and text == clean and len(text) <= _LONGEST_KEY
        )
    return json.dumps(shape(iter(cleaned).__next__))


NextText = Callable[[], str]


def _shape(
    name: str, value: Any, depth: int, texts: list[tuple[str, str]]
) -> Callable[[NextText], Any]:
    """A JSON value as a function of its texts, which are redacted all at once.

    Each text keeps its key, because the key can show that the text is a secret.
    """
    match value:
        case str():
            texts.append((name, value))
            return lambda given: given()
        case None | int():
            return lambda _: value
        case float() if not isfinite(value):
            return lambda _: str(value)
        case Mapping() if depth:
            pairs = []
            for key, each in value.items():
                plain = key if key in _PLAIN_KEYS else None
                if plain is None:
                    texts.append(("", str(key)))
                pairs.append((plain, _shape(str(key), each, depth - 1, texts)))
            return lambda given: {
                given() if plain is None else plain: shape(given) for plain, shape in pairs
            }
        case list() if depth:
            shapes = [_shape(name, each, depth - 1, texts) for each in value]
            return lambda given: [shape(given) for shape in shapes]
        case Mapping() | list():
            return lambda _: "…"
        case _:
            return lambda _: value


def _clean(texts: list[tuple[str, str]]) -> list[str]:
    """The texts without secrets and private parts. Many at once take hardly longer than one."""
    safe = [
        (name, _as_displayed(name, without_private(_without_surrogates(text))))
        for name, text in texts
    ]
    short = [_name_and_value(name, text) for name, text in safe if len(text) <= _LONGEST_TEXT]
    cleaned = redact(_BREAK.join(short)).text.split(_BREAK)
    if len(cleaned) != len(short):
        # A rule matched across a break after all.
        cleaned = [redact(each).text for each in short]
    given = iter(cleaned)
    return [
        next(given).removeprefix(_name_and_value(name, ""))
        if len(text) <= _LONGEST_TEXT
        else _shorten_text(name, text)
        for name, text in safe
    ]


def _as_displayed(name: str, text: str) -> str:
    """A text as it is displayed: an escape sequence inside a secret must not hide the secret."""
    if "\x1b" in text and name not in _FILES:
        text = STEERING.sub("", text)
    return text.replace("\0", " ")


def _name_and_value(name: str, text: str) -> str:
    return f"{name}={text}" if name else text


def _shorten_text(name: str, text: str) -> str:
    """A long text, cut to its two ends and redacted a little beyond them; a file stays whole."""
    if name in _FILES and len(text) <= written_lines.MOST:
        return redact(text).text
    half = _LONGEST_TEXT // 2
    named = _name_and_value(name, "")
    first = redact(named + text[: half + _BEYOND]).text.removeprefix(named)[:half]
    last = redact(text[-half - _BEYOND :]).text[-half:]
    return f"{first}\n… {len(text) - 2 * half:,} characters left out …\n{last}"


def _without_surrogates(text: str) -> str:
    """Without lone surrogates, which JSON allows and UTF-8 does not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
