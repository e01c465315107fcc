"""Which sessions the user deleted, and when: `CTX_HOME/deleted`, one line per session.

The client keeps its transcripts. Without this file, reading them again would restore a deleted
session. What a session does after it was deleted is captured.
"""

import os

from ctx import disk, interrupts
from ctx.hook_files import live

FILE = "deleted"

_LARGEST = 4 * 1024 * 1024


def add(home: str, session: str, now_ms: int) -> None:
    """Record that a session is deleted now."""
    known = {**_read(home), session: now_ms}
    lines = [f"{at_ms} {name}\n" for name, at_ms in known.items()]
    disk.make_folder(home)
    interrupts.defer()
    disk.replace(_path(home), "".join(lines).encode())


def at_ms(home: str, session: str) -> int:
    """When a session was deleted; 0 if it was not."""
    return _read(home).get(session, 0)


def _read(home: str) -> dict[str, int]:
    try:
        lines = disk.read_plain(_path(home), _LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    told = [line.partition(" ") for line in lines]
    return {name: int(at) for at, _, name in told if at.isdecimal() and live.is_session(name)}


def _path(home: str) -> str:
    return os.path.join(home, FILE)
