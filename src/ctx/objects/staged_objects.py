"""Staged objects as files: `stage/objects/ab12…`, all in one folder.

A step writes a few small objects, and the caller waits until they are durable. So they are written
one after another into one file, which is synced once; every object is a hard link to that file.
Large or many objects have their own files.

Earlier versions used subfolders here too. The objects of a commit have a second link here until
they are old enough to be collected.
"""

import os
from collections.abc import Iterable

from ctx import disk
from ctx.errors import InvalidEnvelope, PathRefused
from ctx.ids import ObjectId, is_object_id
from ctx.objects.loose_objects import LooseStore, first_sealed, unseal
from ctx.objects.object_store import LARGEST_OBJECT, Object, id_of, parse

_MOST_TOGETHER = 16
_LARGEST_TOGETHER = 64 * 1024


class StagedStore(LooseStore):
    """The object store of a session's work. Writers hold the project's lock."""

    def matching(self, prefix: str) -> set[ObjectId]:
        here = {ObjectId(name) for name in disk.names(self.folder) if is_object_id(name)}
        return super().matching(prefix) | {id for id in here if id.startswith(prefix)}

    def id_of_file(self, path: str) -> ObjectId | None:
        name = os.path.basename(path)
        if os.path.dirname(path) == self.folder:
            return ObjectId(name) if is_object_id(name) else None
        return super().id_of_file(path)

    def _path(self, id: ObjectId) -> str:
        return f"{self.folder}/{id}"

    def _copies(self, id: ObjectId) -> list[str]:
        earlier = super()._path(id)
        return [earlier] if os.path.exists(earlier) else []

    def name_too(self, ids: Iterable[ObjectId], store: LooseStore) -> None:
        """Copy objects of another store here, where `git clean` does not delete them.

        They are separate files, so that damage to one does not affect the other.
        """
        wanted = dict.fromkeys(map(self._current, ids))
        missing = [id for id in wanted if not os.path.lexists(self._path(id))]
        if not missing:
            return
        self._refuse_link()
        with disk.explain_errors("writing objects"):
            disk.make_folder(self.folder)
            for id in missing:
                disk.replace(self._path(id), disk.read(store._path(id)), durable_name=False)
            disk.sync_folder(self.folder)

    def _refuse_link(self) -> None:
        if os.path.islink(self.folder):
            raise PathRefused(f"{self.folder} is a symbolic link; objects are not written there.")

    def _write_files(self, files: list[tuple[str, Object]], touched: set[str]) -> None:
        size = sum(len(item.payload) for _, item in files)
        if not (1 < len(files) <= _MOST_TOGETHER and size <= _LARGEST_TOGETHER):
            super()._write_files(files, touched)
            return
        self._refuse_link()
        # Objects that reference others come last, and are read most.
        whole = b"".join(self._seal(item.canonical) for _, item in reversed(files))
        with disk.explain_errors("writing objects"):
            disk.make_folder(self.folder)
            first, *others = (path for path, _ in files)
            disk.replace(first, whole, durable_name=False)
            try:
                for path in others:
                    # Remove a damaged file first.
                    disk.discard(path)
                    os.link(first, path)
            except OSError as error:
                if error.errno not in disk.NO_LINKS:
                    raise
                super()._write_files(files, touched)
                return
            disk.sync_folder(self.folder)

    def inside(self, path: str) -> list[Object]:
        objects = []
        try:
            rest = disk.read_plain(path, LARGEST_OBJECT)
            while first := first_sealed(rest, self._limit):
                canonical, length = first
                objects.append(parse(id_of(canonical), canonical))
                rest = rest[length:]
        except (OSError, InvalidEnvelope):
            return []
        return [] if rest else objects

    def _unseal_object(self, id: ObjectId, stored: bytes) -> bytes:
        """One object out of those written together."""
        rest = stored
        while sealed := first_sealed(rest, self._limit):
            canonical, length = sealed
            rest = rest[length:]
            # Check every byte, also after the last object.
            if id_of(canonical) == id and (not rest or first_sealed(rest, self._limit)):
                return canonical
        # This raises the precise error. What is staged was written here, whatever its size.
        return unseal(id, stored, self._limit, LARGEST_OBJECT, keeps_blobs=self._keeps_blobs)
