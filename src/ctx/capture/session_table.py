"""Queries about stored sessions, and updates of their rows.

`session_state` and this module own the table.

`CTX_HOME/deleted` has a line for each session that the user deleted, with the time. The client
keeps its transcripts: without this file, reading them again would restore a deleted session. What a
session does after it was deleted is captured.
"""

import os
from collections.abc import Sequence
from sqlite3 import Connection

from ctx import disk, interrupts
from ctx.hook_files import live


def newest(connection: Connection, project: str | None, most: int) -> list[tuple[str, str]]:
    """Ids of the latest sessions of a project (None: outside projects), with their last event."""
    return connection.execute(
        "SELECT id, last_at FROM sessions WHERE project IS ? ORDER BY last_at DESC LIMIT ?",
        (project, most),
    ).fetchall()


def beginning_with(connection: Connection, prefix: str, most: int) -> list[tuple[str, str]]:
    """Ids of sessions that begin so, with what the user asked, the last active first."""
    rows = connection.execute(
        "SELECT id, last_at, request FROM sessions WHERE id >= ? AND id < ?"
        " ORDER BY last_at DESC LIMIT ?",
        (prefix, prefix + "~", most),
    )
    return [(session, f"{at[:10]}: {request}") for session, at, request in rows]


def count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])


def hosts(connection: Connection, project: str | None) -> dict[str, int]:
    """How many sessions of a project (None: of all) each host has."""
    rows = connection.execute(
        "SELECT client, count(*) FROM sessions WHERE ?1 IS NULL OR project = ?1"
        " GROUP BY client ORDER BY 2 DESC, 1",
        (project,),
    )
    return dict(rows.fetchall())


def folders(connection: Connection) -> list[str]:
    """The folders in which sessions ran."""
    rows = connection.execute("SELECT DISTINCT folder FROM sessions ORDER BY folder")
    return [row[0] for row in rows]


def transcripts(connection: Connection, most: int) -> list[str]:
    """Paths of transcripts, the most recently active first."""
    rows = connection.execute(
        "SELECT DISTINCT transcript FROM sessions WHERE transcript <> ''"
        " ORDER BY last_at DESC LIMIT ?",
        (most,),
    )
    return [row[0] for row in rows]


def transcripts_by_client(connection: Connection, most: int) -> list[tuple[str, str]]:
    """The same, each with the host that wrote it."""
    return connection.execute(
        "SELECT DISTINCT client, transcript FROM sessions WHERE transcript <> ''"
        " ORDER BY last_at DESC LIMIT ?",
        (most,),
    ).fetchall()


def set_synthesised(connection: Connection, session: str, upto: str, summary: str | None) -> None:
    """Inside a transaction: record that synthesis has processed events up to one. The row may be
    gone, or newer than what was read."""
    connection.execute(
        "UPDATE sessions SET synthesised = max(synthesised, ?), summary = coalesce(?, summary)"
        " WHERE id = ?",
        (upto, summary, session),
    )


def summaries(connection: Connection, sessions: Sequence[str]) -> dict[str, str]:
    """The summary node of each of these sessions that has one."""
    rows = connection.execute(
        "SELECT id, summary FROM sessions WHERE summary IS NOT NULL"
        f" AND id IN ({', '.join('?' * len(sessions))})",
        sessions,
    )
    return dict(rows)


def with_prompt(connection: Connection, text: str, most: int) -> list[str]:
    """Sessions in which a prompt has this text."""
    rows = connection.execute(
        "SELECT DISTINCT session FROM events WHERE json_extract(body, '$.text') = ?"
        " AND event = 'UserPromptSubmit' AND status = 'step' LIMIT ?",
        (text, most),
    )
    return [row[0] for row in rows]


def begun(connection: Connection, folder: str, since: str, until: str) -> list[str]:
    """The sessions that began in a folder between two times, without those of a team."""
    rows = connection.execute(
        "SELECT id FROM sessions WHERE folder = ? AND started_at BETWEEN ? AND ?"
        " AND NOT EXISTS (SELECT 1 FROM session_teams WHERE session = id AND lead <> '')",
        (folder, since, until),
    )
    return [row[0] for row in rows]


def request_synthesis(connection: Connection, session: str) -> None:
    """Inside a transaction: let synthesis process a session again."""
    connection.execute("UPDATE sessions SET synthesised = '' WHERE id = ?", (session,))


def request_synthesis_of_late_events(connection: Connection) -> None:
    """Inside a transaction: the same for each session with a late event that sorts before events
    which synthesis has already processed."""
    connection.execute(
        "UPDATE sessions SET synthesised = '' WHERE id IN"
        " (SELECT session FROM events WHERE status = 'new') AND EXISTS (SELECT 1 FROM events e"
        " WHERE e.status = 'new' AND e.session = sessions.id AND e.id <= sessions.synthesised)"
    )


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


FILE = "deleted"

_LARGEST = 4 * 1024 * 1024


def add(home: str, session: str, now_ms: int) -> None:
    """Record that a session is deleted now."""
    known = {**_read(home), session: now_ms}
    lines = [f"{at_ms} {name}\n" for name, at_ms in known.items()]
    disk.make_folder(home)
    interrupts.defer()
    disk.replace(_path(home), "".join(lines).encode())


def at_ms(home: str, session: str) -> int:
    """When a session was deleted; 0 if it was not."""
    return _read(home).get(session, 0)


def _read(home: str) -> dict[str, int]:
    try:
        lines = disk.read_plain(_path(home), _LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    told = [line.partition(" ") for line in lines]
    return {name: int(at) for at, _, name in told if at.isdecimal() and live.is_session(name)}


def _path(home: str) -> str:
    return os.path.join(home, FILE)
