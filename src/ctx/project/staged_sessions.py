"""What is staged, as the index of a project has it: nothing of the object store is read."""

from sqlite3 import Connection
from typing import NamedTuple

from ctx.clock import stamp_ms
from ctx.ids import SessionId


class StagedWork(NamedTuple):
    """A session with staged work."""

    session: SessionId
    is_parked: bool
    """Whether it began in a history that is not here, or cannot be read."""
    records: int
    tokens: int
    """What its records say, in tokens."""
    began_ms: int | None
    """When it said the first thing; None where it has said nothing."""


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
            # As `tokens.estimate` has it, for text that is mostly ASCII.
            -(-characters * 2 // 7),
            None if stamp is None else stamp_ms(stamp),
        )
        for session, parked, records, characters, stamp in rows
    ]


def documents_of_others(connection: Connection, session: str) -> set[str]:
    """The documents of nodes that other sessions have made and nobody has committed yet."""
    rows = connection.execute(
        "SELECT json_extract(r.body, '$.metadata.file') FROM batches AS b"
        " JOIN records AS r ON r.batch = b.number WHERE b.session <> ? AND r.kind = 'node.put'"
        " AND json_extract(r.body, '$.metadata.file') IS NOT NULL",
        (session,),
    )
    return {row[0] for row in rows}
