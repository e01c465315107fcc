"""Gemini CLI as a host: the adapter that the registry loads."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx.agents.gemini import chat_events, chat_files, payloads
from ctx.agents.gemini.chat_events import TURNS, ChatReader
from ctx.agents.gemini.hooks import GeminiHooks
from ctx.agents.line_transcripts import LineTranscripts
from ctx.hosts.events import Event, Heading
from ctx.hosts.transcripts import TranscriptStart


class GeminiTranscripts(LineTranscripts):
    # What subagents do is in the chat of the session.
    file_names = "session-<time>-<session>.jsonl"
    turns = TURNS
    context_marks = (chat_files.CONTEXT_OF_HOOK,)

    def folder(self, host_folder: str) -> str:
        return chat_files.folder(host_folder)

    def files(self, folder: str) -> Sequence[str]:
        return chat_files.files(folder)

    def folder_of(self, path: str) -> str:
        return chat_files.folder_of(path)

    def session_of(self, path: str) -> str:
        return chat_files.session_of(path)

    def beginning(self, path: str) -> TranscriptStart:
        return chat_files.beginning(path)

    def reader(self, path: str, most: int, deadline: float) -> ChatReader:
        return ChatReader(path, most, deadline)

    def read_by_agent(self, path: str, end: int | None, deadline: float) -> Iterator[str | None]:
        return chat_events.read_by_agent(path, end, deadline)


class Gemini:
    name = payloads.NAME
    transcripts = GeminiTranscripts()
    hooks = GeminiHooks()

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return os.path.join(variables.get("GEMINI_CLI_HOME") or home, ".gemini")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        return payloads.read(event_id, name, at, payload)

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        return payloads.restore(heading, payload)

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        return payloads.outline(event.payload, path)
