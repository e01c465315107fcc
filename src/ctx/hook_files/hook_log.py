"""`CTX_HOME/hook.log`: what went wrong where nobody was looking, one line each.

Hooks load this module: it imports nothing but `os` and the clock. What a client said is not in it.
"""

import os

from ctx import clock

NAME = "hook.log"

_LARGEST = 256 * 1024
_LONGEST_LINE = 500


def add(home: str, what: str, message: str) -> None:
    """Add a line. Where that fails too, there is nowhere left to say it."""
    line = " ".join(f"{what} {message}".split())[:_LONGEST_LINE]
    at = clock.iso(clock.now_ms())
    path = f"{home}/{NAME}"
    # Whatever lies there, it must not keep a hook waiting.
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
