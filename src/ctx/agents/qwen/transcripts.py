"""The transcripts of Qwen Code: `projects/<folder>/chats/<session>.jsonl`.

Every line has `uuid`, `sessionId`, `timestamp`, `cwd`, `gitBranch` and `type`:

    user          message.parts: texts, also those of hooks; systemPayload.displayText, as typed
    assistant     message.parts: texts and functionCall {id, name, args}
    tool_result   message.parts: functionResponse {id, response}; toolCallResult.resultDisplay
    system        nothing that matters here
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx.agent_commands.markup import unescape_tags
from ctx.agents.line_transcripts import LineTranscripts, files_below
from ctx.agents.qwen import tools
from ctx.agents.qwen.hooks import NAME
from ctx.agents.stored_events import EventContent, StoringReader, ToolReport, WaitingCall
from ctx.capture import repeated_commands, session_state
from ctx.capture.steps import ASSISTANT_MESSAGE
from ctx.hook_files import live
from ctx.hosts import transcript_reader
from ctx.hosts.json_fields import fields_of, text_of
from ctx.hosts.transcript_reader import TranscriptReader
from ctx.hosts.transcripts import storable
from ctx.hosts.turn_lines import TurnEntry, TurnLines

_SUFFIX = ".jsonl"
_CHATS = "chats"
_MATTERS = re.compile(rb'"type"\s{0,4}:\s{0,4}"(?:user|assistant|tool_result)"')
# Parts of a message that the client or a hook added.
_ADDED = ("<qwen:", "<system-reminder>")


def _without_arguments(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get("message"), fields_of(entry.get("toolCallResult")).get("resultDisplay")]


def _parts(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    parts = fields_of(entry.get("message")).get("parts")
    return [fields_of(part) for part in parts] if isinstance(parts, list) else []


def _texts(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts of a message, without what the model thought."""
    texts = (text_of(part, "text") for part in _parts(entry) if not part.get("thought"))
    return tuple(storable(text) for text in texts if text.strip())


def _answer(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(unescape_tags, _texts(entry)))


def _prompt(entry: Mapping[str, Any]) -> str:
    """What a person typed; empty if nobody did."""
    if entry.get("provenance", "real_user") != "real_user":
        return ""
    typed = text_of(entry.get("systemPayload"), "displayText")
    texts = [text for text in _texts(entry) if not text.lstrip().startswith(_ADDED)]
    return storable(typed or "\n\n".join(texts)).strip()


def _turn_entry(entry: Any, offset: int) -> TurnEntry | None:
    if not isinstance(entry, dict) or entry.get("agentId"):
        return None
    name = text_of(entry, "uuid") or str(offset)
    if entry.get("type") == "assistant":
        return TurnEntry(name, name, _answer(entry))
    is_prompt = entry.get("type") == "user" and bool(_prompt(entry))
    return TurnEntry(None, name) if is_prompt else None


class _QwenReader(StoringReader):
    host = NAME
    matters = _MATTERS

    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:  # noqa: ARG002
        if not self.session:
            return
        match entry.get("type"):
            case "user" if (prompt := _prompt(entry)) and not entry.get("agentId"):
                # The client waits for all results before the next prompt.
                self.calls.clear()
                self._add(entry, session_state.PROMPT, EventContent(prompt, "user"))
            case "assistant":
                self._take_answer(offset, entry)
            case "tool_result":
                self._take_results(entry)

    def _take_answer(self, offset: int, entry: dict[str, Any]) -> None:
        if text := "\n\n".join(_answer(entry)):
            self._add(entry, ASSISTANT_MESSAGE, EventContent(text, "agent"))
        for part in _parts(entry):
            call = fields_of(part.get("functionCall"))
            if call_id := text_of(call, "id"):
                arguments = fields_of(call.get("args"))
                self.calls[call_id] = WaitingCall(offset, text_of(call, "name"), arguments)

    def _take_results(self, entry: dict[str, Any]) -> None:
        result = fields_of(entry.get("toolCallResult"))
        for part in _parts(entry):
            response = fields_of(part.get("functionResponse"))
            call_id = text_of(response, "id")
            call = self.calls.pop(call_id, None)
            if call is None:
                continue
            answer = fields_of(response.get("response"))
            failed = "error" in answer
            report = ToolReport(
                call.tool,
                call.arguments,
                text_of(answer, "output"),
                text_of(answer, "error") if failed else None,
                fields_of(result.get("resultDisplay") if result.get("callId") == call_id else None),
            )
            content = EventContent(path=tools.path_of(report), call=tools.call_of(report))
            name = "PostToolUseFailure" if failed else "PostToolUse"
            self._add(entry, name, content, call.tool, call_id)

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
            content._replace(
                agent=text_of(entry, "agentId"),
                branch=text_of(entry, "gitBranch"),
                version=text_of(entry, "version"),
            ),
            stamp=text_of(entry, "timestamp"),
            known_by=text_of(entry, "uuid") + call,
            folder=text_of(entry, "cwd"),
            tool=tool,
            call_id=call,
        )


class QwenTranscripts(LineTranscripts):
    file_names = f"<session>{_SUFFIX}"
    context_marks = (b"hookContext",)
    turns = TurnLines(lambda line: b'"assistant"' in line or b'"user"' in line, _turn_entry)

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, "projects")

    def files(self, folder: str) -> Sequence[str]:
        return files_below(folder, 2, self.session_of)

    def session_of(self, path: str) -> str:
        folder, name = os.path.split(path)
        session = name.removesuffix(_SUFFIX)
        is_chat = os.path.basename(folder) == _CHATS and session != name
        return session if is_chat and live.is_session(session) else ""

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return _QwenReader(path, self.session_of(path), most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        if entry.get("type") in ("user", "tool_result"):
            # Both contain what hooks added.
            texts = transcript_reader.nested_strings(_without_arguments(entry), "ctx")
            yield from map(repeated_commands.without_reports, texts)
