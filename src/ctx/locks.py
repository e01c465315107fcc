"""One writer at a time per working tree.

The kernel's lock on the file decides, and it ends with its process, so a lock can never be
left behind by a crash. The text in the file only says who holds it and since when. A file
without a lock on it is what a killed process left: the next writer takes it over.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import NamedTuple

from ctx import clock, disk
from ctx.errors import LockConflict


class LockOwner(NamedTuple):
    """The holder of a lock, as written in the file."""

    pid: int
    host: str
    since_ms: int
    doing: str

    def __str__(self) -> str:
        held = clock.age((clock.now_ms() - self.since_ms) / 1000)
        return f"process {self.pid} on {self.host} ({self.doing}), for {held}"


@contextlib.contextmanager
def hold(path: str, doing: str, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock and write its holder; E006 names the other holder on timeout."""
    fd = _acquire(path, timeout_seconds)
    try:
        owner = f"{os.getpid()}\n{os.uname().nodename}\n{clock.now_ms()}\n{doing}\n"
        with disk.explain_errors("writing the lock file"):
            os.ftruncate(fd, 0)
            os.pwrite(fd, owner.encode("utf-8", "replace"), 0)
        yield
    finally:
        # Unlink before unlocking, so that a process that locks an unlinked file notices it (see
        # `_acquire`). The work under the lock is done even if the file cannot be removed.
        try:
            with contextlib.suppress(OSError):
                disk.discard(path)
        finally:
            os.close(fd)


def _acquire(path: str, timeout_seconds: float) -> int:
    deadline = clock.monotonic() + timeout_seconds
    with disk.explain_errors("taking the lock"):
        disk.make_folder(os.path.dirname(path))
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, disk.FILE_MODE)
            acquired = False
            try:
                acquired = try_lock(fd) and _is_still_named(fd, path)
                if acquired:
                    return fd
                if clock.monotonic() >= deadline:
                    raise _conflict(path)
            finally:
                if not acquired:
                    os.close(fd)
            _pause()


@contextlib.contextmanager
def try_hold(path: str, seconds: float = 0) -> Iterator[int | None]:
    """Hold the lock during the block; yields the open file, or None if it is not free in time.

    The file is kept. A lock on a file that was removed in the meantime is worth nothing.
    """
    disk.make_folder(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, disk.FILE_MODE)
    try:
        yield fd if wait_for(fd, seconds) and _is_still_named(fd, path) else None
    finally:
        os.close(fd)


def wait_for(fd: int, seconds: float) -> bool:
    """Whether the lock on an open file is free, or becomes free in time."""
    deadline = clock.monotonic() + seconds
    while not try_lock(fd):
        if clock.monotonic() >= deadline:
            return False
        _pause()
    return True


def _pause() -> None:
    """Sleep with jitter, so that waiting processes do not retry at the same moment."""
    clock.sleep(0.002 + 0.018 * int.from_bytes(os.urandom(1)) / 255)


def lock(fd: int) -> None:
    """Lock an open file, however long that takes."""
    fcntl.flock(fd, fcntl.LOCK_EX)


def try_lock(fd: int) -> bool:
    """Lock an open file without waiting; whether it worked."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still_named(fd: int, path: str) -> bool:
    """Whether the locked file still has its name, so that the next process locks the same one."""
    try:
        named = os.stat(path)
    except FileNotFoundError:
        return False
    locked = os.fstat(fd)
    return (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino)


def _conflict(path: str) -> LockConflict:
    owner = read_owner(path)
    who = str(owner) if owner else "another process"
    return LockConflict(f"The project store is locked by {who}.")


def read_owner(path: str) -> LockOwner | None:
    """The last holder written in the file; None if it is missing or unreadable."""
    try:
        pid, host, since, doing = disk.read(path).decode("utf-8", "replace").splitlines()
        return LockOwner(int(pid), host, int(since), doing)
    except (OSError, ValueError):
        return None


def is_held(path: str) -> bool:
    """Whether a running process holds the lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        # A shared lock, held only for this check.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
