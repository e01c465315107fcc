"""A file that a person asked for by name: `--output FILE`.

An existing file is overwritten only if ctx wrote it and nobody has changed it since, or with
`--force`. What ctx wrote is noted under CTX_HOME: for each path, a hash of the content. A mark
inside the file would not do, because a repository can contain a file with any mark.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from ctx import disk, interrupts
from ctx.errors import PathRefused

NOTES = "outputs"
"""The folder under CTX_HOME, with a file for each path that was written."""

_MOST_NOTES = 1000


@contextmanager
def writing(home: str, path: str, *, force: bool) -> Iterator[TextIO]:
    """A file that appears under `path` at the end, whole, and readable for its owner alone."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise PathRefused(f"There is no folder {folder}.", hint="Create it, or name another file.")
    with disk.explain_errors(f"writing {path}"):
        exists = _may_replace(home, path, force=force)
        temporary = f"{path}.{os.urandom(8).hex()}{disk.TEMPORARY_SUFFIX}"
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, disk.FILE_MODE)
        try:
            with open(fd, "w+", encoding="utf-8", newline="") as file:
                yield file
                file.flush()
                disk.sync(fd)
                digest = _digest(fd)
            interrupts.defer()
            _rename_temporary(temporary, path, replace=exists)
        finally:
            disk.discard(temporary)
        disk.sync_folder(folder)
    # Without a note, the file is not overwritten next time: nothing else depends on it.
    with suppress(OSError):
        _note(home, path, digest)


def _may_replace(home: str, path: str, *, force: bool) -> bool:
    """Whether there is a file that may be replaced; PathRefused for anything that may not."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISLNK, "a symbolic link"))
        kind = next((word for test, word in kinds if test(status.st_mode)), "not a plain file")
        raise PathRefused(f"{path} is {kind}.", hint="Name a plain file, or `-` for stdout.")
    if not force and not _is_own_file(home, path):
        raise PathRefused(
            f"{path} exists, and ctx did not write it.",
            hint="Name another file, or add --force to overwrite this one.",
        )
    return True


def _rename_temporary(temporary: str, path: str, *, replace: bool) -> None:
    """Give the file its name. Where none was seen before, one that appeared since is kept."""
    if not replace:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise PathRefused(
                f"{path} was created by another process just now.", hint="Run the command again."
            ) from None
        except OSError as error:
            if error.errno not in disk.NO_LINKS:
                raise
        else:
            return
    os.replace(temporary, path)


def _is_own_file(home: str, path: str) -> bool:
    noted = disk.read_or_none(_note_of(home, path))
    if noted is None:
        return False
    try:
        fd = disk.open_plain(path)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EINVAL, errno.ELOOP, errno.ENOENT):
            return False
        raise
    try:
        return noted.decode("ascii", "replace").strip() == _digest(fd)
    finally:
        os.close(fd)


def _note(home: str, path: str, digest: str) -> None:
    note = _note_of(home, path)
    folder = os.path.dirname(note)
    disk.make_folder(folder)
    disk.replace(note, f"{digest}\n".encode())
    names = disk.names(folder)
    if len(names) > _MOST_NOTES:
        notes = [os.path.join(folder, name) for name in names]
        disk.discard(min(notes, key=lambda each: os.stat(each).st_mtime))


def _note_of(home: str, path: str) -> str:
    return os.path.join(home, NOTES, hashlib.sha256(os.fsencode(path)).hexdigest())


def _digest(fd: int) -> str:
    with open(os.dup(fd), "rb") as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()
