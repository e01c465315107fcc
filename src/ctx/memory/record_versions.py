"""Versions of records: only a scrub gives a record another version than the original one.

A version is the id of a scrub, and it lists all earlier versions that it replaces. If two replicas
scrub one record independently, both versions are joined: what differs between them is removed, so
that neither secret comes back. The current version of a record replaces all others that are known.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import ids
from ctx.ids import Ulid
from ctx.memory import records
from ctx.memory.materialise import materialise, materialise_written
from ctx.memory.records import Record, as_json
from ctx.memory.written_records import NewSubjects, parts

ORIGINAL = ""
"""The version of a record that was never scrubbed."""

_REMOVED = "[scrubbed]"
_REMOVED_NAME = "scrubbed"


class RecordVersion(NamedTuple):
    """A version of a record, with all earlier versions that it replaces."""

    version: str
    replaces: tuple[str, ...] = ()


class VersionedRecord(NamedTuple):
    record: Record
    version: RecordVersion


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
        elif (stored := present.get(each.record.id)) and differs(stored, each.record):
            _join_unversioned(connection, each.record, applied)
    return applied


def replace_in_copy(connection: Connection, scrubbed: Iterable[Record]) -> bool:
    """Replace records in a backup, inside a transaction; whether it had any of them."""
    has_changed = False
    for record in scrubbed:
        before = records.records_with_ids(connection, [record.id])
        if before and differs(before[0], record):
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


def differs(stored: Record, came: Record) -> bool:
    """Whether something was scrubbed in one of two records with the same id."""
    return stored[4:8] != came[4:8] or as_json(stored.body) != as_json(came.body)


def _join_unversioned(connection: Connection, record: Record, applied: AppliedRecords) -> None:
    """Handle a record that was scrubbed here or elsewhere while no target knew it."""
    if current_version(connection, record.id).version:
        return
    (stored,) = records.records_with_ids(connection, [record.id])
    # It was scrubbed in one of two stores, without a version that would tell which.
    version = blake2b(stored.id.encode(), digest_size=13).hexdigest()
    both = VersionedRecord(joined(stored, record), RecordVersion(version))
    _add_version(connection, record.id, both.version)
    _replace(connection, [stored], both.record)
    applied.scrubbed.append(both.record)


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


def note_scrubbed_meanwhile(connection: Connection, sent: Iterable[VersionedRecord]) -> None:
    """Give records a new version that were scrubbed while they were sent, inside a transaction."""
    for each in sent:
        stored = records.records_with_ids(connection, [each.record.id])
        is_same_version = current_version(connection, each.record.id) == each.version
        if stored and is_same_version and differs(stored[0], each.record):
            note_scrub(connection, [each.record.id])


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
