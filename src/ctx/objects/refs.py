"""Pointers of this working tree: `refs/main`, `refs/work/<session>`.

A ref is a file with one object id and a newline. It is moved from a value that the mover has
seen to a new one, never blindly; the mover holds the project's lock.
"""

import os
from collections.abc import Iterator

from ctx import disk
from ctx.errors import DeserializationFailed, RefNotFound, StagingConflict
from ctx.ids import ObjectId, SessionId, is_object_id

MAIN = "main"
_WORK = "work/"


def work(session: SessionId) -> str:
    """The ref that holds the staging chain of a session."""
    return _WORK + session


def session_of(name: str) -> SessionId | None:
    return SessionId(name.removeprefix(_WORK)) if name.startswith(_WORK) else None


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
                hint=f"Its file is {self._path(name)}; `ctx debug verify` lists every damage.",
            )
        return ObjectId(text[:-1])

    def require(self, name: str) -> ObjectId:
        found = self.read(name)
        if found is None:
            raise RefNotFound(f"There is no ref {name}.")
        return found

    def move(self, name: str, seen: ObjectId | None, to: ObjectId | None) -> None:
        """Compare and swap; `None` stands for a ref that is not there."""
        present = self.read(name)
        if present != seen:
            raise StagingConflict(f"The ref {name} is at {present}, not at {seen} as expected.")
        path = self._path(name)
        with disk.explained(f"moving the ref {name}"):
            if to is not None:
                disk.make_folder(os.path.dirname(path))
                disk.replace(path, f"{to}\n".encode())
            elif present is not None:
                disk.discard(path)
                disk.sync_folder(os.path.dirname(path))

    def names(self) -> Iterator[str]:
        """Every ref, in order. Temporary files of a killed writer are not refs."""
        for name in disk.names(self.folder):
            if os.path.isdir(os.path.join(self.folder, name)):
                for inner in disk.names(os.path.join(self.folder, name)):
                    if not inner.endswith(disk.TEMPORARY_SUFFIX):
                        yield f"{name}/{inner}"
            elif not name.endswith(disk.TEMPORARY_SUFFIX):
                yield name

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)
