"""Claude Code as a host: the adapter that the registry loads."""

import os
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from ctx.agents.claude_code import (
    payloads,
    transcript_events,
    transcript_files,
    transcript_texts,
    transcript_turns,
)
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.hosts import transcript_paths
from ctx.hosts.events import Event, Heading
from ctx.hosts.transcripts import MOST_READ, TranscriptPart, TranscriptStamp, TranscriptStart, Turn


class ClaudeTranscripts:
    file_names = "<session>.jsonl"

    def folder(self, host_folder: str) -> str:
        return transcript_files.folder(host_folder)

    def files(self, folder: str) -> Sequence[str]:
        return transcript_paths.files_below(folder, 1, transcript_files.session_of)

    def folder_of(self, path: str) -> str:
        return os.path.dirname(path)

    def stamp(self, path: str) -> TranscriptStamp:
        return transcript_paths.stamp(path)

    def session_of(self, path: str) -> str:
        return transcript_files.session_of(path)

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        return transcript_files.of_subagents(path, since_ms)

    def shows_hook(self, path: str) -> bool:
        return transcript_files.shows_hook(path)

    def beginning(self, path: str) -> TranscriptStart:
        return transcript_files.read_beginning(transcript_paths.first_bytes(path))

    def events(
        self,
        path: str,
        start: int,
        end: int | None = None,
        *,
        most: int = MOST_READ,
        deadline: float = inf,
    ) -> TranscriptPart:
        return transcript_events.read(path, start, end, most=most, deadline=deadline)

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:
        return transcript_turns.since(path, start, end, deadline)

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        return transcript_turns.last_turn(path, end, deadline)

    def read_by_agent(self, path: str, end: int | None, deadline: float) -> Iterator[str | None]:
        return transcript_texts.read_by_agent(path, end, deadline)


class ClaudeCode:
    name = payloads.NAME
    transcripts = ClaudeTranscripts()
    hooks = ClaudeHooks()

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return variables.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        return payloads.read(event_id, name, at, payload)

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        return payloads.restore(heading, payload)

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        return payloads.outline(event.payload, path)
