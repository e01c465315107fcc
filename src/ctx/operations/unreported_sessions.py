"""Captures sessions that hooks could not report, because the disk was full or read-only.

Hooks write to `CTX_HOME` only, so on such a disk nothing remains of a session except its
transcript. When the disk works again, ctx looks for transcripts beside those of known sessions and
imports what is missing. It takes only what it would have captured:

- A session that ctx does not know counts if its transcript shows that a hook of ctx ran in it.
  Sessions without hooks, and those with `CTX_OFF=1`, are imported by command only.
- Of a session that has ended, it takes what was added since.
- Deleted sessions, pauses and the capture settings apply as always.
"""

import os

from ctx import clock
from ctx.capture import session_state, session_table
from ctx.hook_files import live
from ctx.hosts.host_adapter import Transcripts
from ctx.hosts.host_registry import FIRST
from ctx.operations import backfill
from ctx.workspace import Memory

_RECENT_MS = 30 * 86_400_000
_QUIET_MS = 60_000
"""A transcript that changed more recently may belong to a session whose events are on their way."""
_MOST_KNOWN = 200
_MOST_FILES = 2_000


def catch_up(memory: Memory) -> int:
    """Import what hooks could not report; how many sessions that concerned."""
    paths = find(memory)
    if not paths:
        return 0
    wanted = backfill.Options(folder="", paths=tuple(paths), host=FIRST)
    return len(backfill.backfill(memory, wanted).sessions)


def find(memory: Memory) -> list[str]:
    """The transcripts of sessions with events that no hook reported."""
    transcripts = memory.environment.hosts.named(FIRST).transcripts
    known = session_table.transcripts(memory.user.connection, _MOST_KNOWN)
    folders = dict.fromkeys(os.path.dirname(path) for path in known if os.path.isabs(path))
    now_ms = clock.now_ms()
    found: list[str] = []
    for folder in folders:
        for path, changed_ms, size in _files(folder):
            is_recent = _QUIET_MS < now_ms - changed_ms < _RECENT_MS
            if is_recent and _is_missing(memory, transcripts, path, size):
                found.append(path)
    return found


def _files(folder: str) -> list[tuple[str, int, int]]:
    """The newest files of a folder, with the times of their last changes and their sizes."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat()
                    found.append((entry.path, status.st_mtime_ns // 1_000_000, status.st_size))
    except OSError:
        return []
    return sorted(found, key=lambda each: -each[1])[:_MOST_FILES]


def _is_missing(memory: Memory, transcripts: Transcripts, path: str, size: int) -> bool:
    session = transcripts.session_of(path)
    if not session or live.is_live(memory.environment.user_store.home, session, clock.wall_s()):
        return False
    known = session_state.find(memory.user.connection, session)
    if known is None:
        return transcripts.shows_hook(path)
    is_over = known.status != session_state.ACTIVE
    return is_over and known.transcript == path and known.transcript_read < size
