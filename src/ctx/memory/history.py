"""The commits of a project and their records, read from the project index.

The object store is not read: the index has the parents of every commit, and the batch of every
record.
"""

import heapq
from collections.abc import Iterable, Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory import records
from ctx.memory.records import Record


class IndexedCommit(NamedTuple):
    id: str
    parents: tuple[str, ...]
    timestamp_unix: int
    author: str
    session: str
    message: str
    batches: tuple[str, ...]


class Holder(NamedTuple):
    """Where a record is: in a commit, staged in a session, or (if both are None) in a document."""

    commit: str | None = None
    session: str | None = None


def is_linear(connection: Connection) -> bool:
    """Whether every commit and all staged work was made with all earlier commits in sight.

    Most histories are like this, and every reading command asks, so this does not read the commits
    one by one.
    """
    merge = connection.execute("SELECT 1 FROM commits WHERE instr(parents, ' ') LIMIT 1")
    if merge.fetchone():
        return False
    heads = connection.execute(
        "SELECT id FROM commits EXCEPT SELECT parents FROM commits LIMIT 2"
    ).fetchall()
    if len(heads) > 1:
        return False
    # Commits may have arrived while something was staged.
    head = heads[0][0] if heads else ""
    row = connection.execute(
        "SELECT 1 FROM batches WHERE unread <> '' OR session IS NOT NULL AND heads <> ?", (head,)
    ).fetchone()
    return row is None


def holders(connection: Connection, subject: str) -> dict[str, Holder]:
    """The holder of each record about a node or about an edge to it, by record id."""
    rows = connection.execute(
        "SELECT r.id, b.commit_id, b.session FROM records AS r"
        " JOIN batches AS b ON b.number = r.batch WHERE r.subject = ?1 OR r.target = ?1",
        (subject,),
    )
    return {record: Holder(*held) for record, *held in rows}


def is_own(connection: Connection, change: str) -> bool:
    """Whether a change is staged here or in a commit that was made here."""
    row = connection.execute(
        "SELECT 1 FROM records AS r JOIN batches AS b ON b.number = r.batch"
        " LEFT JOIN commits AS c ON c.id = b.commit_id"
        " WHERE r.change = ? AND (b.session IS NOT NULL OR c.mine)",
        (change,),
    ).fetchone()
    return row is not None


def commits(connection: Connection) -> dict[str, IndexedCommit]:
    """Every reachable commit, newest first, children before their parents."""
    rows = connection.execute(
        "SELECT id, parents, timestamp_unix, author, session, message, batches FROM commits"
    )
    by_id = {
        row[0]: IndexedCommit._make(
            (row[0], tuple(row[1].split()), *row[2:6], tuple(row[6].split()))
        )
        for row in rows
    }
    return {id: by_id[id] for id in _newest_first(by_id)}


def _newest_first(by_id: Mapping[str, IndexedCommit]) -> Iterable[str]:
    """A commit is never older than its parents; with equal times it still comes first."""
    children = dict.fromkeys(by_id, 0)
    for commit in by_id.values():
        for parent in commit.parents:
            if parent in children:
                children[parent] += 1
    ready = [(-by_id[id].timestamp_unix, id) for id, count in children.items() if not count]
    heapq.heapify(ready)
    while ready:
        _, id = heapq.heappop(ready)
        yield id
        for parent in by_id[id].parents:
            if parent in children:
                children[parent] -= 1
                if not children[parent]:
                    heapq.heappush(ready, (-by_id[parent].timestamp_unix, parent))


def records_in(connection: Connection, commit: IndexedCommit) -> list[Record]:
    """The records of a commit, in order."""
    places = ", ".join("?" * len(commit.batches))
    rows = connection.execute(f"SELECT number FROM batches WHERE id IN ({places})", commit.batches)
    return _of_batches(connection, [row[0] for row in rows])


def staged_by(connection: Connection, session: str) -> list[Record]:
    """The records that a session has staged."""
    rows = connection.execute("SELECT number FROM batches WHERE session = ?", (session,))
    return _of_batches(connection, [row[0] for row in rows])


def sessions(connection: Connection) -> list[str]:
    """The sessions with staged work on this history."""
    rows = connection.execute("SELECT session FROM chains WHERE NOT parked ORDER BY session")
    return [row[0] for row in rows]


def _of_batches(connection: Connection, numbers: Iterable[int]) -> list[Record]:
    by_id: dict[str, Record] = {}
    for number in numbers:
        rows = connection.execute("SELECT record FROM repeated WHERE batch = ?", (number,))
        repeated = records.records_with_ids(connection, [row[0] for row in rows])
        batch = records.of_batch(connection, number)
        by_id.update((record.id, record) for record in (*batch, *repeated))
    return sorted(by_id.values(), key=lambda record: record.order)
