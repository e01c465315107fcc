"""Which batches an index holds: putting records in, and taking them out again.

A record that several batches hold is there until the last of them goes.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory import records
from ctx.memory.records import Record


class BatchOwner(NamedTuple):
    """Who holds a batch."""

    commit: str | None
    session: str | None
    heads: str = ""
    """Where a session staged it: the heads there were, which it knows of."""


def put_in(
    connection: Connection, batch_id: str, by: BatchOwner, said: Sequence[tuple[Record, str]]
) -> list[Record]:
    """Insert the records of a batch, with their bodies as text; those that were not there."""
    number = add_batch(connection, batch_id, by)
    new = records.insert_batch(connection, said, number)
    if len(new) < len(said):
        there = {record.id for record, _ in said} - {record.id for record in new}
        connection.executemany(
            "INSERT INTO repeated VALUES (?, ?)", [(record, number) for record in sorted(there)]
        )
    return new


def holds_exactly(connection: Connection, batch_id: str, said: Sequence[Record]) -> bool:
    """Whether a batch is there and says just this; one that says nothing need not be there."""
    row = connection.execute("SELECT number FROM batches WHERE id = ?", (batch_id,)).fetchone()
    there = records.of_batch(connection, row[0]) if row else []
    return sorted(there, key=_id) == sorted(said, key=_id)


def _id(record: Record) -> str:
    return record.id


def add_batch(connection: Connection, batch_id: str, by: BatchOwner) -> int:
    row = connection.execute(
        "INSERT INTO batches (id, commit_id, session, heads) VALUES (?, ?, ?, ?) RETURNING number",
        (batch_id, *by),
    ).fetchone()
    return int(row[0])


def take_out(connection: Connection, batch_ids: Iterable[str]) -> list[Record]:
    """Remove batches; the records that no other batch holds, which are gone then."""
    gone: list[Record] = []
    for batch_id in batch_ids:
        row = connection.execute("SELECT number FROM batches WHERE id = ?", (batch_id,)).fetchone()
        if row is None:
            continue
        connection.execute("DELETE FROM repeated WHERE batch = ?", row)
        for record in records.of_batch(connection, row[0]):
            other = connection.execute(
                "SELECT min(batch) FROM repeated WHERE record = ?", (record.id,)
            ).fetchone()[0]
            if other is None:
                connection.execute("DELETE FROM records WHERE id = ?", (record.id,))
                gone.append(record)
            else:
                connection.execute("UPDATE records SET batch = ? WHERE id = ?", (other, record.id))
                connection.execute(
                    "DELETE FROM repeated WHERE record = ? AND batch = ?", (record.id, other)
                )
        connection.execute("DELETE FROM batches WHERE number = ?", row)
    return gone


def materialise(connection: Connection, touched: list[Record]) -> None:
    if touched:
        from ctx.memory import materialise as making

        making.materialise(connection, touched)
