"""Staged sessions, read from the project index without the object store."""

from sqlite3 import Connection
from typing import NamedTuple

from ctx.clock import stamp_ms
from ctx.ids import SessionId


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
