"""The lock that makes the worker the only one for its `CTX_HOME`.

The kernel releases it when the process ends, so a killed worker leaves nothing to clean up. The
text in the file describes the holder.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ctx import __version__, clock, disk, locks

_LONGEST = 200


class WorkerProcess(NamedTuple):
    pid: int
    version: str
    since_ms: int


@contextmanager
def hold(path: str, seconds: float) -> Iterator[bool]:
    """Hold the lock during the block; whether it was free in time."""
    with locks.try_hold(path, seconds) as fd:
        if fd is not None:
            _write(fd)
        yield fd is not None


def rewrite(path: str) -> None:
    """Write the holder again, if the disk was full at the start."""
    with suppress(OSError):
        if _parse(disk.read_plain(path, _LONGEST)):
            return
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            _write(fd)
        finally:
            os.close(fd)


def running_worker(path: str) -> WorkerProcess | None:
    """The running worker, if any."""
    try:
        return _parse(disk.read_plain(path, _LONGEST)) if locks.is_held(path) else None
    except OSError:
        return None


def _parse(data: bytes) -> WorkerProcess | None:
    """None while the file is being written."""
    pid, _, rest = data.decode("utf-8", "replace").partition("\n")
    version, _, since = rest.partition("\n")
    since = since.strip()
    if pid.isdecimal() and since.isdecimal():
        return WorkerProcess(int(pid), version, int(since))
    return None


def _write(fd: int) -> None:
    # A full disk does not keep the worker from running.
    with suppress(OSError):
        text = f"{os.getpid()}\n{__version__}\n{clock.now_ms()}\n".encode()
        os.pwrite(fd, text, 0)
        os.ftruncate(fd, len(text))
