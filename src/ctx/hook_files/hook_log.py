"""`CTX_HOME/hook.log`: errors in hooks, one line each.

Hooks load this module: it imports nothing but `os` and the clock. It contains no client data.
"""

import os

from ctx import clock

NAME = "hook.log"

_LARGEST = 256 * 1024
_TAIL = 64 * 1024
_LONGEST_LINE = 500


def add(home: str, what: str, message: str) -> None:
    """Add a line. Failures are ignored: there is nowhere to report them."""
    line = " ".join(f"{what} {message}".split())[:_LONGEST_LINE]
    at = clock.iso(clock.now_ms())
    path = f"{home}/{NAME}"
    # Whatever the path is, opening it must not block a hook.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK
    try:
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(home, 0o700, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size > _LARGEST:
                os.replace(path, f"{path}.1")
            os.write(fd, f"{at} {line}\n".encode("utf-8", "backslashreplace"))
        finally:
            os.close(fd)
    except OSError:
        pass


def tail(home: str) -> list[str]:
    """The last lines, oldest first."""
    try:
        fd = os.open(f"{home}/{NAME}", os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return []
    try:
        os.lseek(fd, max(0, os.fstat(fd).st_size - _TAIL), os.SEEK_SET)
        data = os.read(fd, _TAIL)
    finally:
        os.close(fd)
    return [line for line in data.decode("utf-8", "replace").splitlines() if line[:2] == "20"]
