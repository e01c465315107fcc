"""Batches as files of a shared folder: on a mounted disk, or kept in step by Syncthing."""

import os
from collections.abc import Collection, Sequence
from contextlib import suppress

from ctx import clock, disk
from ctx.errors import SyncFailure
from ctx.objects.object_store import LARGEST_OBJECT
from ctx.sync import batch_files
from ctx.sync.batch_files import BatchFile, UnreadableFile
from ctx.sync.batch_target import TargetListing

_LEFT_OVER_S = 86_400
"""After this time, a temporary file belongs to a process that was killed."""


class FolderTarget:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def listing(self) -> TargetListing:
        if not os.path.isdir(self._folder):
            raise SyncFailure(
                f"The folder {self._folder} does not exist.",
                hint="If it is on another disk, mount the disk and try again.",
            )
        with disk.explain_errors("listing a sync folder"):
            # Syncthing and other programs keep their own files under such names.
            names = [name for name in disk.names(self._folder) if not name.startswith((".", "~"))]
        batches = frozenset(name for name in names if batch_files.is_batch_name(name))
        others = (name for name in names if not name.endswith(disk.TEMPORARY_SUFFIX))
        return TargetListing(batches, tuple(name for name in others if name not in batches))

    def read(self, name: str) -> bytes:
        try:
            return disk.read_plain(os.path.join(self._folder, name), LARGEST_OBJECT)
        except OSError as error:
            raise UnreadableFile(f"it cannot be read: {error.strerror}") from error

    def publish(self, added: Sequence[BatchFile], removed: Collection[str] = ()) -> None:
        with disk.explain_errors(f"writing to the sync folder {self._folder}"):
            for file in added:
                disk.replace(os.path.join(self._folder, file.name), file.data, durable_name=False)
            disk.sync_folder(self._folder)
            for name in removed:
                disk.discard(os.path.join(self._folder, name))
            if removed:
                disk.sync_folder(self._folder)
        self._discard_left_over()

    def projects(self) -> None:
        """There are no projects."""

    def purge(self) -> None:
        """There are no local copies."""

    def _discard_left_over(self) -> None:
        """Remove temporary files that a killed process left behind."""
        for name in disk.names(self._folder):
            is_ours = batch_files.is_batch_name(name.partition(".")[0])
            path = os.path.join(self._folder, name)
            if is_ours and name.endswith(disk.TEMPORARY_SUFFIX):
                with suppress(OSError):
                    if clock.wall_s() - os.stat(path).st_mtime > _LEFT_OVER_S:
                        disk.discard(path)
