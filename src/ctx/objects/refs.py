"""Pointers of this working tree, `refs/main` and `refs/work/<session>`, and the canonical heads.

An aborted chain stays for a while as `refs/aborted/<session>-<tip>`, and an unreadable one as
`refs/damaged/<session>`. A ref is a file with one object id and a newline. It is moved by compare
and swap; the caller holds the project's lock.
"""

import os
from collections.abc import Iterable, Iterator

from ctx import clock, disk, interrupts
from ctx.errors import DeserializationFailed, RefNotFound, StagingConflict, StoreTooLarge
from ctx.ids import ObjectId, SessionId, is_object_id

MAIN = "main"
_WORK = "work/"
_ABORTED = "aborted/"
_DAMAGED = "damaged/"
FOLDERS = ("work", "aborted", "damaged")

MOST_HEADS = 1000
"""Each branch adds one at most, and the next commit joins them."""


def work(session: SessionId) -> str:
    """The ref of a session's staging chain."""
    return _WORK + session


def session_of(name: str) -> SessionId | None:
    return SessionId(name.removeprefix(_WORK)) if name.startswith(_WORK) else None


def aborted_ref(name: str) -> str:
    """The ref of an aborted chain."""
    return _ABORTED + name


def aborted_name(ref: str) -> str | None:
    return ref.removeprefix(_ABORTED) if ref.startswith(_ABORTED) else None


def damaged_name(ref: str) -> str | None:
    return ref.removeprefix(_DAMAGED) if ref.startswith(_DAMAGED) else None


class Refs:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def read(self, name: str) -> ObjectId | None:
        try:
            content = disk.read_or_none(self._path(name))
        except OSError as error:
            raise disk.failure(f"reading the ref {name}", error) from error
        if content is None:
            return None
        text = content.decode("ascii", "replace")
        if not (text.endswith("\n") and is_object_id(text[:-1])):
            raise DeserializationFailed(
                f"The ref {name} does not hold an object id.",
                hint=f"Its file is {self._path(name)}; `ctx debug verify` lists all damage.",
            )
        return ObjectId(text[:-1])

    def require(self, name: str) -> ObjectId:
        id = self.read(name)
        if id is None:
            raise RefNotFound(f"There is no ref {name}.")
        return id

    def move(self, name: str, expected: ObjectId | None, to: ObjectId | None) -> None:
        """Compare and swap; `None` stands for a missing ref."""
        present = self.read(name)
        if present != expected:
            raise StagingConflict(f"The ref {name} is at {present}, not at {expected} as expected.")
        path = self._path(name)
        interrupts.defer()
        with disk.explain_errors(f"moving the ref {name}"):
            if to is not None and present is not None and session_of(name):
                disk.replace_again(path, f"{to}\n".encode())
            elif to is not None:
                disk.make_folder(os.path.dirname(path))
                disk.replace(path, f"{to}\n".encode())
            elif present is not None:
                disk.discard(path)
                disk.discard_spare(path)
                disk.sync_folder(os.path.dirname(path))

    def put(self, name: str, to: ObjectId) -> None:
        """Set a ref without comparing: a damaged one cannot be compared."""
        interrupts.defer()
        with disk.explain_errors(f"moving the ref {name}"):
            disk.replace(self._path(name), f"{to}\n".encode())

    def rename(self, name: str, expected: ObjectId, to: str) -> None:
        """Rename a ref. A crash leaves it under one of the two names."""
        if self.read(name) != expected or self.read(to) is not None:
            raise StagingConflict(f"The ref {name} or {to} is not what was expected.")
        self._rename(name, to)

    def set_aside(self, name: str) -> str:
        """Move a broken ref aside and return its new name."""
        last = name.rpartition("/")[2]
        free, number = f"{_DAMAGED}{last}", 1
        while os.path.lexists(self._path(free)):
            number += 1
            free = f"{_DAMAGED}{last}-{number}"
        self._rename(name, free)
        return free

    def _rename(self, name: str, to: str) -> None:
        source, target = self._path(name), self._path(to)
        interrupts.defer()
        with disk.explain_errors(f"moving the ref {name}"):
            disk.make_folder(os.path.dirname(target))
            os.rename(source, target)
            disk.sync_folder(os.path.dirname(target))
            disk.sync_folder(os.path.dirname(source))

    def moved_at(self, name: str) -> float:
        """When a ref was last moved, in seconds; now if it is gone."""
        try:
            return os.stat(self._path(name)).st_mtime
        except OSError:
            return clock.wall_s()

    def names(self) -> Iterator[str]:
        """Every ref, in order, without temporary files."""
        for name in disk.names(self.folder):
            if os.path.isdir(os.path.join(self.folder, name)):
                for inner in disk.names(os.path.join(self.folder, name)):
                    if not inner.endswith(disk.TEMPORARY_SUFFIX):
                        yield f"{name}/{inner}"
            elif not name.endswith(disk.TEMPORARY_SUFFIX):
                yield name

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)


class Heads:
    """The canonical heads: one empty file per head, named by its commit, tracked by git.

    Two branches never write the same path here, and git does not treat empty files as renames of
    each other, so every merge of the folder is clean. After a merge there may be several heads.
    That is a normal state: readers use all of them, and the next commit joins them.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def named(self) -> list[ObjectId]:
        """Every head file. Some may be outdated: see `commits.newest`."""
        return [ObjectId(name) for name in self._names() if is_object_id(name)]

    def counted(self) -> list[ObjectId]:
        """The same, for readers of the commits: counted before any of them is read."""
        heads = self.named()
        if len(heads) > MOST_HEADS:
            raise StoreTooLarge(
                f"There are {len(heads):,} heads in {self.folder}: more than {MOST_HEADS:,} are not"
                " read.",
                hint=f"`git log -- '{self.folder}'` names the git commit that brought them: revert"
                " that commit. `ctx debug verify` checks each head.",
            )
        return heads

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
