"""Record batches: encodes records as objects and decodes them.

A record is an array, `[id, stamp, change, action, kind, subject, key, target, body, session,
author]`, with its body as JSON text. Fields that a newer version appends are ignored, and kept when
batches are merged, because merging does not decode records. Invalid records are kept and skipped.
"""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import msgspec

from ctx import clock
from ctx.ids import ObjectId, Ulid
from ctx.memory import records, valid_records
from ctx.memory.records import Record
from ctx.objects.object_store import Object, Reader, read_typed, typed
from ctx.objects.object_types import RecordBatch

INVALID = "?"
"""The prefix of the kind of an invalid record."""
_CENTURY_MS = 100 * 365 * 86_400_000
_LONGEST_NAME = 500
_IDS = re.compile("(?:[0-7][0-9A-HJKMNP-TV-Z]{25}){2}")
_NO_TIME = f"{'0' * 10}{'Z' * 16}"
_ENCODER = msgspec.msgpack.Encoder()
_BODY = msgspec.json.Decoder(dict[str, Any])


def encode_batch(written: Sequence[Record], blobs: Iterable[ObjectId] = ()) -> Object:
    """The batch of records that were written together."""
    rows = ((*record[:8], records.as_json(record.body), *record[9:]) for record in written)
    packed = tuple(msgspec.Raw(_ENCODER.encode(row)) for row in rows)
    return typed(RecordBatch(packed, blobs=tuple(sorted(set(blobs)))))


def merge_batches(
    reader: Reader, batch_ids: Sequence[ObjectId], withheld: Container[str] = ()
) -> Object | None:
    """One batch with the records of several batches, in order; None if there are none.

    `withheld` records are left out, and so are blobs that only they refer to.
    """
    whole = [read_typed(reader, batch_id, RecordBatch) for batch_id in batch_ids]
    kept = [left for batch in whole if (left := _without_records(batch, withheld)) is not None]
    if not kept:
        return None
    if kept == whole and len(whole) == 1:
        return reader.read(batch_ids[0])
    every = dict.fromkeys(bytes(raw) for batch in kept for raw in batch.records)
    blobs = {blob for batch in kept for blob in batch.blobs}
    return typed(RecordBatch(tuple(map(msgspec.Raw, every)), blobs=tuple(sorted(blobs))))


def _without_records(batch: RecordBatch, withheld: Container[str]) -> RecordBatch | None:
    """The rest of a batch; None if nothing is left."""
    before = latest()
    decoded = [(raw, _decode_record(raw, before)) for raw in batch.records] if withheld else []
    kept = [
        (raw, record) for raw, record in decoded if record is None or record[0].id not in withheld
    ]
    if len(kept) == len(decoded):
        return batch
    bodies = [record[1] for _, record in kept if record is not None]
    blobs = tuple(blob for blob in batch.blobs if any(blob in body for body in bodies))
    return RecordBatch(tuple(raw for raw, _ in kept), batch.created_at, blobs) if kept else None


def read(reader: Reader, batch_id: ObjectId) -> list[Record]:
    """The records of a batch. Invalid entries are skipped; the object keeps them."""
    return [record for record, _ in decode_batch(read_typed(reader, batch_id, RecordBatch))]


def texts(written: Iterable[Record]) -> tuple[str, ...]:
    """The last texts of the nodes in some records, without deleted ones."""
    found: dict[str, str] = {}
    for record in written:
        if record.kind == "node.put" and isinstance(content := record.body.get("content"), str):
            found[record.subject] = content
        elif record.kind == "node.delete":
            found.pop(record.subject, None)
    return tuple(found.values())


def decode_batch(
    batch: RecordBatch, fits: Callable[[Record], bool] = valid_records.fits
) -> list[tuple[Record, str]]:
    """The records of a batch with their bodies as text. Of two with one id, the first wins."""
    by_id: dict[str, tuple[Record, str]] = {}
    before = latest()
    for raw in batch.records:
        if (record := _decode_record(raw, before, fits)) is not None:
            by_id.setdefault(record[0].id, record)
    return list(by_id.values())


class _Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record as it is encoded."""

    id: str
    stamp: int
    change: str
    action: str
    kind: str
    subject: str
    key: str
    target: str | None
    body: str
    session: str
    author: str


_DECODER = msgspec.msgpack.Decoder(_Row)


def latest() -> int:
    """The upper bound of accepted stamps: a century from now.

    The next record must get a later stamp than all records that were read. With a fixed bound, a
    record with the last stamp could never be overridden; this bound grows every day.
    """
    return min((clock.now_ms() + _CENTURY_MS) << clock.COUNTER_BITS, records.BEYOND)


def _decode_record(
    raw: msgspec.Raw, before: int, fits: Callable[[Record], bool] = valid_records.fits
) -> tuple[Record, str] | None:
    """Decode and check a record that anybody may have written; None if it has no valid id or a
    stamp that is not `before` the bound.

    A record that is invalid for its kind gets an unknown kind, so that readers skip it.
    """
    try:
        row = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # Records from documents have ids without a time and a stamp beyond the bound.
    if not (_IDS.fullmatch(row.id + row.change) and row.id > _NO_TIME and 0 < row.stamp < before):
        return None
    body = _body(row.body)
    # People are shown these fields unchanged.
    shown: tuple[str, ...] = row.action, row.kind, row.session, row.author
    text = "".join(shown)
    if len(text) > _LONGEST_NAME or not text.isprintable():
        shown = (*map(_printable, shown),)
    action, kind, session, author = shown
    record = Record(
        Ulid(row.id), row.stamp, Ulid(row.change), action, kind, row.subject, row.key,
        row.target, body or {}, session, author,
    )  # fmt: skip
    if body is None or not fits(record):
        return record._replace(kind=f"{INVALID}{kind}", body={}), "{}"
    return record, row.body


def _body(text: str) -> dict[str, Any] | None:
    """Parse a body; None if it is not an object or cannot be stored in a database."""
    if text == "{}":
        return {}
    try:
        return _BODY.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _printable(text: str) -> str:
    shown = (character if character.isprintable() else "�" for character in text[:_LONGEST_NAME])
    return "".join(shown)
