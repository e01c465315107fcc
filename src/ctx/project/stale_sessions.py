"""Sessions whose staged work nobody has gone on with for a while.

Every command asks. It reads one small folder, and loads nothing of the object store: when a ref was
moved last is when its session took its last step.
"""

import os
from typing import NamedTuple

from ctx import disk
from ctx.hook_files import live
from ctx.ids import SessionId
from ctx.layout import Project

STALE_S = 86_400
"""So long a session is gone on with, and nobody need be told."""
OLD_S = 7 * 86_400
"""So long it waits to be gone on with."""


class StaleSession(NamedTuple):
    session: SessionId
    seconds: int

    @property
    def is_old(self) -> bool:
        return self.seconds > OLD_S


def stale(project: Project, home: str, now_s: int) -> list[StaleSession]:
    """The sessions that have waited for a day or longer, but for those of agents that run."""
    folder = os.path.join(project.refs, "work")
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    found = []
    for entry in entries:
        seconds = _seconds_since(entry, now_s)
        is_ref = not entry.name.endswith(disk.TEMPORARY_SUFFIX)
        if seconds > STALE_S and is_ref and not live.is_live(home, entry.name, now_s):
            found.append(StaleSession(SessionId(entry.name), seconds))
    return sorted(found)


def _seconds_since(entry: "os.DirEntry[str]", now_s: int) -> int:
    try:
        return now_s - int(entry.stat(follow_symlinks=False).st_mtime)
    except OSError:
        return 0
