"""GitHub Copilot CLI as a host: the adapter that the registry loads."""

import os
from collections.abc import Mapping
from typing import Any

from ctx.agents import stored_events
from ctx.agents.copilot import tools
from ctx.agents.copilot.hooks import NAME, SOURCES
from ctx.agents.copilot.transcripts import CopilotTranscripts
from ctx.agents.stored_events import EventContent, StoringHost, ToolReport
from ctx.hosts.events import Event
from ctx.hosts.json_fields import fields_of, text_of


class Copilot(StoringHost):
    name = NAME
    transcripts = CopilotTranscripts()

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return variables.get("COPILOT_HOME") or os.path.join(home, ".copilot")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        report = _report(payload)
        tool = report.tool if report else ""
        stamp, arguments = payload.get("timestamp"), payload.get("toolArgs")
        call_id = tools.call_id(stamp, tool, arguments) if report else ""
        session = text_of(payload, "sessionId")
        if text_of(payload, "agentId"):
            # A subagent is reported as a session of its own.
            session = text_of(payload, "parentAgentId") or session
        place = session, text_of(payload, "cwd")
        heading = stored_events.heading(event_id, name, at, *place, tool, call_id)
        return stored_events.event(NAME, heading, _content(name, payload, report))


def _content(name: str, payload: Mapping[str, Any], report: ToolReport | None) -> EventContent:
    source = text_of(payload, "source")
    content = EventContent(
        agent=text_of(payload, "agentId"),
        transcript=text_of(payload, "transcriptPath"),
        source=SOURCES.get(source, source),
    )
    if report is not None:
        return content._replace(path=tools.path_of(report), call=tools.call_of(report))
    if name == "UserPromptSubmit":
        return content._replace(text=text_of(payload, "prompt"), speaker="user")
    if name == "Stop" and isinstance(response := payload.get("response"), str):
        return content._replace(response=response)
    return content


def _report(payload: Mapping[str, Any]) -> ToolReport | None:
    tool = text_of(payload, "toolName")
    if not tool:
        return None
    error, output = payload.get("error"), ""
    if isinstance(error, Mapping):
        error = text_of(error, "message")
    result = payload.get("toolResult")
    output = result if isinstance(result, str) else text_of(fields_of(result), "textResultForLlm")
    arguments = tools.arguments_of(payload.get("toolArgs"))
    return ToolReport(tool, arguments, output, error if isinstance(error, str) else None)


HOST = Copilot()
