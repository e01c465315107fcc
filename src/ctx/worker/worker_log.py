"""`CTX_HOME/worker.log`: what the worker did and which errors occurred, one line each.

It is rotated at one megabyte, with one old file kept. Lines are redacted.
"""

import os
from contextlib import suppress

from ctx import clock, disk
from ctx.redaction import redact

_LARGEST = 1024 * 1024
_LONGEST_LINE = 2_000
_LONGEST_TAIL = 256 * 1024


def add(path: str, message: str) -> None:
    """Add a line. Failures are ignored: there is nowhere to report them."""
    line = " ".join(redact(message[: 2 * _LONGEST_LINE]).text.split())[:_LONGEST_LINE]
    entry = f"{clock.iso(clock.now_ms())} {os.getpid()} {line}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW
    with suppress(OSError):
        fd = os.open(path, flags, disk.FILE_MODE)
        try:
            os.write(fd, entry.encode("utf-8", "backslashreplace"))
            if os.fstat(fd).st_size > _LARGEST:
                os.replace(path, f"{path}.1")
        finally:
            os.close(fd)


def tail(path: str, lines: int) -> list[str]:
    """The last lines, oldest first."""
    tail_lines: list[str] = []
    for log in (f"{path}.1", path):
        with suppress(OSError):
            tail_lines += _last(log)
    return tail_lines[-lines:] if lines else tail_lines


def _last(path: str) -> list[str]:
    fd = disk.open_plain(path)
    try:
        size = os.fstat(fd).st_size
        start = max(0, size - _LONGEST_TAIL)
        text = os.pread(fd, size - start, start).decode("utf-8", "replace")
    finally:
        os.close(fd)
    # The first line may be incomplete.
    return text.splitlines()[1 if start else 0 :]
