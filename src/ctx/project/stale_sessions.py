"""Sessions with staged work and no new step for a day or longer.

Every command checks this, so it reads one small folder and not the object store: the time of a ref
is the time of the session's last step.
"""

import os
from typing import NamedTuple

from ctx import disk
from ctx.hook_files import live
from ctx.ids import SessionId
from ctx.layout import Project

STALE_S = 86_400
"""After this time a session is stale, and the user is told."""
OLD_S = 7 * 86_400
"""After this time a stale session is committed without asking."""


class StaleSession(NamedTuple):
    session: SessionId
    seconds: int

    @property
    def is_old(self) -> bool:
        return self.seconds > OLD_S


def stale(project: Project, home: str, now_s: int) -> list[StaleSession]:
    """The stale sessions, except those of running agents."""
    folder = os.path.join(project.refs, "work")
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    sessions = []
    for entry in entries:
        seconds = _seconds_since(entry, now_s)
        is_ref = not entry.name.endswith(disk.TEMPORARY_SUFFIX)
        if seconds > STALE_S and is_ref and not live.is_live(home, entry.name, now_s):
            sessions.append(StaleSession(SessionId(entry.name), seconds))
    return sorted(sessions)


def _seconds_since(entry: "os.DirEntry[str]", now_s: int) -> int:
    try:
        return now_s - int(entry.stat(follow_symlinks=False).st_mtime)
    except OSError:
        return 0
