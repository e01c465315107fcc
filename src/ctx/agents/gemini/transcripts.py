"""The events of a session, the messages of its agent, and what it read, from a chat.

{"id": …, "type": "user", "content": [{"text": "Do it"}], …}                  UserPromptSubmit
{"id": …, "type": "gemini", "content": "I run a command.", …}                 AssistantMessage
{"id": …, "type": "gemini", "content": …, "toolCalls": […], …}                the same again,
                                                                              and PostToolUse
{"id": …, "type": "user", "content": [{"functionResponse": …}], …}            no prompt
{"$set": {"lastUpdated": …}}

Gemini CLI calls a transcript a chat:

tmp/<project>/chats/session-2026-11-16T03-47-<beginning of the session>.jsonl
projects.json                                     {"projects": {"/home/dev/shop": "shop"}}

The first line of a chat names its session. No line names the folder in which it ran.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ctx import clock, disk
from ctx.agent_commands.markup import unescape_tags
from ctx.agents.gemini import payloads
from ctx.agents.gemini.hooks import CLOSING, OPENING, without_context
from ctx.agents.gemini.tools import ToolResult
from ctx.agents.line_transcripts import LineTranscripts, files_below, first_bytes
from ctx.capture import repeated_commands, session_state
from ctx.capture.steps import ASSISTANT_MESSAGE
from ctx.hook_files import live
from ctx.hosts.events import Heading
from ctx.hosts.transcript_reader import (
    TranscriptReader,
    digest,
    event_id,
    message_texts,
    nested_strings,
    text_field,
)
from ctx.hosts.transcripts import TranscriptStart, usable_folder
from ctx.hosts.turn_lines import TurnEntry, TurnLines

_MATTERS = re.compile(rb'"type"\s{0,4}:\s{0,4}"(?:user|gemini)"')
_CONTEXT = re.compile(rf"{OPENING}(.*?){CLOSING}", re.DOTALL)
_ENDED = ("success", "error")
_NAME = re.compile(r"session-[0-9A-Za-z-]{1,100}\.jsonl")
_FIRST_LINE = 64 * 1024
_LARGEST_LIST = 4 * 1024 * 1024
# The first message of every chat describes the place.
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- ([^\n]{1,4096})")


class _ChatReader(TranscriptReader):
    matters = _MATTERS

    def __init__(self, path: str, most: int, deadline: float) -> None:
        super().__init__(path, most, deadline)
        self._agent = _subagent_of(path)
        chat = os.path.dirname(path) if self._agent else path
        self._session = os.path.basename(chat) if self._agent else session_of(path)
        self._folder = project_folder(chat)
        self._known: set[str] = set()

    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:  # noqa: ARG002
        if not self._session:
            return
        at_ms = self.time_of(text_field(entry, "timestamp"))
        name = text_field(entry, "id") or digest(line)
        if entry.get("type") == "user":
            if prompt := _prompt(entry):
                self._add(at_ms, session_state.PROMPT, name, {"prompt": prompt})
        elif entry.get("type") == "gemini":
            if text := "\n\n".join(message_texts(entry)):
                said = {"text": text, "message_id": name}
                self._add(at_ms, ASSISTANT_MESSAGE, name, said)
            calls = entry.get("toolCalls")
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict) and call.get("status") in _ENDED:
                    self._call(call, at_ms)

    def _call(self, call: dict[str, Any], message_ms: int) -> None:
        at_ms = clock.parse_iso(text_field(call, "timestamp")) or message_ms
        tool, arguments = text_field(call, "name"), call.get("args")
        heading = self._heading(at_ms, "PostToolUse", text_field(call, "id"))
        response = _response(call)
        error = response.get("error") if call.get("status") == "error" else None
        result = ToolResult(
            response.get("output"),
            call.get("resultDisplay"),
            error if isinstance(error, str) else "The call failed." if error else "",
        )
        self.events.append(
            payloads.tool_event(
                heading._replace(tool=tool),
                {**self._common("AfterTool"), "tool_name": tool},
                arguments if isinstance(arguments, dict) else {},
                result,
            )
        )

    def _add(self, at_ms: int, name: str, known_by: str, more: dict[str, Any]) -> None:
        heading = self._heading(at_ms, name, known_by)
        # A message is written again with its tool calls.
        if heading.id not in self._known:
            self._known.add(heading.id)
            self.events.append(payloads.restore(heading, {**self._common(name), **more}))

    def _heading(self, at_ms: int, name: str, known_by: str) -> Heading:
        made = event_id(at_ms, name, known_by)
        return Heading(made, self._session, name, clock.iso(at_ms), self._folder, None, None)

    def _common(self, name: str) -> dict[str, Any]:
        return {
            "session_id": self._session,
            "transcript_path": self.path,
            **({"cwd": self._folder} if self._folder else {}),
            "hook_event_name": name,
            **({payloads.AGENT: self._agent} if self._agent else {}),
        }


def _response(call: dict[str, Any]) -> dict[str, Any]:
    """What the model got as the result of a call."""
    results = call.get("result")
    for result in results if isinstance(results, list) else ():
        answer = result.get("functionResponse") if isinstance(result, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            return response
    return {}


def _prompt(entry: dict[str, Any]) -> str:
    """What a person typed; empty if nobody did."""
    text = without_context("\n\n".join(message_texts(entry))).strip()
    return "" if text.startswith(payloads.NOT_TYPED) else text


def _may_matter(line: bytes) -> bool:
    return b'"gemini"' in line or b'"user"' in line


def _turn_entry(entry: Any, offset: int) -> TurnEntry | None:
    if not isinstance(entry, dict):
        return None
    name = text_field(entry, "id") or str(offset)
    if entry.get("type") == "gemini":
        return TurnEntry(name, name, tuple(map(unescape_tags, message_texts(entry))))
    is_prompt = entry.get("type") == "user" and _prompt(entry)
    return TurnEntry(None, name) if is_prompt else None


class GeminiTranscripts(LineTranscripts):
    file_names = "session-<time>-<session>.jsonl"
    turns = TurnLines(_may_matter, _turn_entry)
    context_marks = (OPENING.encode(),)

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, "tmp")

    def files(self, folder: str) -> Sequence[str]:
        """The chats of all projects, of one, or in one folder."""
        return files_below(folder, 2, session_of)

    def session_of(self, path: str) -> str:
        return session_of(path)

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        session = session_of(path)
        folder = os.path.join(os.path.dirname(path), session)
        chats = files_below(folder, 0, _subagent_of) if session else []
        return [each for each in chats if self.stamp(each).changed_ms >= since_ms]

    def beginning(self, path: str) -> TranscriptStart:
        time = _parsed(first_bytes(path).partition(b"\n")[0]).get("startTime")
        began_ms = clock.parse_iso(time) if isinstance(time, str) else None
        return TranscriptStart(project_folder(path), began_ms)

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return _ChatReader(path, most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        for text in nested_strings(entry, "ctx") if entry.get("type") != "gemini" else ():
            yield without_context(text)
            yield from map(repeated_commands.without_reports, contexts_in(text))


def contexts_in(text: str) -> list[str]:
    """The contexts in a text, as hooks gave them."""
    found = _CONTEXT.findall(text) if OPENING in text else []
    return [each.replace("&lt;", "<").replace("&gt;", ">") for each in found]


# Files


def session_of(path: str) -> str:
    """The session of a chat; empty if it is none, or that of a subagent."""
    if not _NAME.fullmatch(os.path.basename(path)):
        return ""
    first = _first_line(path)
    session = first.get("sessionId")
    is_main = first.get("kind", "main") == "main"
    return session if is_main and isinstance(session, str) and live.is_session(session) else ""


def _subagent_of(path: str) -> str:
    """The subagent whose chat a file is; empty if it is none. Its folder is named after the
    session."""
    name, suffix = os.path.splitext(os.path.basename(path))
    is_chat = suffix == ".jsonl" and live.is_session(os.path.basename(os.path.dirname(path)))
    return name if is_chat and _first_line(path).get("kind") == "subagent" else ""


def project_folder(path: str) -> str:
    """The folder in which a session ran; empty if unknown."""
    project = os.path.dirname(os.path.dirname(path))
    with suppress(OSError):
        root = disk.read_plain(os.path.join(project, ".project_root"), 4096)
        if found := usable_folder(root.decode("utf-8", "replace").strip()):
            return found
    with suppress(OSError):
        listed = os.path.join(os.path.dirname(os.path.dirname(project)), "projects.json")
        projects = _parsed(disk.read_plain(listed, _LARGEST_LIST)).get("projects")
        for place, name in projects.items() if isinstance(projects, dict) else ():
            if name == os.path.basename(project) and usable_folder(str(place)):
                return str(place)
    with suppress(OSError):
        for line in first_bytes(path).split(b"\n")[:5]:
            if b"Workspace Directories" in line:
                listed_first = _WORKSPACE.search(" ".join(_texts(_parsed(line))))
                return usable_folder(listed_first[1].strip()) if listed_first else ""
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
