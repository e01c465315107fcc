"""Claude Code as a host: the adapter that the registry loads."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx.agents.claude_code import payloads, transcripts
from ctx.agents.claude_code.transcript_events import ClaudeReader
from ctx.agents.line_transcripts import LineTranscripts, files_below
from ctx.hosts.transcript_reader import TranscriptReader
from ctx.hosts.transcripts import TranscriptStart


class ClaudeTranscripts(LineTranscripts):
    file_names = "<session>.jsonl"
    turns = transcripts.LINES

    def folder(self, host_folder: str) -> str:
        """It has one subfolder per project."""
        return os.path.join(host_folder, "projects")

    def files(self, folder: str) -> Sequence[str]:
        return files_below(folder, 1, transcripts.session_of)

    def session_of(self, path: str) -> str:
        return transcripts.session_of(path)

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        return transcripts.of_subagents(path, since_ms)

    def shows_hook(self, path: str) -> bool:
        return transcripts.shows_hook(path)

    def beginning(self, path: str) -> TranscriptStart:
        return transcripts.beginning(path)

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return ClaudeReader(path, most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        return transcripts.texts_for_agent(entry)


class ClaudeCode:
    name = payloads.NAME
    transcripts = ClaudeTranscripts()
    read = staticmethod(payloads.read)
    restore = staticmethod(payloads.restore)
    outline = staticmethod(payloads.outline)

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return variables.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")


HOST = ClaudeCode()
