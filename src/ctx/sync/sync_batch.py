"""A batch that one replica sends to the others, as bytes.

The records are a `RecordBatch`, as in a project's store (`project/batches.py`), so that a record
has one encoding everywhere. Records that a scrub has changed have a version besides.
"""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from ctx import clock
from ctx.errors import DeserializationFailed, NewerFormat
from ctx.memory import valid_records
from ctx.memory.record_versions import ORIGINAL, RecordVersion, VersionedRecord
from ctx.memory.replicas import BatchContents, Replica
from ctx.objects import codec
from ctx.objects.object_store import LARGEST_OBJECT
from ctx.objects.object_types import RecordBatch
from ctx.project import batches

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_FORMAT = 1
_LONGEST_NAME = 200
_DAMAGE = (EOFError, LookupError, MemoryError, RecursionError, ValueError)


class SyncBatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields are only added, at the end and with a default."""

    replica: str
    machine: str
    """The name of its machine, for people."""
    at: int
    """When it was written, in milliseconds."""
    records: bytes = b""
    """A `RecordBatch` as typed bytes; empty if there are no records."""
    versions: dict[str, tuple[str, ...]] = {}
    """The versions of scrubbed records: the current one, then those that it replaces."""
    confirmed: tuple[str, ...] = ()
    """Scrubs that the replica has applied."""
    has_left: bool = False
    """Whether the replica will send nothing more."""
    project: str = ""
    """The project whose members may read it on a team's server; empty for one person's own."""
    unread: dict[str, tuple[str, ...]] = {}
    """Edits, each with earlier ones of the same text that its author had not read."""


class DecodedBatch(NamedTuple):
    batch: SyncBatch
    records: tuple[VersionedRecord, ...]
    contents: BatchContents
    replica: Replica


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_HEADER = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_FIELDS = msgspec.msgpack.Decoder(SyncBatch)
_ROW = msgspec.msgpack.Decoder(list[msgspec.Raw])


def new_batch(
    replica: Replica,
    records: Sequence[VersionedRecord] = (),
    confirmed: Sequence[str] = (),
    project: str = "",
    unread: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> SyncBatch:
    packed = batches.encode_batch([each.record for each in records]).payload if records else b""
    versions: dict[str, tuple[str, ...]] = {
        each.record.id: (each.version.version, *each.version.replaces)
        for each in records
        if each.version.version
    }
    return SyncBatch(
        replica.id, replica.machine, clock.now_ms(), packed, versions, tuple(sorted(confirmed)),
        replica.has_left, project, dict(unread),
    )  # fmt: skip


def encode(batch: SyncBatch) -> bytes:
    return zstd.compress(_ENCODER.encode((_FORMAT, batch)))


def identity(batch: SyncBatch) -> bytes:
    """What the name of a batch depends on: a batch that is written again keeps its name."""
    return _ENCODER.encode(msgspec.structs.replace(batch, at=0, machine=""))


def encoded_identity(data: bytes) -> bytes:
    """The same of an encoded batch, with fields of newer versions."""
    try:
        _, fields = _HEADER.decode(_decompressed(data))
        named = msgspec.msgpack.decode(fields, type=dict[str, Any])
    except (*_DAMAGE, msgspec.MsgspecError, zstd.ZstdError) as error:
        raise DeserializationFailed("it is damaged") from error
    return msgspec.msgpack.encode(named | {"at": 0, "machine": ""})


def _decompressed(data: bytes) -> bytes:
    return zstd.ZstdDecompressor().decompress(data, LARGEST_OBJECT)


def decode(name: str, data: bytes) -> DecodedBatch:
    """Decode a batch that anybody may have written. Invalid records are left out."""
    try:
        version, fields = _HEADER.decode(_decompressed(data))
        if version > _FORMAT:
            raise NewerFormat("a newer version of ctx wrote it")
        batch = _FIELDS.decode(fields)
        found = _record_batch(batch)
        contents = contents_of(name, batch)
        named = (*batch.versions.values(), *batch.unread.values(), tuple(batch.unread))
        if not all(word.isalnum() for words in named for word in words):
            raise ValueError("a version or a record is not an id")
    except (*_DAMAGE, msgspec.MsgspecError, zstd.ZstdError) as error:
        raise DeserializationFailed("it is damaged") from error
    versions = {
        id: RecordVersion(words[0], words[1:]) for id, words in batch.versions.items() if words
    }
    original = RecordVersion(ORIGINAL)
    decoded = batches.decode_batch(found, valid_records.fits_user_store)
    records = tuple(
        VersionedRecord(record, versions.get(record.id, original))
        for record, _ in decoded
        if not record.kind.startswith(batches.INVALID)
    )
    machine = "".join(c for c in batch.machine[:_LONGEST_NAME] if c.isprintable())
    return DecodedBatch(
        batch,
        records,
        contents,
        Replica(batch.replica, machine, clock.iso(batch.at), batch.has_left),
    )


def accepted(records: Sequence[VersionedRecord]) -> tuple[VersionedRecord, ...]:
    """Those of some records that a replica accepts; anybody may have written them."""
    try:
        return decode("", encode(new_batch(Replica("", "", "", False), records))).records
    except (*_DAMAGE, TypeError, DeserializationFailed):
        if len(records) < 2:
            return ()
    half = len(records) // 2
    return accepted(records[:half]) + accepted(records[half:])


def contents_of(name: str, batch: SyncBatch) -> BatchContents:
    """The records of a batch, valid or not, with their versions."""
    ids = map(_id, _record_batch(batch).records)
    return BatchContents(
        name, batch.replica, {id: (*batch.versions.get(id, ()), ORIGINAL)[0] for id in ids}
    )


def replaced(
    batch: SyncBatch, replica: Replica, current: Mapping[str, VersionedRecord]
) -> SyncBatch:
    """The same batch with the current versions of some records, as another replica sends it.

    Other records are not decoded, so that nothing of a newer version is lost.
    """
    every = _record_batch(batch)
    renewed = batches.encode_batch([each.record for each in current.values()])
    by_id = {_id(raw): raw for raw in _typed(renewed.payload).records}
    rows = tuple(by_id.get(_id(raw), raw) for raw in every.records)
    versions = batch.versions | {
        id: (each.version.version, *each.version.replaces) for id, each in current.items()
    }
    return msgspec.structs.replace(
        batch,
        replica=replica.id,
        machine=replica.machine,
        records=codec.encode(RecordBatch(rows)),
        versions=versions,
        confirmed=(),
    )


def _record_batch(batch: SyncBatch) -> RecordBatch:
    return _typed(batch.records) if batch.records else RecordBatch(())


def _typed(payload: bytes) -> RecordBatch:
    found = codec.decode(payload)
    if not isinstance(found, RecordBatch):
        raise DeserializationFailed("it is damaged")
    return found


def _id(raw: msgspec.Raw) -> str:
    id: str = msgspec.msgpack.decode(_ROW.decode(raw)[0], type=str)
    return id
