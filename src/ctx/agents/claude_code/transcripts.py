"""The transcripts of Claude Code: where they are, to which session each one belongs, what is said
in them, and who leads a team.

projects/-home-dev-shop/<session>.jsonl                         of a session
projects/-home-dev-shop/<session>/subagents/agent-<id>.jsonl    of an agent that works for it
projects/-home-dev-shop/agent-<id>.jsonl                        the same, of older clients

A message of the assistant consists of several lines with the same `message.id`, one for each block
of its content. There are many other types of lines in between:

    {"type": "user", "message": {"content": "Do it"}}                                   a prompt
    {"type": "assistant", "message": {"id": "msg_1", "content": [{"type": "thinking", …}]}}
    {"type": "assistant", "message": {"id": "msg_1", "content": [{"type": "text", …}]}}
    {"type": "user", "message": {"content": [{"type": "tool_result", …}]}}              no prompt
    {"type": "assistant", "message": {"content": "As it once was written"}}

An agent of a team may run as a session of its own. Each line of its transcript has the name of the
team and its own name there, but not the session of the lead. That is in the file of the team, as
long as the team exists:

    teams/<team>/config.json    {"leadSessionId": "0c1fb4a8-…", "members": […]}

Newer clients name the team after the lead: `session-0c1fb4a8`.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ctx import clock, disk
from ctx.agents.line_transcripts import first_bytes, start_in
from ctx.capture import repeated_commands
from ctx.capture.injected_text import SIGNS
from ctx.hook_files import live
from ctx.hosts.transcript_reader import nested_strings
from ctx.hosts.transcripts import TranscriptStart, storable
from ctx.hosts.turn_lines import TurnEntry, TurnLines

SUFFIX = ".jsonl"

_PROMPT_ID = re.compile(rb'"promptId"\s{0,4}:\s{0,4}"([^"\\]{1,100})"')
_SUBAGENTS = "subagents"
_START_BYTES = 8192
_CONTEXT_OF_HOOK = b'"hook_additional_context"'
_NOTICE = b"ctx: this session cannot be recorded"
_NOT_BY_AGENT = ("user", "attachment", "system")
_LEAD = "team-lead"
_LARGEST_TEAM = 1024 * 1024
_TEAM_NAME = re.compile(r"[\w-]{1,200}", re.ASCII)
_TEAM_OF_SESSION = re.compile(r"session-([0-9a-f]{8})")
_STARTS_TEAM = ("TeamCreate", "Agent", "Task")


# Files


def beginning(path: str) -> TranscriptStart:
    start = first_bytes(path)
    return start_in(start)._replace(copied=_count_first_prompt(start))


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
        lines = first_bytes(path).splitlines()
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


# Turns


def _may_matter(line: bytes) -> bool:
    return b'"assistant"' in line or (b'"user"' in line and b'"tool_result"' not in line)


def is_error(entry: Any) -> bool:
    """Whether the client wrote this message itself because the model failed."""
    if not isinstance(entry, dict) or entry.get("type") != "assistant":
        return False
    message = entry.get("message")
    is_synthetic = isinstance(message, dict) and message.get("model") == "<synthetic>"
    return is_synthetic or bool(entry.get("isApiErrorMessage"))


def _read(entry: Any, offset: int) -> TurnEntry | None:
    """The content of a line; None if it is not relevant."""
    if not isinstance(entry, dict) or entry.get("isSidechain") or entry.get("isMeta"):
        return None
    message = entry.get("message")
    if not isinstance(message, dict):
        return None
    texts = _message_texts(entry)
    name = str(entry.get("uuid") or offset)
    match entry.get("type"):
        case "assistant":
            return TurnEntry(str(message.get("id") or name), name, texts)
        case "user" if texts and not entry.get("isCompactSummary") and not _is_result(message):
            return TurnEntry(None, name)
        case _:
            return None


def _message_texts(entry: dict[str, Any]) -> tuple[str, ...]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return tuple(text for block in blocks if (text := text_of_block(block)))


def text_of_block(block: Any) -> str:
    """The text of a block of content; empty if it has none."""
    if not isinstance(block, dict) or block.get("type", "text") != "text":
        return ""
    text = block.get("text")
    return storable(text) if isinstance(text, str) and text.strip() else ""


def _is_result(message: dict[str, Any]) -> bool:
    blocks = message.get("content")
    return isinstance(blocks, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks
    )


LINES = TurnLines(
    _may_matter, _read, lambda entry: _message_texts(entry) if is_error(entry) else None
)


def texts_for_agent(entry: dict[str, Any]) -> Iterator[str]:
    """The texts of an entry that the agent read and did not write: prompts, tool results and
    attachments."""
    if entry.get("isSidechain"):
        return
    if entry.get("type") not in _NOT_BY_AGENT and not is_error(entry):
        return
    attachment = entry.get("attachment")
    kind = attachment.get("type") if isinstance(attachment, dict) else None
    is_of_hook = isinstance(kind, str) and kind.startswith("hook_")
    for text in nested_strings(entry, "ctx"):
        yield repeated_commands.without_reports(text) if is_of_hook else text


# Teams


class TeamReader:
    """Reads the teams that the lines of one transcript name."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._leads: dict[str, str] = {}

    def keys(self, line: Mapping[str, Any]) -> dict[str, str]:
        """The team of a line, the name of its session there, and the lead, as far as known."""
        team, name = line.get("teamName"), line.get("agentName")
        if not isinstance(team, str) or not team:
            return {}
        if not isinstance(name, str) or name == _LEAD:
            return {"team_name": storable(team)}
        if team not in self._leads:
            self._leads[team] = lead_of(self._path, team)
        lead = self._leads[team]
        return {"team_name": storable(team), "agent_name": storable(name), "lead_session": lead}


def lead_of(path: str, team: str) -> str:
    """The session that leads a team, by the transcript of one of its agents; empty if unknown."""
    if not _TEAM_NAME.fullmatch(team):
        return ""
    folder = os.path.dirname(path)
    host_folder = os.path.dirname(os.path.dirname(folder))
    try:
        data = disk.read_plain(
            os.path.join(host_folder, "teams", team, "config.json"), _LARGEST_TEAM
        )
        found = json.loads(data)
    except (OSError, ValueError, RecursionError):
        found = None
    lead = found.get("leadSessionId") if isinstance(found, dict) else None
    if isinstance(lead, str) and live.is_session(lead):
        return lead
    named = _TEAM_OF_SESSION.fullmatch(team)
    return _session_beginning(named[1], folder) if named else ""


def team_started_by(tool: str | None, payload: Mapping[str, Any]) -> str:
    """The team that a call of the lead created or added an agent to; empty if it did not."""
    response = payload.get("tool_response")
    if tool not in _STARTS_TEAM or not isinstance(response, Mapping):
        return ""
    team = response.get("team_name")
    return storable(team) if isinstance(team, str) else ""


def _session_beginning(start: str, folder: str) -> str:
    try:
        names = [name for name in os.listdir(folder) if name.startswith(start)]
    except OSError:
        return ""
    found = [session for name in names if (session := session_of(name))]
    return found[0] if len(found) == 1 else ""
