"""Codex as a host: the adapter that the registry loads."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx.agents.codex import payloads, rollout_events, rollout_files
from ctx.agents.codex.hooks import CodexHooks
from ctx.agents.codex.rollout_events import TURNS, RolloutReader
from ctx.agents.line_transcripts import LineTranscripts
from ctx.hosts.events import Event, Heading
from ctx.hosts.transcripts import TranscriptStart


class CodexTranscripts(LineTranscripts):
    file_names = "rollout-<time>-<session>.jsonl"
    turns = TURNS
    context_marks = (rollout_files.CONTEXT_OF_HOOK,)

    def folder(self, host_folder: str) -> str:
        return rollout_files.folder(host_folder)

    def files(self, folder: str) -> Sequence[str]:
        return rollout_files.files(folder)

    def folder_of(self, path: str) -> str:
        return rollout_files.folder_of(path)

    def session_of(self, path: str) -> str:
        return rollout_files.session_of(path)

    def beginning(self, path: str) -> TranscriptStart:
        return rollout_files.beginning(path)

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        return rollout_files.of_subagents(path, since_ms)

    def reader(self, path: str, most: int, deadline: float) -> RolloutReader:
        return RolloutReader(path, most, deadline)

    def read_by_agent(self, path: str, end: int | None, deadline: float) -> Iterator[str | None]:
        return rollout_events.read_by_agent(path, end, deadline)


class Codex:
    name = payloads.NAME
    transcripts = CodexTranscripts()
    hooks = CodexHooks()

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return variables.get("CODEX_HOME") or os.path.join(home, ".codex")

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        return payloads.read(event_id, name, at, payload)

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        return payloads.restore(heading, payload)

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        return payloads.outline(event.payload, path)
