"""Qwen Code as a host: the adapter that the registry loads."""

import os
from collections.abc import Mapping
from typing import Any

from ctx.agent_commands.markup import unescape_tags
from ctx.agents import stored_events
from ctx.agents.qwen import tools
from ctx.agents.qwen.hooks import NAME
from ctx.agents.qwen.transcripts import QwenTranscripts
from ctx.agents.stored_events import EventContent, StoringHost, ToolReport
from ctx.errors import ContentRefused
from ctx.hosts.events import Event
from ctx.hosts.json_fields import fields_of, text_of


class Qwen(StoringHost):
    name = NAME
    transcripts = QwenTranscripts()

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return variables.get("QWEN_HOME") or os.path.join(home, ".qwen")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        if payload.get("hook_event_name", name) != name:
            raise ContentRefused(f"It is a different event than {name}.")
        place = text_of(payload, "session_id"), text_of(payload, "cwd")
        # The transcript has the second of its two ids.
        call_id = text_of(payload, "tool_call_id", "tool_use_id")
        tool = text_of(payload, "tool_name")
        heading = stored_events.heading(event_id, name, at, *place, tool, call_id)
        return stored_events.event(NAME, heading, _content(name, payload))


def _content(name: str, payload: Mapping[str, Any]) -> EventContent:
    content = EventContent(
        agent=text_of(payload, "agent_id"),
        transcript=text_of(payload, "transcript_path"),
        source=text_of(payload, "source"),
        prompt=text_of(payload, "prompt_id"),
    )
    if text_of(payload, "tool_name"):
        report = _report(payload)
        return content._replace(path=tools.path_of(report), call=tools.call_of(report))
    match name:
        case "UserPromptSubmit":
            text = text_of(payload, "submitted_prompt", "prompt")
            return content._replace(text=text, speaker="user")
        case "Stop":
            response = payload.get("response")
            return content._replace(
                text=unescape_tags(text_of(payload, "last_assistant_message")),
                speaker="agent",
                response=response if isinstance(response, str) else None,
            )
        case _:
            return content


def _report(payload: Mapping[str, Any]) -> ToolReport:
    error, response = payload.get("error"), fields_of(payload.get("tool_response"))
    return ToolReport(
        text_of(payload, "tool_name"),
        fields_of(payload.get("tool_input")),
        text_of(response, "llmContent"),
        error if isinstance(error, str) else None,
        fields_of(response.get("returnDisplay")),
    )


HOST = Qwen()
