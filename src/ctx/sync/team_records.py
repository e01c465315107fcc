"""Reads the records of a team's server that the user may see, for copying and comparing them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, LiteralString

from ctx.ids import Ulid
from ctx.memory import record_checksums
from ctx.memory.record_checksums import Checksums, HeldRecord
from ctx.memory.record_versions import RecordVersion, VersionedRecord
from ctx.memory.records import Record

if TYPE_CHECKING:
    from psycopg import Connection


def begin_snapshot(connection: "Connection[Any]") -> None:
    """Read one state of the server until the connection is closed, while others write."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def count(connection: "Connection[Any]") -> int:
    row = connection.execute("SELECT count(*) FROM ctx.records").fetchone()
    return row[0] if row else 0


def page(connection: "Connection[Any]", after: str, most: int) -> list[VersionedRecord]:
    """Some records with later ids than one, in the order of their ids. Anybody may have written
    them."""
    return _read(connection, "id > %s ORDER BY id LIMIT %s", after, most)


def records_with_ids(connection: "Connection[Any]", ids: Sequence[str]) -> list[VersionedRecord]:
    return _read(connection, "id = ANY (%s)", [*ids])


def records_about(connection: "Connection[Any]", node_ids: Sequence[str]) -> list[VersionedRecord]:
    """The records about some nodes, in the order of their stamps."""
    return _read(connection, "node = ANY (%s) ORDER BY stamp, id", [*node_ids])


def _read(
    connection: "Connection[Any]", where: LiteralString, *values: object
) -> list[VersionedRecord]:
    rows = connection.execute(
        "SELECT id, stamp, change, action, kind, subject, key, target, body, session, author,"
        " version, replaces FROM ctx.records WHERE " + where,
        values,
    )
    return [
        VersionedRecord(
            Record(Ulid(row[0]), row[1], Ulid(row[2]), *row[3:11]),
            RecordVersion(row[11], tuple(row[12].split())),
        )
        for row in rows
    ]


_HASH: LiteralString = (
    "left(encode(sha256(convert_to(concat_ws(%s, id, stamp, change, action, kind, subject, key,"
    " coalesce(target, %s), body::text, session, author, version), 'UTF8')), 'hex'), 32)"
)
"""The same as `record_checksums.hash_of`. The server computes it: the bodies stay there."""
_HASH_VALUES = record_checksums.SEPARATOR, record_checksums.NONE


def held(connection: "Connection[Any]", ids: Sequence[str]) -> dict[str, HeldRecord]:
    """Those records that the server has and the user may see."""
    rows = connection.execute(
        "SELECT id, version, replaces, " + _HASH + " FROM ctx.records WHERE id = ANY (%s)",
        (*_HASH_VALUES, [*ids]),
    )
    return {
        row[0]: HeldRecord(RecordVersion(row[1], tuple(row[2].split())), int(row[3], 16))
        for row in rows
    }


def hidden(connection: "Connection[Any]", ids: Sequence[str]) -> set[str]:
    """Those records that the server has and the user may not see."""
    row = connection.execute("SELECT ctx.existing_records(%s::text[])", ([*ids],)).fetchone()
    visible = connection.execute("SELECT id FROM ctx.records WHERE id = ANY (%s)", ([*ids],))
    return set(row[0] if row else ()) - {each[0] for each in visible}


def add_checksums(connection: "Connection[Any]", ids: Sequence[str], found: Checksums) -> None:
    """Add the checksums of some records."""
    rows = connection.execute(
        "SELECT kind, count(*), bit_xor(('x' || left(hash, 16))::bit(64)::bigint),"
        " bit_xor(('x' || right(hash, 16))::bit(64)::bigint)"
        " FROM (SELECT kind, " + _HASH + " AS hash FROM ctx.records WHERE id = ANY (%s)) AS hashed"
        " GROUP BY kind",
        (*_HASH_VALUES, [*ids]),
    )
    for kind, records, *halves in rows:
        first, second = (half % (1 << 64) for half in halves)
        found.add(kind, records, (first << 64) | second)
