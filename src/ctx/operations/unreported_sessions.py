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
from contextlib import suppress

from ctx import clock
from ctx.capture import session_state, session_table
from ctx.hook_files import live
from ctx.hosts.host_adapter import Transcripts
from ctx.operations import backfill
from ctx.workspace import Memory

_RECENT_MS = 30 * 86_400_000
_QUIET_MS = 60_000
"""A transcript that changed more recently may belong to a session whose events are on their way."""
_MOST_KNOWN = 200
_MOST_FILES = 2_000


def catch_up(memory: Memory) -> int:
    """Import what hooks could not report; how many sessions that concerned."""
    found = 0
    for host, paths in find(memory).items():
        wanted = backfill.Options(folder="", paths=tuple(paths), host=host, is_automatic=True)
        found += len(backfill.backfill(memory, wanted).sessions)
    return found


def find(memory: Memory) -> dict[str, list[str]]:
    """The transcripts of sessions with events that no hook reported, by host."""
    hosts = memory.environment.hosts
    known = session_table.transcripts_by_client(memory.local, _MOST_KNOWN)
    folders = dict.fromkeys(
        (host, hosts.named(host).transcripts.folder_of(path))
        for host, path in known
        if host in hosts.names and os.path.isabs(path)
    )
    now_ms = clock.now_ms()
    found: dict[str, list[str]] = {}
    for host, folder in folders:
        transcripts = hosts.named(host).transcripts
        for path, size, changed_ms in _newest(transcripts, folder):
            is_recent = _QUIET_MS < now_ms - changed_ms < _RECENT_MS
            if is_recent and _is_missing(memory, transcripts, path, size):
                found.setdefault(host, []).append(path)
    return found


def _newest(transcripts: Transcripts, folder: str) -> list[tuple[str, int, int]]:
    """The newest transcripts of a folder, with their sizes and the times of their last changes."""
    found = []
    for path in transcripts.files(folder):
        # It may have been removed meanwhile.
        with suppress(OSError):
            found.append((path, *transcripts.stamp(path)))
    return sorted(found, key=lambda each: -each[2])[:_MOST_FILES]


def _is_missing(memory: Memory, transcripts: Transcripts, path: str, size: int) -> bool:
    session = transcripts.session_of(path)
    if not session or live.is_live(memory.environment.user_store.home, session, clock.wall_s()):
        return False
    known = session_state.find(memory.local, session)
    if known is None:
        return transcripts.shows_hook(path)
    is_over = known.status != session_state.ACTIVE
    return is_over and known.transcript == path and known.transcript_read < size
