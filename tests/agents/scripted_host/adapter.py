"""The events of the scripted host, from its payloads and from the lines of its transcripts, which
have the same fields."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ctx import clock
from ctx.agents import stored_events
from ctx.agents.line_transcripts import LineTranscripts, files_below
from ctx.agents.stored_events import EventContent, StoringHost, file_write
from ctx.hosts.events import Event
from ctx.hosts.json_fields import text_of
from ctx.hosts.tool_calls import Call, CommandCall, Outcome, UnknownTool
from ctx.hosts.transcript_reader import TranscriptReader, digest, event_id, nested_strings
from ctx.hosts.turn_lines import TurnEntry, TurnLines
from tests.agents.scripted_host.hooks import NAME


def _call(payload: Mapping[str, Any]) -> Call | None:
    match payload.get("did"):
        case "shell":
            code = payload.get("code", 0)
            return CommandCall(payload["what"], Outcome(code == 0, code, payload.get("came", "")))
        case "edit":
            return file_write(payload.get("old"), payload.get("new", ""), is_whole=True)
        case None:
            return None
        case _:
            return UnknownTool()


def _turn_entry(entry: dict[str, Any], offset: int) -> TurnEntry:
    is_agent = entry.get("by") == "agent"
    return TurnEntry(str(offset) if is_agent else None, str(offset), (text_of(entry, "words"),))


class _LogReader(TranscriptReader):
    matters = re.compile(b'"chat"')

    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:  # noqa: ARG002
        spoken = "UserPromptSubmit" if entry.get("by") == "user" else "AssistantMessage"
        name = "PostToolUse" if "did" in entry else spoken
        made = event_id(entry["ms"], name, digest(line))
        self.events.append(HOST.read(made, name, clock.iso(entry["ms"]), entry))


class ScriptedTranscripts(LineTranscripts):
    file_names = "<chat>.log"
    turns = TurnLines(lambda line: b'"words"' in line, _turn_entry)
    context_marks = (b"context",)

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, "logs")

    def files(self, folder: str) -> list[str]:
        return files_below(folder, 0, self.session_of)

    def session_of(self, path: str) -> str:
        name, suffix = os.path.splitext(os.path.basename(path))
        return name if suffix == ".log" else ""

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return _LogReader(path, most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        if entry.get("by") != "agent":
            yield from nested_strings(entry, "ctx")


class Scripted(StoringHost):
    name = NAME
    transcripts = ScriptedTranscripts()

    def folder(self, variables: Mapping[str, str], home: str) -> str:  # noqa: ARG002
        return os.path.join(home, "scripted")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        columns = (text_of(payload, field) for field in ("chat", "dir", "did", "ref"))
        content = EventContent(
            payload.get("words"),
            "user" if payload.get("by") == "user" else "agent" if "words" in payload else "",
            path=text_of(payload, "file"),
            call=_call(payload),
            transcript=text_of(payload, "log"),
            response=payload.get("response"),
        )
        return stored_events.event(
            NAME, stored_events.heading(event_id, name, at, *columns), content
        )


HOST = Scripted()
