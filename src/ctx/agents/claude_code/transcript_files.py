"""Where Claude Code stores transcripts, and which session each one belongs to.

projects/-home-dev-shop/<session>.jsonl                         of a session
projects/-home-dev-shop/<session>/subagents/agent-<id>.jsonl    of an agent that works for it
projects/-home-dev-shop/agent-<id>.jsonl                        the same, of older clients
"""

import json
import os
import re

from ctx import clock, disk
from ctx.capture.injected_text import SIGNS
from ctx.hook_files import live
from ctx.hosts.json_fields import string_in
from ctx.hosts.transcripts import TranscriptStart

SUFFIX = ".jsonl"

_PROJECTS = "projects"
_CWD = re.compile(rb'"cwd"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,4096}")')
_PROMPT_ID = re.compile(rb'"promptId"\s{0,4}:\s{0,4}"([^"\\]{1,100})"')
_TIMESTAMP = re.compile(rb'"timestamp"\s{0,4}:\s{0,4}"([0-9T:.Z+-]{10,40})"')

_SUBAGENTS = "subagents"
_START_BYTES = 8192
_START = 512 * 1024
_CONTEXT_OF_HOOK = b'"hook_additional_context"'
_NOTICE = b"ctx: this session cannot be recorded"


def folder(host_folder: str) -> str:
    """The folder with the transcripts, which has one subfolder per project."""
    return os.path.join(host_folder, _PROJECTS)


def read_beginning(start: bytes) -> TranscriptStart:
    """The session data in the first bytes of a transcript."""
    cwd = _CWD.search(start)
    folder = string_in(cwd[1]) if cwd else ""
    time = _TIMESTAMP.search(start)
    began_ms = clock.parse_iso(time[1].decode()) if time else None
    is_usable = os.path.isabs(folder) and "\0" not in folder
    return TranscriptStart(folder if is_usable else "", began_ms, _count_first_prompt(start))


def _count_first_prompt(start: bytes) -> int:
    """How often the beginning of a transcript contains the id of its first prompt.

    A fork begins with a copy of the original session, with the same times, in which all entries
    have the id of the fork's own first prompt.
    """
    first = _PROMPT_ID.search(start)
    return len([id for id in _PROMPT_ID.findall(start) if id == first[1]]) if first else 0


def session_of(path: str) -> str:
    """The session of a transcript, by its file name; empty if it is not a transcript."""
    name = os.path.basename(path)
    stem = name.removesuffix(SUFFIX)
    is_one = stem != name and not stem.startswith("agent-") and live.is_session(stem)
    return stem if is_one else ""


def shows_hook(path: str) -> bool:
    """Whether a hook of ctx answered at the start of a session: the client stores its answer."""
    try:
        with open(path, "rb") as file:
            lines = file.read(_START).splitlines()
    except OSError:
        return False
    return any(
        _NOTICE in line or (_CONTEXT_OF_HOOK in line and any(sign in line for sign in SIGNS))
        for line in lines
    )


def of_subagents(path: str, since_ms: int) -> list[str]:
    """The transcripts of a session's subagents that are newer than `since_ms`."""
    folder, session = os.path.dirname(path), session_of(path)
    # Older clients store all of them in one folder, beside those of the sessions.
    marked = json.dumps(session).encode()
    beside = [agent for agent in _agents_in(folder, since_ms) if marked in _read_start(agent)]
    return [*_agents_in(os.path.join(folder, session, _SUBAGENTS), since_ms), *beside]


def _agents_in(folder: str, since_ms: int) -> list[str]:
    try:
        with os.scandir(folder) as scanned:
            return sorted(
                entry.path
                for entry in scanned
                if _is_subagent(entry.name)
                and clock.possible_ms(entry.stat().st_mtime_ns // 1_000_000) >= since_ms
            )
    except OSError:
        return []


def _is_subagent(name: str) -> bool:
    return name.startswith("agent-") and name.endswith(SUFFIX)


def _read_start(path: str) -> bytes:
    try:
        return disk.read_plain(path, _START_BYTES)
    except OSError:
        return b""


def main_of(path: str, session: str) -> str:
    """The transcript of the session itself, given its path or that of a subagent."""
    folder, name = os.path.split(path)
    if not _is_subagent(name):
        return path
    if os.path.basename(folder) == _SUBAGENTS:
        folder = os.path.dirname(os.path.dirname(folder))
    return os.path.join(folder, session + SUFFIX)
