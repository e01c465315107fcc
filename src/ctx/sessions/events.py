"""An event: what a hook reported, as it is kept in the store.

Its body is what the client said, without secrets, and without the middle of long texts: a session
is about what was done, and files and outputs have other places.
"""

import json
from math import isfinite
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, ids
from ctx.errors import ContentRefused, UsageError
from ctx.redaction import redact
from ctx.sessions import spool

_LONGEST_TEXT = 16_000
# No secret is longer.
_BEYOND = 8_000
_SAME_MS = 3_000
_KEPT_DAYS = 30
_DAY_MS = 86_400_000
_MOST_DEPTH = 40


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
    return Event(
        event_id,
        session,
        expected,
        clock.iso(spool.made_ms(event_id)),
        _text(found, "cwd"),
        _text(found, "tool_name") or None,
        _text(found, "tool_use_id") or None,
        found,
    )


def keep(connection: Connection, event: Event) -> None:
    """Inside a transaction. To keep it twice is harmless.

    Where hooks are registered in two places, the client says everything twice at once.
    """
    body = json.dumps(_kept("", event.said, _MOST_DEPTH))
    since = clock.iso(spool.made_ms(event.id) - _SAME_MS)
    connection.execute(
        "INSERT OR IGNORE INTO events (id, session, event, at, folder, tool, tool_use, body)"
        " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (SELECT 1 FROM events"
        " WHERE session = ?2 AND event = ?3 AND at >= ?9 AND body = ?8)",
        (
            *(event.id, event.session, event.name, event.at, event.folder),
            *(event.tool, event.tool_use, body, since),
        ),
    )


def is_over(connection: Connection, session: str) -> bool:
    """Whether the last thing that was heard of a session is that it ended."""
    row = connection.execute(
        "SELECT event FROM events WHERE session = ? ORDER BY id DESC LIMIT 1", (session,)
    ).fetchone()
    return row is not None and row[0] == "SessionEnd"


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    before = clock.iso(clock.now_ms() - _KEPT_DAYS * _DAY_MS)
    connection.execute("DELETE FROM events WHERE at < ?", (before,))


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    return _safe(value) if isinstance(value, str) else ""


def _kept(name: str, value: Any, depth: int) -> Any:
    """A value of JSON without secrets, its long texts shortened."""
    match value:
        case str():
            # What a value is called may say what it is.
            return _clean(f"{name}=", _safe(value))
        case float() if not isfinite(value):
            return str(value)
        case dict() if depth:
            return {
                redact(_safe(str(key))).text: _kept(str(key), each, depth - 1)
                for key, each in value.items()
            }
        case list() if depth:
            return [_kept(name, each, depth - 1) for each in value]
        case dict() | list():
            return "…"
        case _:
            return value


def _clean(named: str, text: str) -> str:
    """A text without secrets. Of a long one only the ends are looked at, and a little beyond."""
    if len(text) <= _LONGEST_TEXT:
        return redact(named + text).text.removeprefix(named)
    half = _LONGEST_TEXT // 2
    first = redact(named + text[: half + _BEYOND]).text.removeprefix(named)[:half]
    last = redact(text[-half - _BEYOND :]).text[-half:]
    return f"{first}\n… {len(text) - 2 * half:,} characters left out …\n{last}"


def _safe(text: str) -> str:
    """JSON can say what no file can hold: half of a character that is written with two."""
    return text.encode("utf-8", "replace").decode("utf-8")
