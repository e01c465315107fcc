"""Transcripts of hosts that write one file of JSON lines per session."""

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from ctx import clock, disk
from ctx.capture.injected_text import SIGNS
from ctx.hosts.host_adapter import Transcripts
from ctx.hosts.json_fields import string_in
from ctx.hosts.transcript_reader import COMMAND_BYTES, TranscriptReader, lines_that_mention
from ctx.hosts.transcripts import (
    MOST_READ,
    TranscriptPart,
    TranscriptStamp,
    TranscriptStart,
    Turn,
    usable_folder,
)
from ctx.hosts.turn_lines import TurnLines

_START = 256 * 1024
_CWD = re.compile(rb'"cwd"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,4096}")')
_TIMESTAMP = re.compile(rb'"timestamp"\s{0,4}:\s{0,4}"([0-9T:.Z+-]{10,40})"')


class LineTranscripts(Transcripts):
    """What `Transcripts` asks for, as far as it is the same for these hosts."""

    turns: TurnLines
    context_marks: tuple[bytes, ...]
    """What a line with the context of a hook contains."""

    @abstractmethod
    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        """What reads the events of a file."""

    @abstractmethod
    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:
        """The texts of a line that the agent read and did not write, if they may hold commands."""

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
        status = os.stat(path)
        return TranscriptStamp(status.st_size, status.st_mtime_ns // 1_000_000)

    def beginning(self, path: str) -> TranscriptStart:
        return start_in(first_bytes(path))

    def of_subagents(self, path: str, since_ms: int) -> list[str]:  # noqa: ARG002
        """A subagent has no file that belongs to the session."""
        return []

    def shows_hook(self, path: str) -> bool:
        try:
            lines = first_bytes(path).splitlines()
        except OSError:
            return False
        given = (line for line in lines if all(mark in line for mark in self.context_marks))
        return any(sign in line for line in given for sign in SIGNS)

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:
        return self.turns.since(path, start, end, deadline)

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        return self.turns.last_turn(path, end, deadline)

    def read_by_agent(self, path: str, end: int | None, deadline: float) -> Iterator[str | None]:
        for entry in lines_that_mention(path, COMMAND_BYTES, end, deadline):
            if entry is None:
                yield None
            else:
                yield from self.texts_for_agent(entry)


def files_below(path: str, depth: int, session_of: Callable[[str], str]) -> list[str]:
    """The transcripts in a folder and so many levels of folders below it; or a file itself."""
    if not os.path.isdir(path):
        return [path] if session_of(path) and os.path.isfile(path) else []
    level = [os.path.join(path, name) for name in disk.names(path)]
    every = list(level)
    for _ in range(depth):
        folders = filter(os.path.isdir, level)
        level = [os.path.join(folder, name) for folder in folders for name in disk.names(folder)]
        every += level
    return [each for each in every if session_of(each) and os.path.isfile(each)]


def first_bytes(path: str) -> bytes:
    """The beginning of a transcript, which says what it is about."""
    return disk.read_plain(path, _START)[:_START]


def start_in(start: bytes) -> TranscriptStart:
    """What the first bytes of a transcript say, where its lines have these fields."""
    cwd, time = _CWD.search(start), _TIMESTAMP.search(start)
    folder = usable_folder(string_in(cwd[1])) if cwd else ""
    return TranscriptStart(folder, clock.parse_iso(time[1].decode()) if time else None)
