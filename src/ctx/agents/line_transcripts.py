"""Transcripts of hosts that write one file of JSON lines per session."""

import os
from abc import ABC, abstractmethod
from math import inf

from ctx.capture.injected_text import SIGNS
from ctx.hosts import transcript_paths
from ctx.hosts.transcript_reader import TranscriptReader
from ctx.hosts.transcripts import MOST_READ, TranscriptPart, TranscriptStamp, Turn
from ctx.hosts.turn_lines import TurnLines


class LineTranscripts(ABC):
    """What `Transcripts` asks for, as far as it is the same for these hosts."""

    @property
    @abstractmethod
    def turns(self) -> TurnLines: ...

    @property
    @abstractmethod
    def context_marks(self) -> tuple[bytes, ...]:
        """What a line with the context of a hook contains."""

    @abstractmethod
    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        """What reads the events of a file."""

    def events(
        self,
        path: str,
        start: int,
        end: int | None = None,
        *,
        most: int = MOST_READ,
        deadline: float = inf,
    ) -> TranscriptPart:
        return self.reader(path, most, deadline).read(start, end)

    def folder_of(self, path: str) -> str:
        return os.path.dirname(path)

    def stamp(self, path: str) -> TranscriptStamp:
        return transcript_paths.stamp(path)

    def of_subagents(self, path: str, since_ms: int) -> list[str]:  # noqa: ARG002
        """A subagent has no file that belongs to the session."""
        return []

    def shows_hook(self, path: str) -> bool:
        try:
            lines = transcript_paths.first_bytes(path).splitlines()
        except OSError:
            return False
        given = (line for line in lines if all(mark in line for mark in self.context_marks))
        return any(sign in line for line in given for sign in SIGNS)

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:
        return self.turns.since(path, start, end, deadline)

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        return self.turns.last_turn(path, end, deadline)
