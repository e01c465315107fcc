"""OpenCode as a host: the adapter that the registry loads."""

import os
from collections.abc import Mapping
from typing import Any

from ctx.agents import stored_events
from ctx.agents.opencode import storage, tools
from ctx.agents.opencode.hooks import NAME
from ctx.agents.opencode.transcripts import OpenCodeTranscripts, typed_text
from ctx.agents.stored_events import EventContent, StoringHost, ToolReport
from ctx.hosts.events import Event
from ctx.hosts.json_fields import fields_of, text_of


class OpenCode(StoringHost):
    name = NAME
    transcripts = OpenCodeTranscripts()

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        data = variables.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
        return os.path.join(data, "opencode")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        session, tool = text_of(payload, "session"), text_of(payload, "tool")
        main = _main_session(text_of(payload, "database"), session)
        if main != session:
            # The plugin knows only the subagents that were started in its process.
            payload = {**payload, "agent": text_of(payload, "agent") or session, "session": main}
            session = main
        columns = session, text_of(payload, "folder"), tool, text_of(payload, "call")
        heading = stored_events.heading(event_id, name, at, *columns)
        return stored_events.event(NAME, heading, _content(name, payload))


def _main_session(database: str, session: str) -> str:
    """The session that a subagent works for, as the database has it; else the session itself."""
    if (known := _main_sessions.get((database, session))) is not None:
        return known
    path, name = storage.split_name(storage.name_of(database, session))
    try:
        with storage.opened(path) as connection:
            row = storage.find(connection, name)
            main = storage.main_of(connection, row).id if row else ""
    except OSError:
        main = ""
    if main:
        if len(_main_sessions) >= _MOST_KNOWN:
            _main_sessions.clear()
        _main_sessions[database, session] = main
    return main or session


_MOST_KNOWN = 10_000
_main_sessions: dict[tuple[str, str], str] = {}
"""A session never changes the one that it works for."""


def _content(name: str, payload: Mapping[str, Any]) -> EventContent:
    session, database = text_of(payload, "session"), text_of(payload, "database")
    transcript = storage.name_of(database, session)
    content = EventContent(
        agent=text_of(payload, "agent"),
        transcript=transcript if storage.split_name(transcript)[0] else "",
        source=text_of(payload, "source"),
    )
    if report := _report(payload):
        return content._replace(path=tools.path_of(report), call=tools.call_of(report))
    match name:
        case "UserPromptSubmit":
            return content._replace(text=typed_text(text_of(payload, "prompt")), speaker="user")
        case "Stop":
            response = payload.get("response")
            return content._replace(
                text=_last_text(payload.get("messages")),
                speaker="agent",
                response=response if isinstance(response, str) else None,
            )
        case _:
            return content


def _report(payload: Mapping[str, Any]) -> ToolReport | None:
    tool = text_of(payload, "tool")
    if not tool:
        return None
    error = payload.get("error")
    return ToolReport(
        tool,
        fields_of(payload.get("args")),
        text_of(payload, "output"),
        error if isinstance(error, str) else None,
        fields_of(payload.get("metadata")),
    )


def _last_text(messages: object) -> str | None:
    """The last message of a turn."""
    texts = [text_of(each, "text") for each in messages] if isinstance(messages, list) else []
    return texts[-1] if texts else None


HOST = OpenCode()
