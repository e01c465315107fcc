"""The transcripts of GitHub Copilot CLI.

    session-state/<session>/events.jsonl     one event per line, appended
    session-state/<session>/workspace.yaml   the folder; it is also in the first line

A line is `{"type", "data", "id", "timestamp", "parentId"}`, with `agentId` in a subagent:

    session.start             data.context: cwd, branch
    user.message              data.content, as typed; data.transformedContent, with injected text
    assistant.message         data.messageId, data.content
    tool.execution_start      data.toolCallId, data.toolName, data.arguments
    hook.start                data.hookType, data.input: the payload of a hook
    tool.execution_complete   data.toolCallId, data.success, data.result, data.shellExecution

Hooks do not report the id of a call. The payload of the hook is in the transcript, so a call that
was reported gets the id that `tools.call_id` makes of the payload.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx import clock
from ctx.agents.copilot import tools
from ctx.agents.copilot.hooks import NAME
from ctx.agents.line_transcripts import LineTranscripts, files_below, first_bytes
from ctx.agents.stored_events import EventContent, StoringReader, ToolReport, WaitingCall
from ctx.capture import repeated_commands, session_state
from ctx.capture.steps import ASSISTANT_MESSAGE, RECAP
from ctx.hook_files import live
from ctx.hosts import transcript_reader
from ctx.hosts.json_fields import fields_of, text_of
from ctx.hosts.transcript_reader import TranscriptReader
from ctx.hosts.transcripts import (
    TranscriptPart,
    TranscriptStart,
    storable,
    usable_folder,
)
from ctx.hosts.turn_lines import TurnEntry, TurnLines

_FOLDER = "session-state"
_FILE = "events.jsonl"
_TOOL_HOOKS = ("postToolUse", "postToolUseFailure")
_BY_AGENT = ("assistant.", "tool.execution_start", "hook.start")
"""The types of entries that the agent wrote. The input of a hook is in other entries too."""
_MATTERS = re.compile(
    rb'"type"\s{0,4}:\s{0,4}"(?:session\.(?:start|resume|compaction_complete)|user\.message'
    rb'|assistant\.message|abort|tool\.execution_(?:start|complete)|hook\.start)"'
)


def _first_data(path: str) -> Mapping[str, Any]:
    """The first line of a transcript, which says where the session works."""
    try:
        entry = json.loads(first_bytes(path).partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return fields_of(fields_of(entry).get("data"))


def _turn_entry(entry: Any, offset: int) -> TurnEntry | None:
    data = fields_of(fields_of(entry).get("data"))
    if not isinstance(entry, dict) or entry.get("agentId"):
        return None
    name = text_of(entry, "id") or str(offset)
    match entry.get("type"):
        case "assistant.message":
            text = storable(text_of(data, "content"))
            message_id = text_of(data, "messageId") or name
            return TurnEntry(message_id, name, (text,) if text.strip() else ())
        case "user.message" if _is_typed(data):
            return TurnEntry(None, name)
        case _:
            return None


def _is_typed(data: Mapping[str, Any]) -> bool:
    """Whether the user typed a message: the client also writes texts of skills and agents so."""
    is_own = text_of(data, "source") in ("", "user") and not data.get("isAutopilotContinuation")
    return is_own and bool(text_of(data, "content").strip())


class _CopilotReader(StoringReader):
    host = NAME
    matters = _MATTERS
    _folder = _branch = _version = ""

    def read(self, start: int, end: int | None) -> TranscriptPart:
        try:
            self._set_place(_first_data(self.path))
        except OSError:
            # The reading reports it.
            pass
        return super().read(start, end)

    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:  # noqa: ARG002
        if not self.session:
            return
        data = fields_of(entry.get("data"))
        match entry.get("type"):
            case "session.start" | "session.resume":
                self._set_place(data)
            case "user.message" if _is_typed(data) and not entry.get("agentId"):
                text = storable(text_of(data, "content").strip())
                content = EventContent(text, "user", version=self._version)
                self._add(entry, session_state.PROMPT, content)
            case "assistant.message" if text := storable(text_of(data, "content").strip()):
                self._add(entry, ASSISTANT_MESSAGE, EventContent(text, "agent"))
            case "session.compaction_complete" if text := text_of(data, "summaryContent").strip():
                self._add(entry, RECAP, EventContent(storable(text), "agent"))
            case "abort" if not entry.get("agentId"):
                self.calls.clear()
                self._add(entry, session_state.INTERRUPT, EventContent())
            case "tool.execution_start":
                call_id, tool = text_of(data, "toolCallId"), text_of(data, "toolName")
                if call_id and tool:
                    arguments = tools.arguments_of(data.get("arguments"))
                    self.calls[call_id] = WaitingCall(offset, tool, arguments)
            case "hook.start":
                self._note_reported(data)
            case "tool.execution_complete":
                self._end_call(entry, data)

    def _set_place(self, data: Mapping[str, Any]) -> None:
        context = data.get("context")
        self._folder = text_of(context, "cwd") or self._folder
        self._branch = text_of(context, "branch") or self._branch
        self._version = text_of(data, "copilotVersion") or self._version

    def _note_reported(self, data: Mapping[str, Any]) -> None:
        """Find the call that a hook reports."""
        if data.get("hookType") not in _TOOL_HOOKS:
            return
        keys = fields_of(data.get("input"))
        tool, arguments = text_of(keys, "toolName"), keys.get("toolArgs")
        for call_id, call in self.calls.items():
            is_same = (call.tool, call.arguments) == (tool, tools.arguments_of(arguments))
            if is_same and not call.call_id:
                reported = tools.call_id(keys.get("timestamp"), tool, arguments)
                self.calls[call_id] = call._replace(call_id=reported)
                return

    def _end_call(self, entry: dict[str, Any], data: Mapping[str, Any]) -> None:
        call_id = text_of(data, "toolCallId")
        call = self.calls.pop(call_id, None)
        if call is None:
            return
        code = fields_of(data.get("shellExecution")).get("exitCode")
        failed = data.get("success") is False
        report = ToolReport(
            call.tool,
            call.arguments,
            text_of(data.get("result"), "detailedContent", "content"),
            text_of(data.get("error"), "message") if failed else None,
            {"exit_code": code} if isinstance(code, int) and not isinstance(code, bool) else {},
        )
        content = EventContent(path=tools.path_of(report), call=tools.call_of(report))
        name = "PostToolUseFailure" if failed else "PostToolUse"
        self._add(entry, name, content, call.tool, call.call_id or call_id)

    def _add(
        self,
        entry: dict[str, Any],
        name: str,
        content: EventContent,
        tool: str = "",
        call: str = "",
    ) -> None:
        self.add(
            name,
            content._replace(agent=text_of(entry, "agentId"), branch=self._branch),
            stamp=text_of(entry, "timestamp"),
            known_by=text_of(entry, "id") or call or json.dumps(entry),
            folder=self._folder,
            tool=tool,
            call_id=call,
        )


class CopilotTranscripts(LineTranscripts):
    file_names = f"<session>/{_FILE}"
    context_marks = (b'"hook.end"', b"additionalContext")
    turns = TurnLines(
        lambda line: b'"assistant.message"' in line or b'"user.message"' in line, _turn_entry
    )

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, _FOLDER)

    def files(self, folder: str) -> Sequence[str]:
        return files_below(folder, 1, self.session_of)

    def folder_of(self, path: str) -> str:
        return os.path.dirname(os.path.dirname(path))

    def session_of(self, path: str) -> str:
        folder, name = os.path.split(path)
        session = os.path.basename(folder)
        return session if name == _FILE and live.is_session(session) else ""

    def beginning(self, path: str) -> TranscriptStart:
        data = _first_data(path)
        folder = text_of(data.get("context"), "cwd")
        return TranscriptStart(usable_folder(folder), clock.parse_iso(text_of(data, "startTime")))

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return _CopilotReader(path, self.session_of(path), most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        if not text_of(entry, "type").startswith(_BY_AGENT):
            # A message contains what a hook added to it.
            texts = transcript_reader.nested_strings(entry, "ctx")
            yield from map(repeated_commands.without_reports, texts)
