"""The canonical heads: one empty file per head, named by its commit, tracked by git.

Two branches never write the same path here, and git does not treat empty files as renames of each
other, so every merge of the folder is clean. After a merge there may be several heads. That is a
normal state: readers use all of them, and the next commit joins them.
"""

import os
from collections.abc import Iterable

from ctx import disk, interrupts
from ctx.ids import ObjectId, is_object_id


class Heads:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def named(self) -> list[ObjectId]:
        """Every head file. Some may be outdated: see `commits.newest`."""
        return [ObjectId(name) for name in self._names() if is_object_id(name)]

    def stray(self) -> list[str]:
        """Files that are not heads: `.gitkeep`, `Thumbs.db`, editor or NFS leftovers."""
        return [name for name in self._names() if not is_object_id(name)]

    def _names(self) -> list[str]:
        with disk.explain_errors("reading the heads"):
            return disk.names(self.folder)

    def advance(self, to: ObjectId, instead_of: Iterable[ObjectId]) -> None:
        """Make a commit a head in place of others.

        The new file is created and synced first: a crash leaves one head too many, which readers
        recognise, never one too few.
        """
        interrupts.defer()
        with disk.explain_errors("moving the heads"):
            disk.make_folder(self.folder)
            os.close(os.open(self._path(to), os.O_WRONLY | os.O_CREAT, disk.FILE_MODE))
            disk.sync_folder(self.folder)
            for old in instead_of:
                if old != to:
                    disk.discard(self._path(old))
            disk.sync_folder(self.folder)

    def _path(self, id: ObjectId) -> str:
        return os.path.join(self.folder, id)
