"""Checksums of sets of records, to compare what two stores have.

The checksum of a set does not depend on its order: it is the exclusive or of a hash of each record.
A team's server computes the same hash in SQL (`sync/team_records.py`).
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from ctx.memory.record_versions import RecordVersion, VersionedRecord
from ctx.memory.records import as_json

SEPARATOR = "\x1f"
"""Between the fields of a record."""
NONE = "\x1e"
"""For a record without a target."""
HASH_BYTES = 16


class RecordChecksum(NamedTuple):
    records: int
    checksum: str


class HeldRecord(NamedTuple):
    """What a store says about a record that it has."""

    version: RecordVersion
    hash: int


class Checksums:
    """The number of records of each kind, and the checksum of their content."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, int]] = {}

    def add_records(self, records: Iterable[VersionedRecord]) -> None:
        for each in records:
            self.add(each.record.kind, 1, hash_of(each))

    def add(self, kind: str, records: int, checksum: int) -> None:
        """Add a set of records with a known checksum."""
        before = self._kinds.get(kind, (0, 0))
        self._kinds[kind] = before[0] + records, before[1] ^ checksum

    def by_kind(self) -> Mapping[str, RecordChecksum]:
        return {
            kind: RecordChecksum(records, f"{checksum:0{2 * HASH_BYTES}x}")
            for kind, (records, checksum) in sorted(self._kinds.items())
        }


def hash_of(each: VersionedRecord) -> int:
    """The checksum of one record."""
    record = each.record
    fields = (
        record.id, str(record.stamp), record.change, record.action, record.kind, record.subject,
        record.key, NONE if record.target is None else record.target, as_json(record.body),
        record.session, record.author, each.version.version,
    )  # fmt: skip
    digest = sha256(SEPARATOR.join(fields).encode()).digest()
    return int.from_bytes(digest[:HASH_BYTES], "big")
