"""What other replicas of the user store have: the tables behind `ctx sync`.

A target holds batches of records. This module stores which batches of a target the store has read
or written, which records are in each, and in which version (`record_versions`). Everything else
follows: a record that is in no batch of a target is to be sent, and a batch with an outdated record
is to be rewritten.

A target is named by the id that this replica has in it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.memory import record_versions
from ctx.memory.records import Record

LOCAL_KINDS = ("task.set",)
"""The current task belongs to a folder of one machine."""


class BatchContents(NamedTuple):
    """What a batch in a target contains, as far as other batches depend on it."""

    name: str
    replica: str
    records: Mapping[str, str]
    """The versions of its records, by id."""


class Replica(NamedTuple):
    """One machine that shares a target."""

    id: str
    machine: str
    sent_at: str
    has_left: bool


# Targets


class TargetState(NamedTuple):
    synced_at: str | None
    """The last time that it worked."""
    tried_at: str
    problem: str
    """Why the last attempt failed; empty if it worked."""


def target_state(connection: Connection, target: str) -> TargetState | None:
    row = connection.execute(
        "SELECT synced_at, tried_at, problem FROM sync_targets WHERE id = ?", (target,)
    ).fetchone()
    return TargetState._make(row) if row else None


def note_attempt(connection: Connection, target: str, problem: str = "") -> None:
    """Store how a sync went, inside a transaction."""
    now = clock.iso(clock.now_ms())
    connection.execute(
        "INSERT INTO sync_targets (id, synced_at, tried_at, failures, problem)"
        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET tried_at = ?3,"
        " synced_at = coalesce(?2, synced_at), failures = iif(?4, failures + 1, 0), problem = ?5",
        (target, None if problem else now, now, int(bool(problem)), problem),
    )


def forget_target(connection: Connection, target: str) -> None:
    """Inside a transaction."""
    for table in ("sync_batches", "sync_replicas", "sync_confirmed"):
        connection.execute(f"DELETE FROM {table} WHERE target = ?", (target,))
    connection.execute("DELETE FROM sync_targets WHERE id = ?", (target,))


# Batches


def known_batches(connection: Connection, target: str) -> set[str]:
    """The names of the batches that this store has read or written."""
    rows = connection.execute("SELECT name FROM sync_batches WHERE target = ?", (target,))
    return {row[0] for row in rows}


def add_batch(connection: Connection, target: str, batch: BatchContents) -> None:
    """Inside a transaction."""
    cursor = connection.execute(
        "INSERT INTO sync_batches (target, name, replica) VALUES (?, ?, ?)",
        (target, batch.name, batch.replica),
    )
    number = cursor.lastrowid
    connection.executemany(
        "INSERT INTO sync_records (batch, record, version) VALUES (?, ?, ?)",
        [(number, record, version) for record, version in batch.records.items()],
    )


def forget_batches(connection: Connection, target: str, names: Iterable[str]) -> None:
    """Forget batches that are no longer in a target, inside a transaction."""
    connection.executemany(
        "DELETE FROM sync_batches WHERE target = ? AND name = ?", [(target, name) for name in names]
    )


def batches_of_replica(connection: Connection, target: str, replica: str) -> dict[str, int]:
    """The number of records in each batch that a replica wrote."""
    rows = connection.execute(
        "SELECT name, count(record) FROM sync_batches LEFT JOIN sync_records ON batch = id"
        " WHERE target = ? AND replica = ? GROUP BY id ORDER BY id",
        (target, replica),
    )
    return dict(rows.fetchall())


def outdated_batches(connection: Connection, target: str) -> list[str]:
    """The batches that contain a version of a record that a scrub has replaced."""
    rows = connection.execute(
        "SELECT DISTINCT b.name FROM sync_versions v JOIN sync_records r ON r.record = v.record"
        " JOIN sync_batches b ON b.id = r.batch"
        " WHERE b.target = ? AND r.version <> v.version AND v.depth ="
        " (SELECT max(depth) FROM sync_versions other WHERE other.record = v.record)"
        " ORDER BY b.id",
        (target,),
    )
    return [row[0] for row in rows]


_SHARED = "stamp > 0 AND kind NOT IN ({})".format(", ".join(f"'{kind}'" for kind in LOCAL_KINDS))
_UNSENT = (
    f"{_SHARED} AND NOT EXISTS (SELECT 1 FROM sync_records"
    " JOIN sync_batches ON sync_batches.id = batch WHERE record = records.id AND target = ?)"
)


def unsent_count(connection: Connection, target: str) -> int:
    count: int = connection.execute(
        f"SELECT count(*) FROM records WHERE {_UNSENT}", (target,)
    ).fetchone()[0]
    return count


def unsent_ids(connection: Connection, target: str) -> list[str]:
    """The records that no batch of a target contains, oldest first."""
    rows = connection.execute(
        f"SELECT id FROM records WHERE {_UNSENT} ORDER BY stamp, id", (target,)
    )
    return [row[0] for row in rows]


def shared_ids(connection: Connection) -> list[str]:
    """The records that other stores may have too, oldest first."""
    rows = connection.execute(f"SELECT id FROM records WHERE {_SHARED} ORDER BY stamp, id")
    return [row[0] for row in rows]


def records_in(connection: Connection, target: str, names: Iterable[str]) -> list[str]:
    """The records that some batches of a target contain."""
    found: dict[str, None] = {}
    for name in names:
        rows = connection.execute(
            "SELECT record FROM sync_records JOIN sync_batches ON id = batch"
            " WHERE target = ? AND name = ?",
            (target, name),
        )
        found.update(dict.fromkeys(row[0] for row in rows))
    return list(found)


# Changes of other replicas


def note_foreign_changes(connection: Connection, came: Iterable[Record]) -> None:
    """Remember which changes came from another replica, inside a transaction."""
    changes = dict.fromkeys(record.change for record in came)
    connection.executemany(
        "INSERT OR IGNORE INTO sync_changes (change) VALUES (?)", [(each,) for each in changes]
    )


def is_foreign_change(connection: Connection, change: str) -> bool:
    """Whether another replica made a change."""
    row = connection.execute("SELECT 1 FROM sync_changes WHERE change = ?", (change,)).fetchone()
    return row is not None


# Edits of a text on two machines


def find_unread(connection: Connection, came: Iterable[str], again: Iterable[str]) -> None:
    """Inside a transaction: note which edits of a text here and among those that came were made
    without reading each other.

    An edit that comes now was not read by any that was made here, and one that was never sent was
    read nowhere. Edits of this replica that came back just now (`again`) may have read it.
    """
    note_unread(
        connection,
        connection.execute(
            "SELECT iif(is_later, own, other), iif(is_later, other, own) FROM ("
            " SELECT own.id AS own, r.id AS other,"
            " (own.stamp, own.id) > (r.stamp, r.id) AS is_later"
            " FROM json_each(?) AS came JOIN records AS r ON r.id = came.value"
            " JOIN records AS own ON own.subject = r.subject"
            f" WHERE {_EDITS.format('r')} AND {_EDITS.format('own')}"
            " AND own.change NOT IN (SELECT change FROM sync_changes)"
            " AND own.id NOT IN (SELECT value FROM json_each(?)))"
            " WHERE is_later OR NOT EXISTS (SELECT 1 FROM sync_records WHERE record = own)",
            (json.dumps([*came]), json.dumps([*again])),
        ).fetchall(),
    )


_EDITS = (
    "({0}.kind IN ('node.delete', 'node.restore') OR {0}.kind = 'node.put' AND"
    " coalesce(json_type({0}.body, '$.content'), json_type({0}.body, '$.summary')) IS NOT NULL)"
)


def note_unread(connection: Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Inside a transaction: note later edits, each with one that its author had not read."""
    connection.executemany(
        "INSERT OR IGNORE INTO sync_unread (record, unread) VALUES (?, ?)", pairs
    )


def unread_of(connection: Connection, wanted: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What was not read by the authors of some records, and of the edits that did not read them."""
    found: dict[str, tuple[str, ...]] = {}
    rows = connection.execute(
        "SELECT record, unread FROM sync_unread, (SELECT json(?) AS wanted)"
        " WHERE record IN (SELECT value FROM json_each(wanted))"
        " OR unread IN (SELECT value FROM json_each(wanted)) ORDER BY record, unread",
        (json.dumps([*wanted]),),
    )
    for record, unread in rows:
        found[record] = (*found.get(record, ()), unread)
    return found


def unread_by_node(connection: Connection) -> dict[str, set[tuple[str, str]]]:
    """For each node that was edited like this: the later edits, each with one that was not read."""
    found: dict[str, set[tuple[str, str]]] = {}
    for subject, *pair in connection.execute(
        "SELECT r.subject, u.record, u.unread FROM sync_unread AS u JOIN records AS r"
        " ON r.id = u.record ORDER BY r.subject"
    ):
        found.setdefault(subject, set()).add((pair[0], pair[1]))
    return found


def machine_of(connection: Connection, record: Record) -> str:
    """The machine on which a change was made, for people."""
    if not is_foreign_change(connection, record.change):
        return "this machine"
    row = connection.execute(
        "SELECT s.machine FROM sync_records AS r JOIN sync_batches AS b ON b.id = r.batch"
        " JOIN sync_replicas AS s ON s.target = b.target AND s.replica = b.replica"
        " WHERE r.record = ? AND b.replica <> b.target",
        (record.id,),
    ).fetchone()
    return row[0] if row and row[0] else "another machine"


# Replicas


def note_replica(
    connection: Connection, target: str, replica: Replica, confirmed: Iterable[str]
) -> None:
    """Store what a batch says about the replica that wrote it, inside a transaction."""
    connection.execute(
        "INSERT INTO sync_replicas (target, replica, machine, sent_at, has_left)"
        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (target, replica) DO UPDATE SET"
        " has_left = max(has_left, ?5), machine = iif(?4 >= sent_at, ?3, machine),"
        " sent_at = max(sent_at, ?4)",
        (target, replica.id, replica.machine, replica.sent_at, replica.has_left),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO sync_confirmed (target, replica, version) VALUES (?, ?, ?)",
        [(target, replica.id, version) for version in confirmed],
    )


def replicas_of(connection: Connection, target: str) -> list[Replica]:
    """The replicas that share a target, this one first."""
    rows = connection.execute(
        "SELECT replica, machine, sent_at, has_left FROM sync_replicas WHERE target = ?1"
        " ORDER BY replica <> ?1, machine, replica",
        (target,),
    )
    return [Replica(row[0], row[1], row[2], bool(row[3])) for row in rows]


def confirmed_versions(connection: Connection, target: str, replica: str) -> set[str]:
    rows = connection.execute(
        "SELECT version FROM sync_confirmed WHERE target = ? AND replica = ?", (target, replica)
    )
    return {row[0] for row in rows}


def unconfirmed(connection: Connection, target: str) -> Iterator[Replica]:
    """The replicas of a target that have not confirmed every scrub that is known here."""
    every = record_versions.versions(connection)
    for replica in replicas_of(connection, target):
        is_behind = every - confirmed_versions(connection, target, replica.id)
        if is_behind and not replica.has_left:
            yield replica
