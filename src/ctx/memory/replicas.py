"""What other replicas of the user store have: the tables behind `ctx sync`.

A target holds batches of records. This module stores which batches of a target the store has read
or written, which records are in each, and in which version. Everything else follows: a record that
is in no batch of a target is to be sent, and a batch with an outdated record is to be rewritten.

Only a scrub gives a record another version. Its version is the id of the scrub, and it lists all
earlier versions that it replaces. If two replicas scrub one record independently, both versions are
joined: what differs between them is removed, so that neither secret comes back.

A target is named by the id that this replica has in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, ids
from ctx.ids import Ulid
from ctx.memory import records
from ctx.memory.materialise import materialise, materialise_written
from ctx.memory.records import Record, as_json
from ctx.memory.written_records import NewSubjects, parts

ORIGINAL = ""
"""The version of a record that was never scrubbed."""

_LOCAL_KINDS = ("task.set",)
"""The current task belongs to a folder of one machine."""
_REMOVED = "[scrubbed]"
_REMOVED_NAME = "scrubbed"


class RecordVersion(NamedTuple):
    """A version of a record, with all earlier versions that it replaces."""

    version: str
    replaces: tuple[str, ...] = ()


class VersionedRecord(NamedTuple):
    record: Record
    version: RecordVersion


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


_UNSENT = (
    "stamp > 0 AND kind NOT IN ({}) AND NOT EXISTS (SELECT 1 FROM sync_records"
    " JOIN sync_batches ON sync_batches.id = batch WHERE record = records.id AND target = ?)"
).format(", ".join(f"'{kind}'" for kind in _LOCAL_KINDS))


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


def current_records(connection: Connection, wanted: Sequence[str]) -> list[VersionedRecord]:
    scrubbed = {row[0] for row in connection.execute("SELECT DISTINCT record FROM sync_versions")}
    return [
        VersionedRecord(
            record,
            current_version(connection, record.id)
            if record.id in scrubbed
            else RecordVersion(ORIGINAL),
        )
        for record in records.records_with_ids(connection, wanted)
    ]


# Records of other replicas


class AppliedRecords(NamedTuple):
    new: list[Record]
    """Records that the store did not have."""
    scrubbed: list[Record]
    """Records that the store had in another version."""


def apply_records(connection: Connection, came: Sequence[VersionedRecord]) -> AppliedRecords:
    """Add records that came from elsewhere, inside a transaction.

    A record that is already there stays as it is, unless a scrub has changed it.
    """
    originals = {each.record.id: each.record for each in came if not each.version.version}
    present = _present(connection, originals)
    new = [record for record_id, record in originals.items() if record_id not in present]
    records.insert(connection, new)
    materialise_written(connection, new, NewSubjects(set(), set()))
    applied = AppliedRecords(new, [])
    for each in came:
        if each.version.version:
            _apply_version(connection, each, applied)
        elif (stored := present.get(each.record.id)) and _differs(stored, each.record):
            _join_unversioned(connection, each.record, applied)
    return applied


def replace_in_copy(connection: Connection, scrubbed: Iterable[Record]) -> bool:
    """Replace records in a backup, inside a transaction; whether it had any of them."""
    has_changed = False
    for record in scrubbed:
        before = records.records_with_ids(connection, [record.id])
        if before and _differs(before[0], record):
            _replace(connection, before, record)
            has_changed = True
    return has_changed


def _present(connection: Connection, wanted: Iterable[Ulid]) -> dict[Ulid, Record]:
    """The records that the store has already."""
    present: dict[Ulid, Record] = {}
    for part in parts(wanted):
        places = ", ".join("?" * len(part))
        rows = connection.execute(f"SELECT id FROM records WHERE id IN ({places})", part)
        found = records.records_with_ids(connection, [row[0] for row in rows.fetchall()])
        present.update({record.id: record for record in found})
    return present


def _differs(stored: Record, came: Record) -> bool:
    return stored[4:8] != came[4:8] or as_json(stored.body) != as_json(came.body)


def _join_unversioned(connection: Connection, record: Record, applied: AppliedRecords) -> None:
    """Handle a record that was scrubbed here or elsewhere while no target knew it."""
    if current_version(connection, record.id).version:
        return
    (stored,) = records.records_with_ids(connection, [record.id])
    version = blake2b(record.id.encode(), digest_size=13).hexdigest()
    _add_version(connection, record.id, RecordVersion(version))
    both = joined(stored, record)
    _replace(connection, [stored], both)
    applied.scrubbed.append(both)


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


# Versions


def scrubbed_records(connection: Connection) -> list[Record]:
    """Every record that has another version than the original one."""
    rows = connection.execute("SELECT DISTINCT record FROM sync_versions")
    return records.records_with_ids(connection, [row[0] for row in rows.fetchall()])


def current_version(connection: Connection, record: str) -> RecordVersion:
    row = connection.execute(
        "SELECT version, replaces FROM sync_versions WHERE record = ? ORDER BY depth DESC LIMIT 1",
        (record,),
    ).fetchone()
    return RecordVersion(row[0], tuple(row[1].split())) if row else RecordVersion(ORIGINAL)


def note_scrub(connection: Connection, scrubbed: Iterable[str]) -> None:
    """Give records a new version, if other replicas may have them, inside a transaction."""
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'sync_versions'"
    if connection.execute(tables).fetchone() is None:
        # A backup with an older schema.
        return
    scrub = ids.new_ulid()
    for record in scrubbed:
        is_shared = connection.execute(
            "SELECT 1 FROM sync_records WHERE record = ? LIMIT 1", (record,)
        ).fetchone()
        if is_shared:
            before = current_version(connection, record)
            _add_version(connection, record, _successor(scrub, before))


def versions(connection: Connection) -> set[str]:
    """Every scrub that this store has applied, also those that later ones replaced."""
    rows = connection.execute("SELECT DISTINCT version || ' ' || replaces FROM sync_versions")
    return {word for row in rows for word in row[0].split()}


def _apply_version(connection: Connection, came: VersionedRecord, applied: AppliedRecords) -> None:
    """Replace a record by a scrubbed version of it, unless it has a later one."""
    record, version = came
    now = current_version(connection, record.id)
    if version.version in (now.version, *now.replaces):
        return
    before = records.records_with_ids(connection, [record.id])
    _add_version(connection, record.id, version)
    if now.version and now.version not in version.replaces:
        # Two replicas scrubbed it, and neither knew of the other.
        digest = blake2b(" ".join(sorted((now.version, version.version))).encode(), digest_size=13)
        both = _successor(digest.hexdigest(), now, version)
        _add_version(connection, record.id, both)
        record = joined(before[0], record) if before else record
    _replace(connection, before, record)
    (applied.scrubbed if before else applied.new).append(record)


def _replace(connection: Connection, before: Sequence[Record], record: Record) -> None:
    connection.execute("DELETE FROM records WHERE id = ?", (record.id,))
    records.insert(connection, [record])
    materialise(connection, [*before, record])


def _successor(version: str, *before: RecordVersion) -> RecordVersion:
    every = {word for each in before for word in (each.version, *each.replaces) if word}
    return RecordVersion(version, tuple(sorted(every)))


def _add_version(connection: Connection, record: str, version: RecordVersion) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO sync_versions (record, version, depth, replaces)"
        " VALUES (?, ?, ?, ?)",
        (record, version.version, len(version.replaces), " ".join(version.replaces)),
    )


def joined(one: Record, other: Record) -> Record:
    """A record without anything in which two scrubbed versions of it differ."""
    if (one.kind, one.subject, one.key) != (other.kind, other.subject, other.key):
        # Its name was scrubbed, and a record without a subject has no effect.
        return one._replace(kind="scrubbed", subject="", key="", target=None, body={})
    session = one.session if one.session == other.session else _REMOVED_NAME
    author = one.author if one.author == other.author else _REMOVED_NAME
    return one._replace(body=_joined(one.body, other.body), session=session, author=author)


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both: dict[str, Any] = {}
    for key in sorted(one.keys() & other.keys()):
        first, second = one[key], other[key]
        if first == second:
            both[key] = first
        elif isinstance(first, dict) and isinstance(second, dict):
            both[key] = _joined(first, second)
        elif isinstance(first, str) and isinstance(second, str):
            both[key] = _REMOVED
    return both


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
    every = versions(connection)
    for replica in replicas_of(connection, target):
        is_behind = every - confirmed_versions(connection, target, replica.id)
        if is_behind and not replica.has_left:
            yield replica
