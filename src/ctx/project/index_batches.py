"""Adds batches of records to a project index and removes them.

A record that is in several batches stays until the last of them is removed.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory import materialise as making
from ctx.memory import records
from ctx.memory.records import Record


class BatchOwner(NamedTuple):
    """The commit or session that a batch belongs to."""

    commit: str | None
    session: str | None
    heads: str = ""
    """If it is staged: the heads at that time."""


def put_in(
    connection: Connection, batch_id: str, by: BatchOwner, batch: Sequence[tuple[Record, str]]
) -> list[Record]:
    """Insert the records of a batch, with their bodies as text; returns the new ones."""
    number = add_batch(connection, batch_id, by)
    new = records.insert_batch(connection, batch, number)
    if len(new) < len(batch):
        there = {record.id for record, _ in batch} - {record.id for record in new}
        connection.executemany(
            "INSERT INTO repeated VALUES (?, ?)", [(record, number) for record in sorted(there)]
        )
    return new


def holds_exactly(connection: Connection, batch_id: str, expected: Sequence[Record]) -> bool:
    """Whether a batch has exactly these records; an empty batch need not exist."""
    row = connection.execute("SELECT number FROM batches WHERE id = ?", (batch_id,)).fetchone()
    there = records.of_batch(connection, row[0]) if row else []
    return sorted(there, key=_id) == sorted(expected, key=_id)


def _id(record: Record) -> str:
    return record.id


def add_batch(connection: Connection, batch_id: str, by: BatchOwner) -> int:
    row = connection.execute(
        "INSERT INTO batches (id, commit_id, session, heads) VALUES (?, ?, ?, ?) RETURNING number",
        (batch_id, *by),
    ).fetchone()
    return int(row[0])


def take_out(connection: Connection, batch_ids: Iterable[str]) -> list[Record]:
    """Remove batches; returns the records that no other batch holds."""
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
        making.materialise(connection, touched)
