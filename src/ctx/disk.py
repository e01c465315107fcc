"""Crash-safe writes, and readable file system errors.

A file is replaced by writing a temporary file beside it, syncing it, and renaming it over the old
one; then the folder is synced so that the rename is durable. Code that writes many files syncs each
folder once at the end. This module does not know what the files mean.

Paths are plain `str`: every command runs these functions, and start-up time counts.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ctx.errors import DiskFailure

FILE_MODE = 0o600
FOLDER_MODE = 0o700
TEMPORARY_SUFFIX = ".tmp"
NO_LINKS = frozenset({errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of file systems without hard links."""

_READ_SIZE = 65536

_temporary_count = 0


@contextmanager
def explain_errors(doing: str) -> Iterator[None]:
    """Turn an `OSError` into a `DiskFailure` with a hint."""
    try:
        yield
    except OSError as error:
        raise failure(doing, error) from error


def failure(doing: str, error: OSError) -> DiskFailure:
    # A name that is not UTF-8 must not break an error message.
    name = os.fsencode(error.filename or "").decode("utf-8", "backslashreplace")
    where = f" ({name})" if name else ""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFailure(
                f"The disk is full while {doing}{where}.",
                hint="Free some space and run the command again; nothing half-written is used.",
            )
        case errno.EROFS:
            return DiskFailure(
                f"The file system is read-only while {doing}{where}.",
                hint="Make it writable, or work in another folder.",
            )
        case errno.EACCES | errno.EPERM:
            return DiskFailure(
                f"Not permitted while {doing}{where}.",
                hint="Check who owns the folder and its permissions.",
            )
        case _:
            reason = error.strerror or type(error).__name__
            return DiskFailure(f"{reason} while {doing}{where}.")


def sync(fd: int) -> None:
    """Sync a file to the disk. macOS fsync stops at the drive's cache."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError:  # Network and FUSE file systems support only fsync.
            os.fsync(fd)
    else:
        os.fsync(fd)


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable after creates, renames and removals."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        sync(fd)
    except OSError as error:
        # Some file systems cannot sync a folder and do not need it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def make_folder(folder: str, *, durable_name: bool = True) -> None:
    """Create a folder and its missing parents, durably.

    `durable_name=False`: the caller syncs the last parent later.
    """
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder) or "."
    make_folder(parent)
    try:
        os.mkdir(folder, FOLDER_MODE)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    if durable_name:
        sync_folder(parent)


def write_temporary(path: str, data: bytes) -> str:
    """Write and sync a temporary file beside `path`; the caller renames it."""
    global _temporary_count
    _temporary_count += 1
    temporary = f"{path}.{os.getpid()}-{_temporary_count}{TEMPORARY_SUFFIX}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            sync(fd)
        finally:
            os.close(fd)
    except BaseException:
        discard(temporary)
        raise
    return temporary


def write_like(path: str, data: bytes, mode: int) -> str:
    """The same, with the mode and owner of the file to be replaced; `mode` if there is none."""
    temporary = write_temporary(path, data)
    try:
        try:
            old = os.stat(path)
        except FileNotFoundError:
            os.chmod(temporary, mode)
        else:
            with suppress(PermissionError):
                os.chown(temporary, old.st_uid, old.st_gid)
            os.chmod(temporary, stat.S_IMODE(old.st_mode))
    except BaseException:
        discard(temporary)
        raise
    return temporary


def shared_mode() -> int:
    """The mode of a new file that others may read too, if the umask does not forbid it."""
    # The umask can only be read by setting it.
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def replace(path: str, data: bytes, *, durable_name: bool = True) -> None:
    """Replace a file atomically. `durable_name=False`: the caller syncs the folder later."""
    temporary = write_temporary(path, data)
    try:
        os.replace(temporary, path)
    except BaseException:
        discard(temporary)
        raise
    if durable_name:
        sync_folder(os.path.dirname(path) or ".")


def replace_again(path: str, data: bytes) -> None:
    """The same for a small file that is replaced at every step.

    The old file is kept and reused: freeing a file can take longer than writing one.
    """
    spare, old = _spare(path), f"{path}.old{TEMPORARY_SUFFIX}"
    try:
        fd = os.open(spare, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
        try:
            if os.fstat(fd).st_nlink > 1:
                raise OSError(errno.EMLINK, "It has another name", spare)
            os.write(fd, data)
            os.ftruncate(fd, len(data))
            sync(fd)
        finally:
            os.close(fd)
        discard(old)
        os.link(path, old)
        os.rename(spare, path)
        os.rename(old, spare)
    except OSError as error:
        discard(spare)
        discard(old)
        if error.errno not in NO_LINKS:
            raise
        replace(path, data)
    else:
        sync_folder(os.path.dirname(path) or ".")


def discard_spare(path: str) -> None:
    """Remove the spare file of `replace_again`."""
    discard(_spare(path))


def _spare(path: str) -> str:
    return f"{path}.spare{TEMPORARY_SUFFIX}"


def discard(path: str) -> None:
    """Remove a file if it exists."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass


def storable_ns(time_ns: int) -> int:
    """A file time in the range of a database integer: files may have any date."""
    return min(max(time_ns, -(1 << 63)), (1 << 63) - 1)


def read(path: str) -> bytes:
    """A whole file. Plain system calls: an object store reads ten thousand small files."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return _read_remaining(fd, sys.maxsize)
    finally:
        os.close(fd)


def read_plain(path: str, limit: int) -> bytes:
    """Read an untrusted file: no link, FIFO or device, and little more than `limit` bytes."""
    fd = open_plain(path)
    try:
        return _read_remaining(fd, limit)
    finally:
        os.close(fd)


def open_plain(path: str) -> int:
    """Open an untrusted file for reading: no link, FIFO or device."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a plain file", path)
    return fd


def _read_remaining(fd: int, limit: int) -> bytes:
    data = os.read(fd, _READ_SIZE)
    if len(data) < _READ_SIZE:
        return data
    parts = [data]
    size = len(data)
    while size < limit and (part := os.read(fd, _READ_SIZE)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def read_or_none(path: str) -> bytes | None:
    try:
        return read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def names(folder: str) -> list[str]:
    """The sorted names in a folder; none if it does not exist.

    Files of desktop file managers are skipped.
    """
    try:
        return sorted(name for name in os.listdir(folder) if name != ".DS_Store")
    except (FileNotFoundError, NotADirectoryError):
        return []
