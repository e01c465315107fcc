"""The events of a session, the messages of its agent, and what it read, from a chat.

{"id": …, "type": "user", "content": [{"text": "Do it"}], …}                  UserPromptSubmit
{"id": …, "type": "gemini", "content": "I run a command.", …}                 AssistantMessage
{"id": …, "type": "gemini", "content": …, "toolCalls": […], …}                the same again,
                                                                              and PostToolUse
{"id": …, "type": "user", "content": [{"functionResponse": …}], …}            no prompt
{"$set": {"lastUpdated": …}}
"""

import re
from collections.abc import Iterator
from typing import Any

from ctx import clock
from ctx.agents.gemini import chat_files, payloads
from ctx.agents.gemini.hook_context import contexts_in, without_context
from ctx.agents.gemini.tools import ToolResult
from ctx.capture import repeated_commands, session_state
from ctx.capture.steps import ASSISTANT_MESSAGE
from ctx.hosts.events import Heading
from ctx.hosts.transcript_reader import (
    COMMAND_BYTES,
    TranscriptReader,
    digest,
    event_id,
    lines_that_mention,
    message_texts,
    nested_strings,
    text_field,
)
from ctx.hosts.turn_lines import TurnEntry, TurnLines

_MATTERS = re.compile(rb'"type"\s{0,4}:\s{0,4}"(?:user|gemini)"')
_ENDED = ("success", "error")


class ChatReader(TranscriptReader):
    matters = _MATTERS

    def __init__(self, path: str, most: int, deadline: float) -> None:
        super().__init__(path, most, deadline)
        self._session = chat_files.session_of(path)
        self._folder = chat_files.project_folder(path)
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
        return TurnEntry(name, name, message_texts(entry))
    is_prompt = entry.get("type") == "user" and _prompt(entry)
    return TurnEntry(None, name) if is_prompt else None


TURNS = TurnLines(_may_matter, _turn_entry)


def read_by_agent(path: str, end: int | None, deadline: float) -> Iterator[str | None]:
    """The texts before a position of the file that the agent read and did not write."""
    for entry in lines_that_mention(path, COMMAND_BYTES, end, deadline):
        if entry is None:
            yield None
        elif entry.get("type") != "gemini":
            for text in nested_strings(entry, "ctx"):
                yield without_context(text)
                yield from map(repeated_commands.without_reports, contexts_in(text))
