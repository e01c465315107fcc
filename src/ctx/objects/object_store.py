"""Objects, and the protocol of object stores.

An object's canonical bytes are the magic `CTXO1`, one byte of kind, the payload's length as 64 bits
little-endian, and the payload. Its id is the BLAKE3 hash of those bytes. How a store keeps them is
up to the store. Every object that it returns has been checked against its id.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from blake3 import blake3

from ctx.errors import (
    BudgetExceeded,
    CtxError,
    DeserializationFailed,
    HashMismatch,
    InvalidEnvelope,
    ObjectNotFound,
)
from ctx.ids import ObjectId
from ctx.objects import codec
from ctx.objects.object_types import Typed

MAGIC = b"CTXO1"
HEADER_LENGTH = len(MAGIC) + 1 + 8

DAMAGE = (HashMismatch, InvalidEnvelope, DeserializationFailed)
"""Errors for an object that exists but is damaged."""

LARGEST_OBJECT = 256 * 1024 * 1024
"""The bytes of the largest blob: the largest `ingestion.max_file_bytes`."""
LARGEST_TYPED = 4 * 1024 * 1024
"""The bytes of the largest typed object that ctx writes: what is larger is split. In memory it may
take 50 times as much, and a file of a few kilobytes can decompress to any size."""


class Kind(IntEnum):
    BLOB = 1
    TYPED = 2


_KINDS = {kind.value: kind for kind in Kind}
_BLOB_HEADER = MAGIC + bytes([Kind.BLOB])
_TYPED_HEADER = MAGIC + bytes([Kind.TYPED])


class Object(NamedTuple):
    """A kind, a payload, and the id that follows from both."""

    id: ObjectId
    kind: Kind
    payload: bytes

    @property
    def canonical(self) -> bytes:
        return _canonical(self.kind, self.payload)


def blob(payload: bytes) -> Object:
    return from_payload(Kind.BLOB, payload)


def typed(value: Typed) -> Object:
    return from_payload(Kind.TYPED, codec.encode(value))


def parts_of(whole: Object, *fields: str) -> list[Object]:
    """The object, or several with a part of the values in these fields each, if it is too large
    to be read elsewhere."""
    value = decode(whole)
    lists = {name: getattr(value, name) for name in fields}
    is_whole = len(whole.payload) <= LARGEST_TYPED or max(map(len, lists.values())) < 2
    if is_whole or value is None or isinstance(value, codec.UnknownObject):
        return [whole]
    first, second = {}, {}
    for name, every in lists.items():
        middle = (len(every) + 1) // 2
        first[name], second[name] = every[:middle], every[middle:]
    halves = (typed(msgspec.structs.replace(value, **half)) for half in (first, second))
    return [part for half in halves for part in parts_of(half, *fields)]


def refuse_too_large(made: Iterable[Object]) -> None:
    """Refuse to write typed objects that nobody could read elsewhere."""
    for each in made:
        if each.kind is Kind.TYPED and len(each.payload) > LARGEST_TYPED:
            name = codec.type_name(codec.decode(each.payload))
            raise BudgetExceeded(
                f"This needs {len(each.payload):,} bytes in one object ({name}). In a project's"
                f" store, at most {LARGEST_TYPED:,} bytes are read.",
                hint="Shorten the text. To store it as a file: `ctx add file`",
            )


def from_payload(kind: Kind, payload: bytes) -> Object:
    """An object from bytes that are already encoded."""
    if len(payload) > LARGEST_OBJECT:
        raise BudgetExceeded(f"An object of {len(payload):,} bytes is larger than any may be.")
    return Object(id_of(_canonical(kind, payload)), kind, payload)


def _canonical(kind: Kind, payload: bytes) -> bytes:
    header = _BLOB_HEADER if kind is Kind.BLOB else _TYPED_HEADER
    return header + len(payload).to_bytes(8, "little") + payload


def id_of(canonical: bytes) -> ObjectId:
    return ObjectId(blake3(canonical).hexdigest())


def parse(id: ObjectId, canonical: bytes) -> Object:
    """The object in canonical bytes whose hash has been checked."""
    if len(canonical) < HEADER_LENGTH or canonical[:5] != MAGIC:
        raise InvalidEnvelope(f"Object {id} does not begin as an object.")
    if int.from_bytes(canonical[6:14], "little") != len(canonical) - HEADER_LENGTH:
        raise InvalidEnvelope(f"Object {id} is not as long as it says.")
    kind = _KINDS.get(canonical[5])
    if kind is None:
        raise InvalidEnvelope(f"Object {id} is of unknown kind {canonical[5]}.")
    return Object(id, kind, canonical[HEADER_LENGTH:])


class Reader(Protocol):
    """A source of objects."""

    def read(self, id: ObjectId) -> Object:
        """An object, checked against its id; otherwise E001, E002 or E003."""

    def __contains__(self, id: ObjectId) -> bool:
        """Whether there is an object with this id; its content is not checked."""


class ObjectStore(Reader, Protocol):
    """A set of objects that only grows. Garbage collection works on files, not on a store."""

    def write(self, objects: Iterable[Object]) -> int:
        """Store objects, and return how many were new. All are durable when this returns."""

    def ids(self) -> Iterator[ObjectId]:
        """The ids of everything here, in order."""


class LayeredReader:
    """Several stores read as one: the first one with an undamaged copy answers."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = readers

    def read(self, id: ObjectId) -> Object:
        damage: CtxError | None = None
        for reader in self._readers:
            try:
                return reader.read(id)
            except ObjectNotFound:
                continue
            except (HashMismatch, InvalidEnvelope) as error:
                damage = damage or error
        raise damage or ObjectNotFound(f"Object {id} does not exist.")

    def __contains__(self, id: ObjectId) -> bool:
        return any(id in reader for reader in self._readers)


T = TypeVar("T", bound=Typed)


def read_typed(reader: Reader, id: ObjectId, expected: type[T]) -> T:
    """A typed object, which must have the given type."""
    value = decode(reader.read(id))
    if not isinstance(value, expected):
        actual = "a blob" if value is None else f"a {codec.type_name(value)}"
        wanted = expected.__name__
        raise DeserializationFailed(f"Object {id} is {actual} where a {wanted} should be.")
    return value


def decode(stored: Object) -> Typed | codec.UnknownObject | None:
    """The content of a typed object; None for a blob."""
    if stored.kind is Kind.BLOB:
        return None
    try:
        return codec.decode(stored.payload)
    except DeserializationFailed as error:
        raise DeserializationFailed(f"Object {stored.id}: {error.message}") from error


def derived_id(*parts: str) -> ObjectId:
    """A stable name for something that is not an object: a file, an item, a target."""
    return ObjectId(blake3("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest())
