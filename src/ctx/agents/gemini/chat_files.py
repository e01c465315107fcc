"""Where Gemini CLI stores transcripts, which it calls chats.

tmp/<project>/chats/session-2026-11-16T03-47-<beginning of the session>.jsonl
projects.json                                     {"projects": {"/home/dev/shop": "shop"}}

The first line of a chat names its session. No line names the folder in which it ran.
"""

import json
import os
import re
from contextlib import suppress
from typing import Any

from ctx import clock, disk
from ctx.hook_files import live
from ctx.hosts import transcript_paths
from ctx.hosts.transcripts import TranscriptStart

_NAME = re.compile(r"session-[0-9A-Za-z-]{1,100}\.jsonl")
_FIRST_LINE = 64 * 1024
_LARGEST_LIST = 4 * 1024 * 1024
CONTEXT_OF_HOOK = b"<hook_context>"
# The first message of every chat describes the place.
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- ([^\n]{1,4096})")


def folder(host_folder: str) -> str:
    return os.path.join(host_folder, "tmp")


def files(path: str) -> list[str]:
    """The chats of all projects, of one, or in one folder."""
    return transcript_paths.files_below(path, 2, session_of)


def folder_of(path: str) -> str:
    return os.path.dirname(path)


def session_of(path: str) -> str:
    """The session of a chat; empty if it is none, or that of a subagent."""
    if not _NAME.fullmatch(os.path.basename(path)):
        return ""
    first = _first_line(path)
    session = first.get("sessionId")
    is_main = first.get("kind", "main") == "main"
    return session if is_main and isinstance(session, str) and live.is_session(session) else ""


def beginning(path: str) -> TranscriptStart:
    start = transcript_paths.first_bytes(path)
    time = _parsed(start.partition(b"\n")[0]).get("startTime")
    began_ms = clock.parse_iso(time) if isinstance(time, str) else None
    return TranscriptStart(project_folder(path), began_ms)


def project_folder(path: str) -> str:
    """The folder in which a session ran; empty if unknown."""
    project = os.path.dirname(os.path.dirname(path))
    with suppress(OSError):
        root = disk.read_plain(os.path.join(project, ".project_root"), 4096)
        if found := _absolute(root.decode("utf-8", "replace").strip()):
            return found
    with suppress(OSError):
        listed = os.path.join(os.path.dirname(os.path.dirname(project)), "projects.json")
        projects = _parsed(disk.read_plain(listed, _LARGEST_LIST)).get("projects")
        for place, name in projects.items() if isinstance(projects, dict) else ():
            if name == os.path.basename(project) and _absolute(str(place)):
                return str(place)
    with suppress(OSError):
        for line in transcript_paths.first_bytes(path).split(b"\n")[:5]:
            if b"Workspace Directories" in line:
                listed_first = _WORKSPACE.search(" ".join(_texts(_parsed(line))))
                return _absolute(listed_first[1].strip()) if listed_first else ""
    return ""


def _first_line(path: str) -> dict[str, Any]:
    try:
        return _parsed(disk.read_plain(path, _FIRST_LINE).partition(b"\n")[0])
    except OSError:
        return {}


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _texts(entry: dict[str, Any]) -> list[str]:
    """The texts of the messages with which a chat begins."""
    changed = entry.get("$set")
    messages = changed.get("messages") if isinstance(changed, dict) else None
    contents = [each.get("content") for each in messages or () if isinstance(each, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    found = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str)]


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) and "\0" not in path else ""
