"""Who the worker is: one at a time for each `CTX_HOME`.

The kernel's lock on the file decides, and it ends with its process, so nothing that a killed worker
leaves is in anybody's way. The text in the file says who holds it.
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
    """Whether we are the worker until the block ends. One that is just going is waited for."""
    with locks.try_hold(path, seconds) as fd:
        if fd is not None:
            _write(fd)
        yield fd is not None


def rewrite(path: str) -> None:
    """Write down who we are, where the disk was full when we began."""
    with suppress(OSError):
        if _parse(disk.read_plain(path, _LONGEST)):
            return
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            _write(fd)
        finally:
            os.close(fd)


def running_worker(path: str) -> WorkerProcess | None:
    """The worker that runs, if there is one."""
    try:
        return _parse(disk.read_plain(path, _LONGEST)) if locks.is_held(path) else None
    except OSError:
        return None


def _parse(data: bytes) -> WorkerProcess | None:
    """None while it is being written."""
    pid, _, rest = data.decode("utf-8", "replace").partition("\n")
    version, _, since = rest.partition("\n")
    since = since.strip()
    if pid.isdecimal() and since.isdecimal():
        return WorkerProcess(int(pid), version, int(since))
    return None


def _write(fd: int) -> None:
    # On a full disk it is the worker all the same.
    with suppress(OSError):
        text = f"{os.getpid()}\n{__version__}\n{clock.now_ms()}\n".encode()
        os.pwrite(fd, text, 0)
        os.ftruncate(fd, len(text))
