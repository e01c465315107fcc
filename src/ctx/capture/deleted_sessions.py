"""Which sessions a person deleted, and when: `CTX_HOME/deleted`, one line each.

The client keeps its transcripts. Without this, whoever reads them next would bring back what was
to be gone. What such a session does later is news, and is taken in.
"""

import os

from ctx import disk, interrupts
from ctx.hook_files import live

FILE = "deleted"

_LARGEST = 4 * 1024 * 1024


def add(home: str, session: str, now_ms: int) -> None:
    """A session is deleted now."""
    known = {**_read(home), session: now_ms}
    lines = [f"{at_ms} {name}\n" for name, at_ms in known.items()]
    disk.make_folder(home)
    interrupts.defer()
    disk.replace(_path(home), "".join(lines).encode())


def at_ms(home: str, session: str) -> int:
    """When a session was deleted; 0: never."""
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
