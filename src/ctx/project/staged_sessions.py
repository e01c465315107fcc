"""Staged sessions, read without the object store."""

import os
from sqlite3 import Connection
from typing import NamedTuple

from ctx import disk
from ctx.clock import stamp_ms
from ctx.hook_files import live
from ctx.ids import SessionId
from ctx.layout import Project

STALE_S = 86_400
"""After this time a session is stale, and the user is told."""
OLD_S = 7 * 86_400
"""After this time a stale session is committed without asking."""


class StagedWork(NamedTuple):
    """A session with staged work."""

    session: SessionId
    is_parked: bool
    """Whether it began in a history that is not checked out or not readable."""
    records: int
    tokens: int
    """The size of its records in tokens."""
    began_ms: int | None
    """The time of its first record; None if it has none."""


def sessions(connection: Connection) -> list[StagedWork]:
    """All of them, as the project index has them."""
    rows = connection.execute(
        "SELECT c.session, c.parked, count(r.id), coalesce(sum(length(r.body)), 0), min(r.stamp)"
        " FROM chains AS c LEFT JOIN batches AS b ON b.session = c.session"
        " LEFT JOIN records AS r ON r.batch = b.number GROUP BY c.session ORDER BY c.session"
    )
    return [
        StagedWork(
            SessionId(session),
            bool(parked),
            records,
            # Like `tokens.estimate` for text that is mostly ASCII.
            -(-characters * 2 // 7),
            None if stamp is None else stamp_ms(stamp),
        )
        for session, parked, records, characters, stamp in rows
    ]


def documents_of_others(connection: Connection, session: str) -> set[str]:
    """The documents of nodes that other sessions have created and not committed."""
    rows = connection.execute(
        "SELECT json_extract(r.body, '$.metadata.file') FROM batches AS b"
        " JOIN records AS r ON r.batch = b.number WHERE b.session <> ? AND r.kind = 'node.put'"
        " AND json_extract(r.body, '$.metadata.file') IS NOT NULL",
        (session,),
    )
    return {row[0] for row in rows}


class StaleSession(NamedTuple):
    session: SessionId
    seconds: int

    @property
    def is_old(self) -> bool:
        return self.seconds > OLD_S


def stale_sessions(project: Project, home: str, now_s: int) -> list[StaleSession]:
    """The sessions without a new step for a day or longer, except those of running agents.

    Every command checks this, so it reads one small folder: the time of a ref is the time of the
    session's last step.
    """
    folder = os.path.join(project.refs, "work")
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    found = []
    for entry in entries:
        seconds = _seconds_since(entry, now_s)
        is_ref = not entry.name.endswith(disk.TEMPORARY_SUFFIX)
        if seconds > STALE_S and is_ref and not live.is_live(home, entry.name, now_s):
            found.append(StaleSession(SessionId(entry.name), seconds))
    return sorted(found)


def _seconds_since(entry: "os.DirEntry[str]", now_s: int) -> int:
    try:
        return now_s - int(entry.stat(follow_symlinks=False).st_mtime)
    except OSError:
        return 0
