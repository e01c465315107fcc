"""Encodes typed objects as bytes, and decodes them.

The payload is the msgpack array `[type, version, fields]`, with the fields as a map in the order of
the struct. The same value gives the same bytes in every process: there are no sets and no floats,
and maps are sorted. An unknown type decodes to `UnknownObject`, and unknown fields are skipped.
"""

import re

import msgspec

from ctx.errors import DeserializationFailed
from ctx.ids import ObjectId
from ctx.objects import object_types
from ctx.objects.object_types import Typed

TYPES: dict[str, tuple[int, type[Typed]]] = {
    "commit": (1, object_types.Commit),
    "tree": (1, object_types.Tree),
    "work_commit": (1, object_types.WorkCommit),
    "file_version": (1, object_types.FileVersion),
    "record_batch": (1, object_types.RecordBatch),
    "edge_batch": (1, object_types.EdgeBatch),
    "cargo_snapshot": (1, object_types.CargoSnapshot),
    "code_snapshot": (1, object_types.CodeSnapshot),
    "diagnostics_snapshot": (1, object_types.DiagnosticsSnapshot),
}
_NAMES = {cls: (name, version) for name, (version, cls) in TYPES.items()}
_DECODERS = {name: msgspec.msgpack.Decoder(cls) for name, (_, cls) in TYPES.items()}
_HEADER = msgspec.msgpack.Decoder(tuple[str, int, msgspec.Raw])
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_NAMED_ID = re.compile(rb"\x40([0-9a-f]{64})")


class UnknownObject(msgspec.Struct, frozen=True):
    """A typed object of a kind from a newer version."""

    type_name: str
    version: int


def encode(value: Typed) -> bytes:
    name, version = _NAMES[type(value)]
    return _ENCODER.encode((name, version, value))


def decode(payload: bytes) -> Typed | UnknownObject:
    try:
        name, version, fields = _HEADER.decode(payload)
        if name not in TYPES:
            return UnknownObject(name, version)
        try:
            value: Typed = _DECODERS[name].decode(fields)
        except msgspec.ValidationError:
            if version > TYPES[name][0]:
                return UnknownObject(name, version)
            raise
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DeserializationFailed(f"A typed object cannot be read: {error}.") from error
    return value


def type_name(value: Typed | UnknownObject) -> str:
    return value.type_name if isinstance(value, UnknownObject) else _NAMES[type(value)][0]


def is_newer(payload: bytes) -> bool:
    """Whether a newer version wrote this, so that rewriting it could lose data."""
    name, version, _ = _HEADER.decode(payload)
    return name not in TYPES or version > TYPES[name][0]


def raw_fields(payload: bytes) -> object:
    """The fields of a typed object as written, whatever its type."""
    try:
        return msgspec.msgpack.decode(payload)[2]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise DeserializationFailed(f"A typed object cannot be read: {error}.") from error


def named_ids(payload: bytes) -> set[ObjectId]:
    """Every object id in a typed payload, including parts that this version does not know.

    Garbage collection uses this, so it cannot miss a field. An id that is not an object does no
    harm.
    """
    # An id is a text of 64 characters, so the byte before it is the last one of that length.
    return {ObjectId(id.decode()) for id in _NAMED_ID.findall(payload)}
