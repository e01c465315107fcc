"""The events of a session, the messages of its agent, and what it read, from a rollout."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ctx import clock
from ctx.agents.codex import payloads, rollouts, tools
from ctx.agents.codex.payloads import CALLER, VERSION
from ctx.agents.codex.tools import BEGIN, EXIT_CODE, PATCH, SHELL
from ctx.agents.line_transcripts import LineTranscripts, files_below
from ctx.capture import repeated_commands, session_state
from ctx.capture.steps import ASSISTANT_MESSAGE, RECAP
from ctx.hosts.events import Heading
from ctx.hosts.transcript_reader import (
    TranscriptReader,
    digest,
    event_id,
    message_texts,
    nested_strings,
    text_field,
)
from ctx.hosts.turn_lines import TurnEntry, TurnLines

_MATTERS = re.compile(rb'"type"\s{0,4}:\s{0,4}"(?:response_item|turn_context|compacted)"')
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_BY_AGENT = (*_CALLS, "reasoning", "web_search_call")
_OF_HOOK = "hooks.additional_context"


class _Call(NamedTuple):
    """A tool call that waits for its result."""

    offset: int
    tool: str
    input: dict[str, Any]


class _RolloutReader(TranscriptReader):
    matters = _MATTERS

    def __init__(self, path: str, most: int, deadline: float) -> None:
        super().__init__(path, most, deadline)
        self._origin = rollouts.origin(path)
        self._session = self._origin.session or rollouts.thread_of(path)
        self._calls: dict[str, _Call] = {}
        self._folder, self._branch = rollouts.place(path)

    def waiting(self, behind: int) -> Iterator[int]:  # noqa: ARG002
        return (call.offset for call in self._calls.values())

    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:
        item = entry.get("payload")
        if not isinstance(item, dict) or not self._session:
            return
        at_ms = self.time_of(text_field(entry, "timestamp"))
        if entry.get("type") == "turn_context":
            self._calls.clear()
            self._folder = text_field(item, "cwd") or self._folder
            return
        name = text_field(item, "id") or digest(line)
        if entry.get("type") == "compacted":
            text = rollouts.summary_of(text_field(item, "message"))
            if text and not self._origin.agent:
                self._add(at_ms, RECAP, name, {"text": text})
            return
        kind = item.get("type")
        if kind == "message":
            self._message(at_ms, name, item)
        elif kind in _CALLS:
            self._call(offset, item)
        elif kind in _RESULTS:
            self._result(at_ms, item)
        elif kind == "web_search_call":
            self._tool(at_ms, name, "web_search", {"tool_input": item.get("action")})

    def _message(self, at_ms: int, name: str, item: dict[str, Any]) -> None:
        texts = message_texts(item)
        if item.get("role") == "assistant" and texts:
            said = {"text": "\n\n".join(texts), "message_id": name}
            self._add(at_ms, ASSISTANT_MESSAGE, name, said)
        elif item.get("role") == "user":
            if texts and texts[0].lstrip().startswith(rollouts.ABORTED):
                self._calls.clear()
                if not self._origin.agent:
                    self._add(at_ms, session_state.INTERRUPT, name, {})
            elif not self._origin.is_forked and (prompt := rollouts.prompt_of(item)):
                self._add(at_ms, session_state.PROMPT, name, {"prompt": prompt})

    def _call(self, offset: int, item: dict[str, Any]) -> None:
        call_id = text_field(item, "call_id") or text_field(item, "id")
        if not call_id:
            return
        if item.get("type") == "custom_tool_call":
            arguments = {"command": text_field(item, "input")}
        else:
            # A call of the oldest shell tool has an action instead of arguments.
            arguments = _parsed(item.get("arguments", item.get("action")))
        plain = text_field(item, "name") or "local_shell"
        tool = tools.tool_name(plain, text_field(item, "namespace"))
        if tool == SHELL:
            command = tools.shell_command(arguments)
            # Models without a tool for patches call a program.
            if command.startswith(PATCH) and BEGIN in command:
                tool = PATCH
            arguments = {"command": command}
        self._calls[call_id] = _Call(offset, tool, arguments)

    def _result(self, at_ms: int, item: dict[str, Any]) -> None:
        """Handle the end of a call. If its beginning is unknown, it is skipped."""
        call_id = text_field(item, "call_id")
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        code, output = rollouts.output_of(item.get("output"))
        more: dict[str, Any] = {"tool_input": call.input, "tool_response": output}
        if code is not None:
            more[EXIT_CODE] = code
        self._tool(at_ms, call_id, call.tool, more)

    def _tool(self, at_ms: int, call_id: str, tool: str, more: dict[str, Any]) -> None:
        self._add(
            at_ms, "PostToolUse", call_id, {"tool_name": tool, "tool_use_id": call_id, **more}
        )

    def _add(self, at_ms: int, name: str, known_by: str, more: dict[str, Any]) -> None:
        common = {
            "session_id": self._session,
            "transcript_path": "" if self._origin.agent else self.path,
            "agent_id": self._origin.agent,
            CALLER: self._origin.caller,
            VERSION: self._origin.version,
            "cwd": self._folder,
            "git_branch": self._branch,
        }
        payload = {key: value for key, value in common.items() if value}
        payload |= {"hook_event_name": name, **more}
        heading = Heading(
            event_id(at_ms, name, known_by),
            self._session,
            name,
            clock.iso(at_ms),
            self._folder,
            more.get("tool_name"),
            more.get("tool_use_id"),
        )
        event = payloads.joined(heading, payload)
        self.events += (event._replace(further=()), *event.further)


def _parsed(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return {}
    return arguments if isinstance(arguments, dict) else {}


def _may_matter(line: bytes) -> bool:
    return b'"response_item"' in line and (b'"assistant"' in line or b'"user"' in line)


def _turn_entry(entry: Any, offset: int) -> TurnEntry | None:
    item = entry.get("payload") if isinstance(entry, dict) else None
    if not isinstance(item, dict) or item.get("type") != "message":
        return None
    name = text_field(item, "id") or str(offset)
    if item.get("role") == "assistant":
        return TurnEntry(name, name, message_texts(item))
    is_prompt = item.get("role") == "user" and rollouts.prompt_of(item)
    return TurnEntry(None, name) if is_prompt else None


class CodexTranscripts(LineTranscripts):
    file_names = "rollout-<time>-<session>.jsonl"
    turns = TurnLines(_may_matter, _turn_entry)
    context_marks = (b"hooks.additional_context",)

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, rollouts.SESSIONS)

    def files(self, folder: str) -> Sequence[str]:
        return files_below(folder, rollouts.DEPTH, rollouts.session_of)

    def folder_of(self, path: str) -> str:
        return rollouts.folder_of(path)

    def session_of(self, path: str) -> str:
        return rollouts.session_of(path)

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        return rollouts.of_subagents(path, since_ms)

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return _RolloutReader(path, most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        item = entry.get("payload")
        # Most of a summary is in the agent's own words.
        if entry.get("type") != "response_item" or not isinstance(item, dict):
            return
        if item.get("type") in _BY_AGENT or item.get("role") == "assistant":
            return
        is_of_hook = any(text == _OF_HOOK for text in nested_strings(item, "hooks."))
        for text in nested_strings(item, "ctx"):
            yield repeated_commands.without_reports(text) if is_of_hook else text
