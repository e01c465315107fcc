"""Where Codex stores transcripts, which it calls rollouts.

sessions/2026/11/16/rollout-2026-11-16T03-40-31-<session>.jsonl
archived_sessions/rollout-2026-11-16T03-40-31-<session>.jsonl
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx import clock, disk
from ctx.hosts import transcript_paths
from ctx.hosts.json_fields import fields_of, plain_text_of, string_in
from ctx.hosts.transcripts import TranscriptStart

_MOST_KNOWN = 10_000
_SESSIONS = "sessions"
_DEPTH = 3
_NAME = re.compile(
    r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl"
)
_CWD = re.compile(rb'"cwd"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,4096}")')
_BRANCH = re.compile(rb'"branch"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,256}")')
_TIMESTAMP = re.compile(rb'"timestamp"\s{0,4}:\s{0,4}"([0-9T:.Z+-]{10,40})"')
_INSTRUCTIONS = re.compile(rb',\s?"base_instructions"\s?:')
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
    """The session of a rollout; empty if it is none, or that of a subagent."""
    thread = thread_of(path)
    return thread if thread and not origin(path).agent else ""


def thread_of(path: str) -> str:
    name = _NAME.fullmatch(os.path.basename(path))
    return name[1] if name else ""


def of_subagents(path: str, since_ms: int) -> list[str]:
    """The rollouts of a session's subagents that changed since a time.

    They are in the folder of the same day or of a later one.
    """
    session, day = session_of(path), os.path.dirname(path)
    root = folder_of(path)
    days = [
        os.path.join(root, *parts)
        for parts in _days(root)
        if session and os.path.join(root, *parts) >= day
    ]
    found = [
        each
        for folder in days or [day]
        for each in transcript_paths.files_below(folder, 0, thread_of)
        if session and each != path and _changed_ms(each) >= since_ms
    ]
    return [each for each in found if origin(each).agent and origin(each).session == session]


def _days(root: str) -> list[tuple[str, ...]]:
    days: list[tuple[str, ...]] = [()]
    for _ in range(_DEPTH):
        days = [
            (*day, name)
            for day in days
            for name in disk.names(os.path.join(root, *day))
            if name.isdecimal()
        ]
    return days


def _changed_ms(path: str) -> int:
    try:
        return transcript_paths.stamp(path).changed_ms
    except OSError:
        return 0


class Origin(NamedTuple):
    """What the first line of a rollout says about what started it."""

    session: str = ""
    """The session of the main thread."""
    agent: str = ""
    """The thread itself, if it is that of a subagent."""
    caller: str = ""
    version: str = ""

    is_forked: bool = False
    """Whether it begins with a copy of the conversation that started it."""


_UNKNOWN = Origin()
_origins: dict[str, Origin] = {}
"""The origins by path. The first line of a rollout does not change."""


def origin(path: str) -> Origin:
    """What started a thread; one without a rollout has none yet."""
    if path in _origins:
        return _origins[path]
    thread = thread_of(path)
    try:
        line, is_whole, _ = transcript_paths.first_bytes(path).partition(b"\n")
    except OSError:
        return _UNKNOWN
    if not thread or not line:
        return _UNKNOWN
    found = _origin_in(thread, _first_fields(line))
    if is_whole:
        if len(_origins) >= _MOST_KNOWN:
            _origins.clear()
        _origins[path] = found
    return found


def _origin_in(thread: str, meta: Mapping[str, Any]) -> Origin:
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    kind = plain_text_of(meta, "thread_source")
    if spawned is None and kind in ("", "user"):
        caller = plain_text_of(meta, "originator")
        caller = "mcp" if source == "mcp" else caller
        return Origin(thread, "", caller, plain_text_of(meta, "cli_version"))
    parent = plain_text_of(fields_of(fields_of(spawned).get("thread_spawn")), "parent_thread_id")
    session = plain_text_of(meta, "session_id")
    named = session if session != thread else ""
    lead = named or plain_text_of(meta, "parent_thread_id") or parent or thread
    version, is_forked = plain_text_of(meta, "cli_version"), bool(meta.get("forked_from_id"))
    return Origin(lead, thread, "", version, is_forked)


def _first_fields(line: bytes) -> Mapping[str, Any]:
    """The fields of the first line, without the instructions, which may be longer than what is
    read and come last."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        cut = _INSTRUCTIONS.search(line)
        try:
            entry = json.loads(line[: cut.start()] + b"}}") if cut else None
        except (ValueError, RecursionError):
            entry = None
    fields = fields_of(entry)
    return fields_of(fields.get("payload")) if fields.get("type") == "session_meta" else {}


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
