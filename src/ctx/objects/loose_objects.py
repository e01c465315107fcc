"""Objects as files: `objects/ab/ab12…`, one each, compressed, written once.

A file is a zstd frame with the canonical bytes, and a skippable frame with the CRC of the first.
`zstd -d` can read it, and a change of any bit is detected. (A few bits of a zstd frame have no
meaning, so the hash of the content alone would not detect every change.)

A second copy of an object may exist as `ab12….<random>`; see `write_again`. For a scrubbed object,
its replacement is read; see `replaced_objects`.
"""

import copy
import errno
import os
import secrets
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Self

from blake3 import blake3

from ctx import clock, disk
from ctx.errors import (
    HashMismatch,
    InvalidEnvelope,
    ObjectNotFound,
    ObjectTooLarge,
    PathRefused,
)
from ctx.ids import OBJECT_ID_LENGTH, ObjectId, is_object_id
from ctx.objects.object_store import (
    HEADER_LENGTH,
    LARGEST_OBJECT,
    LARGEST_TYPED,
    Kind,
    Object,
    parse,
)
from ctx.objects.read_limits import WorkLimit
from ctx.objects.replaced_objects import ReplacedObjects

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# A zstd skippable frame: its magic number, and the length of its content.
_SEAL_HEADER = b"\x50\x2a\x4d\x18\x04\x00\x00\x00"
_SEAL_LENGTH = len(_SEAL_HEADER) + 4
_PART = 1024 * 1024
# A folder that changed this recently may change again without a new time stamp.
_RACY_NS = 2_000_000_000


class LooseStore:
    """The object store of a folder. Writers hold the project's lock."""

    def __init__(
        self,
        folder: str,
        compression_level: int = 3,
        replaced: ReplacedObjects | None = None,
        limit: WorkLimit | None = None,
    ) -> None:
        self.folder = folder
        self._level = compression_level
        self._replaced = replaced
        self._limit = limit
        self._keeps_blobs = True
        self._copies_in: dict[str, tuple[object, dict[ObjectId, list[str]]]] = {}

    def skimming(self) -> Self:
        """The same objects, with the same checks, but blobs come without their content: for walks
        over everything, which must not need the memory of the largest blob."""
        twin = copy.copy(self)
        twin._keeps_blobs = False
        return twin

    def write(self, objects: Iterable[Object]) -> int:
        missing: list[Object] = []
        touched = set()
        for item in {item.id: item for item in objects}.values():
            current = self._current(item.id)
            if os.path.exists(self._path(current)) and self.is_sound(current):
                # Its name may not be durable yet if the process that wrote it was killed.
                touched.add(self._shard(current))
            else:
                missing.append(item)
        self._write_files([(self._path(item.id), item) for item in missing], touched)
        return len(missing)

    def write_again(self, objects: Iterable[Object]) -> None:
        """Write objects that already exist here under a second name.

        In a merge, git removes a file that one side deleted and the other did not change. So a
        commit that uses an old object, which another branch may have collected, must add its own
        file.
        """
        named = [(f"{self._path(item.id)}.{secrets.token_hex(4)}", item) for item in objects]
        self._write_files(named, set())

    def rewrite(self, objects: Iterable[Object]) -> None:
        """Write objects that already exist here, each to its own file."""
        LooseStore._write_files(self, [(self._path(item.id), item) for item in objects], set())

    def read(self, id: ObjectId) -> Object:
        """Read an object. For a scrubbed object, this is its replacement, which has another id."""
        if self._replaced:
            *others, _ = self._replaced.standing_in(id)
            for stand_in in others:
                if self._limit:
                    self._limit.count_object()
                # The replacement is not here, is in another store, or was replaced again.
                with suppress(ObjectNotFound):
                    if self._has(stand_in) and not self.was_emptied(self._path(stand_in), stand_in):
                        return self._read_any(stand_in)
        return self._read_any(id)

    def was_emptied(self, path: str, id: ObjectId) -> bool:
        """Whether a file is the empty remainder of a scrubbed object."""
        with suppress(FileNotFoundError):
            return self._current(id) != id and not os.path.getsize(path)
        return False

    def _current(self, id: ObjectId) -> ObjectId:
        return self._replaced.current(id) if self._replaced else id

    def _read_any(self, id: ObjectId) -> Object:
        try:
            return self._read(id, self._path(id))
        except (ObjectNotFound, HashMismatch, InvalidEnvelope):
            for copy in self._copies(id):
                return self._read(id, copy)
            raise

    def read_file(self, path: str) -> Object:
        """The object in one file, which may be a second copy."""
        id = self.id_of_file(path)
        assert id is not None
        return self._read(id, path)

    def inside(self, path: str) -> list[Object]:
        """All objects in one file; none if it is damaged."""
        try:
            return [self.read_file(path)]
        except (ObjectNotFound, HashMismatch, InvalidEnvelope):
            return []

    def _read(self, id: ObjectId, path: str) -> Object:
        if self._limit:
            self._limit.count_object()
        try:
            stored = disk.read_plain(path, LARGEST_OBJECT)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectNotFound(f"Object {id} does not exist.") from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EINVAL):
                raise InvalidEnvelope(f"Object {id} is not a plain file.") from error
            raise disk.failure(f"reading object {id}", error) from error
        return parse(id, self._unseal_object(id, stored))

    def _unseal_object(self, id: ObjectId, stored: bytes) -> bytes:
        try:
            return unseal(id, stored, self._limit, keeps_blobs=self._keeps_blobs)
        except ObjectTooLarge:
            if not self._was_written_here(id):
                raise
            return unseal(id, stored, self._limit, LARGEST_OBJECT)

    def _was_written_here(self, id: ObjectId) -> bool:  # noqa: ARG002
        """Whether a typed object above the limit may be read: earlier versions wrote some."""
        return False

    def __contains__(self, id: ObjectId) -> bool:
        every = self._replaced.standing_in(id) if self._replaced else (id,)
        return any(map(self._has, every))

    def _has(self, id: ObjectId) -> bool:
        """Whether there is a file for exactly this object."""
        return os.path.exists(self._path(id)) or bool(self._copies(id))

    def ids(self) -> Iterator[ObjectId]:
        last = None
        for path in self.files():
            id = ObjectId(os.path.basename(path)[:OBJECT_ID_LENGTH])
            if id != last:
                yield id
            last = id

    def matching(self, prefix: str) -> set[ObjectId]:
        """The objects whose ids begin with at least two given characters."""
        shard = f"{self.folder}/{prefix[:2]}"
        ids = (self.id_of_file(f"{shard}/{name}") for name in disk.names(shard))
        return {id for id in (*ids, *self._replaced_ids()) if id and id.startswith(prefix)}

    def _replaced_ids(self) -> list[ObjectId]:
        """The ids of scrubbed objects that have a readable replacement here."""
        successors = self._replaced.successors() if self._replaced else {}
        return [old for old in successors if old in self]

    def files(self) -> Iterator[str]:
        """Every object file, second copies too, in order of the ids."""
        for path in self.everything():
            if self.id_of_file(path) is not None:
                yield path

    def everything(self) -> Iterator[str]:
        """Every file in the folder, including those that do not belong there."""
        for shard in disk.names(self.folder):
            folder = os.path.join(self.folder, shard)
            # A link in an untrusted repository must not add files from elsewhere.
            if os.path.islink(folder) or not os.path.isdir(folder):
                yield folder
                continue
            for name in disk.names(folder):
                yield os.path.join(folder, name)

    def id_of_file(self, path: str) -> ObjectId | None:
        """The id in the name of a file of this store, if there is one."""
        name = os.path.basename(path)
        id, dot, copy = name[:OBJECT_ID_LENGTH], *name[OBJECT_ID_LENGTH:].partition(".")[1:]
        in_place = is_object_id(id) and os.path.basename(os.path.dirname(path)) == id[:2]
        named_well = len(name) == OBJECT_ID_LENGTH or (dot and copy.isalnum())
        return ObjectId(id) if in_place and named_well else None

    def is_leftover(self, path: str) -> bool:
        """Whether a file is the incomplete object of a killed writer."""
        name = os.path.basename(path)
        return name.endswith(disk.TEMPORARY_SUFFIX) and is_object_id(name[:OBJECT_ID_LENGTH])

    def _write_files(self, files: list[tuple[str, Object]], touched: set[str]) -> None:
        # Compressing between two syncs takes three times as long, because the caches are cold.
        sealed = [(path, self._seal(item.canonical)) for path, item in files]
        with disk.explain_errors("writing objects"):
            for path, data in sealed:
                shard = os.path.dirname(path)
                if shard not in touched:
                    if os.path.islink(shard):
                        raise PathRefused(
                            f"{shard} is a symbolic link; objects are not written there."
                        )
                    # The name of a shard is synced below, with the names of all others.
                    disk.make_folder(shard, durable_name=shard == self.folder)
                    touched.add(shard)
                disk.replace(path, data, durable_name=False)
            for folder in sorted(touched.union([self.folder] if touched else [])):
                disk.sync_folder(folder)

    def is_sound(self, id: ObjectId) -> bool:
        """Whether an object exists and is undamaged. A damaged one is written again."""
        try:
            self.read(id)
        except (ObjectNotFound, HashMismatch, InvalidEnvelope):
            return False
        return True

    def _seal(self, canonical: bytes) -> bytes:
        frame = zstd.compress(canonical, self._level)
        return frame + _seal_of(frame)

    def _shard(self, id: ObjectId) -> str:
        return os.path.dirname(self._path(id))

    def _path(self, id: ObjectId) -> str:
        return f"{self.folder}/{id[:2]}/{id}"

    def _copies(self, id: ObjectId) -> list[str]:
        """The second copies of an object. Each folder is listed again only if it has changed:
        otherwise a search for thousands of missing objects would list a folder of thousands each
        time."""
        shard = self._shard(id)
        try:
            status = os.stat(shard)
        except OSError:
            return []
        stamp = status.st_mtime_ns, status.st_ino
        known, copies = self._copies_in.get(shard, (None, {}))
        if known != stamp or clock.now_ms() * 1_000_000 - status.st_mtime_ns < _RACY_NS:
            copies = {}
            for name in disk.names(shard):
                path = f"{shard}/{name}"
                object_id = self.id_of_file(path) if len(name) > OBJECT_ID_LENGTH else None
                if object_id is not None:
                    copies.setdefault(object_id, []).append(path)
            self._copies_in[shard] = stamp, copies
        return copies.get(id, [])


def first_sealed(stored: bytes, limit: WorkLimit | None = None) -> tuple[bytes, int] | None:
    """The canonical bytes of the first of several sealed objects, and the length of all of them.

    None if there is none, or if it is damaged.
    """
    decompressor = zstd.ZstdDecompressor()
    try:
        canonical = b"".join(_unfold("", decompressor, stored, limit, LARGEST_OBJECT))
    except (zstd.ZstdError, EOFError, MemoryError, ObjectTooLarge):
        return None
    rest = decompressor.unused_data
    frame = stored[: len(stored) - len(rest)]
    if not decompressor.eof or not rest.startswith(_seal_of(frame)):
        return None
    return canonical, len(frame) + _SEAL_LENGTH


def unseal(
    id: ObjectId,
    stored: bytes,
    limit: WorkLimit | None = None,
    largest_typed: int = LARGEST_TYPED,
    *,
    keeps_blobs: bool = True,
) -> bytes:
    """The canonical bytes in an object file, after all checks; of a blob that is not kept, those
    of an empty one."""
    frame = stored[:-_SEAL_LENGTH]
    decompressor = zstd.ZstdDecompressor()
    hashed, size = blake3(), 0
    parts: list[bytes] = []
    try:
        for part in _unfold(id, decompressor, frame, limit, largest_typed):
            hashed.update(part)
            size += len(part)
            if keeps_blobs or not parts:
                parts.append(part)
    except zstd.ZstdError as error:
        raise InvalidEnvelope(f"Object {id} cannot be decompressed: {error}.") from error
    except (EOFError, MemoryError) as error:
        raise InvalidEnvelope(f"Object {id} cannot be decompressed.") from error
    if not decompressor.eof or size > HEADER_LENGTH + LARGEST_OBJECT:
        raise InvalidEnvelope(f"Object {id} is cut short, or larger than any object may be.")
    if hashed.hexdigest() != id:
        raise HashMismatch(f"Object {id} does not hold what its name says.")
    if stored[-_SEAL_LENGTH:] != _seal_of(frame):
        raise InvalidEnvelope(f"Object {id} is damaged in its stored form.")
    canonical = b"".join(parts)
    if not keeps_blobs and _is_blob(canonical) and _length(canonical) == size - HEADER_LENGTH:
        return canonical[:6] + bytes(8)
    return canonical


def _unfold(
    id: str,
    decompressor: zstd.ZstdDecompressor,
    frame: bytes,
    limit: WorkLimit | None,
    largest_typed: int,
) -> Iterator[bytes]:
    """The canonical bytes in parts. A typed object is the first part; a blob may have more."""
    part = decompressor.decompress(frame, HEADER_LENGTH + largest_typed + 1)
    if len(part) > HEADER_LENGTH + largest_typed and not _is_blob(part):
        raise ObjectTooLarge(
            f"Object {id} is too large: more than {largest_typed // 1024**2} MB, and it declares"
            f" {_length(part):,} bytes.",
            hint=f"`git log -- '*{id}*'` names the git commit that brought it: revert that commit.",
        )
    size = 0
    while part and size <= HEADER_LENGTH + LARGEST_OBJECT:
        if limit:
            limit.count_bytes(len(part))
        yield part
        size += len(part)
        part = b"" if decompressor.eof else decompressor.decompress(b"", _PART)


def _is_blob(canonical: bytes) -> bool:
    return canonical[5:6] == bytes([Kind.BLOB])


def _length(canonical: bytes) -> int:
    """The length of the payload, as the header declares it."""
    return int.from_bytes(canonical[6:HEADER_LENGTH], "little")


def _seal_of(frame: bytes) -> bytes:
    return _SEAL_HEADER + zlib.crc32(frame).to_bytes(4, "little")
