"""Where Codex stores transcripts, which it calls rollouts.

sessions/2026/11/16/rollout-2026-11-16T03-40-31-<session>.jsonl
archived_sessions/rollout-2026-11-16T03-40-31-<session>.jsonl
"""

import os
import re

from ctx import clock
from ctx.hosts import transcript_paths
from ctx.hosts.json_fields import string_in
from ctx.hosts.transcripts import TranscriptStart

_SESSIONS = "sessions"
_DEPTH = 3
_NAME = re.compile(
    r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl"
)
_CWD = re.compile(rb'"cwd"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,4096}")')
_BRANCH = re.compile(rb'"branch"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,256}")')
_TIMESTAMP = re.compile(rb'"timestamp"\s{0,4}:\s{0,4}"([0-9T:.Z+-]{10,40})"')
CONTEXT_OF_HOOK = b"hooks.additional_context"


def folder(host_folder: str) -> str:
    return os.path.join(host_folder, _SESSIONS)


def files(path: str) -> list[str]:
    return transcript_paths.files_below(path, _DEPTH, session_of)


def folder_of(path: str) -> str:
    """The folder with all sessions, which has a folder for each day."""
    folder = os.path.dirname(path)
    for _ in range(_DEPTH):
        if os.path.basename(folder) == _SESSIONS:
            break
        folder = os.path.dirname(folder)
    return folder if os.path.basename(folder) == _SESSIONS else os.path.dirname(path)


def session_of(path: str) -> str:
    name = _NAME.fullmatch(os.path.basename(path))
    return name[1] if name else ""


def beginning(path: str) -> TranscriptStart:
    start = transcript_paths.first_bytes(path)
    time = _TIMESTAMP.search(start)
    return TranscriptStart(_folder_in(start), clock.parse_iso(time[1].decode()) if time else None)


def place(path: str) -> tuple[str, str]:
    """The folder and the branch in which a session began; empty if unknown."""
    try:
        start = transcript_paths.first_bytes(path)
    except OSError:
        return "", ""
    branch = _BRANCH.search(start.partition(b"\n")[0])
    return _folder_in(start), string_in(branch[1]) if branch else ""


def _folder_in(start: bytes) -> str:
    cwd = _CWD.search(start)
    folder = string_in(cwd[1]) if cwd else ""
    return folder if os.path.isabs(folder) and "\0" not in folder else ""
