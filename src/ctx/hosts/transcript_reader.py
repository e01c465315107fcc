"""Reads a transcript with one JSON object per line forward, from where the last reading ended.

Only complete lines are read. What a line means is up to the host, which adds the events: the same
line must always give the same event with the same id, so that reading it twice is harmless. Nothing
here fails: the result contains what could be read, and a message about the rest.
"""

import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any

from ctx import clock
from ctx.hosts.events import Event
from ctx.hosts.json_fields import parsed
from ctx.hosts.transcripts import TranscriptPart, storable

LONGEST_LINE = 16 * 1024 * 1024
"""Longer lines contain images or tool output, not messages."""
CHUNK = 1024 * 1024
"""Bytes that are read at a time."""

_NEAR = 128 * 1024

COMMAND_BYTES = (b"ctx:", b"CTX:", b"Ctx:")
"""One of these is in every line that may contain a command for ctx."""

_MOST_DEPTH = 20
_LATEST_MS = 9_999_999_999_999


class TranscriptReader(ABC):
    """Reads a file once. A host says which lines matter, and what they mean."""

    def __init__(self, path: str, most: int, deadline: float) -> None:
        self.path = path
        self.events: list[Event] = []
        self.problem = ""
        self.began = (-1, 0)
        """The open file, and where the reading begins."""
        self._position = 0
        self._most = most
        self._deadline = deadline
        self._at_ms = 0

    @property
    @abstractmethod
    def matters(self) -> re.Pattern[bytes]:
        """What every line that matters contains: most do not."""

    @abstractmethod
    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:
        """Handle a line, which begins at this position."""

    def waiting(self, behind: int) -> Iterable[int]:  # noqa: ARG002 - for hosts that need it
        """The positions of lines that wait for later ones; `behind` is where the reading ended."""
        return ()

    def read(self, start: int, end: int | None) -> TranscriptPart:
        """The events between two positions of the file; None is its end.

        If the file was replaced, it is read from its beginning. When the time is up or the limit is
        reached, the next call continues.
        """
        try:
            # Opening a pipe without a writer would block.
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError) as error:
            self.note(f"The transcript cannot be opened: {reason(error)}.")
            return TranscriptPart((), start, self.problem)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                self.note("The transcript is not a plain file.")
                return TranscriptPart((), start, self.problem)
            self._at_ms = clock.possible_ms(status.st_mtime_ns // 1_000_000)
            self._position = start if _is_line_start(fd, start, status.st_size) else 0
            limit = status.st_size if end is None else min(end, status.st_size)
            self._read(fd, self._position, limit)
        except OSError as error:
            self.note(f"The transcript cannot be read: {reason(error)}.")
        finally:
            os.close(fd)
        return TranscriptPart(tuple(self.events), self._position, self.problem)

    def _read(self, fd: int, start: int, limit: int) -> None:
        behind, is_cut, self.began = start, False, (fd, start)
        for offset, line, behind in lines(fd, start, limit):
            if line is None:
                self.note(f"A line of more than {LONGEST_LINE >> 20} MB was skipped.")
            elif self.matters.search(line):
                self._take_line(offset, line)
            is_cut = behind - start >= self._most or clock.monotonic() >= self._deadline
            if is_cut:
                break
        waiting = min(self.waiting(behind), default=behind)
        # Do not wait for the result of a call if it is further away than one reading.
        self._position = behind if is_cut and waiting == start else waiting

    def _take_line(self, offset: int, line: bytes) -> None:
        try:
            entry = json.loads(line, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            self.note("A line of the transcript is damaged.")
            return
        if isinstance(entry, dict):
            self.take(offset, entry, line)

    def time_of(self, stamp: str) -> int:
        """A time stamp in milliseconds; where it is none, the last one, or the file's."""
        at_ms = clock.parse_iso(stamp)
        if at_ms is not None and 0 < at_ms <= _LATEST_MS:
            self._at_ms = at_ms
        return self._at_ms

    def note(self, problem: str) -> None:
        self.problem = self.problem or problem


def event_id(at_ms: int, name: str, known_by: str) -> str:
    """The id of an event of a transcript: always the same for the same line."""
    return f"{at_ms:013d}-t-{digest(f'{name} {known_by}'.encode())}"


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=4).hexdigest()


def text_field(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return storable(value) if isinstance(value, str) else ""


def message_texts(entry: dict[str, Any]) -> tuple[str, ...]:
    """The texts of a message, whose content is a text or a list of blocks."""
    content = entry.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    found = (block.get("text") for block in blocks if isinstance(block, dict))
    return tuple(storable(text) for text in found if isinstance(text, str) and text.strip())


def lines_that_mention(
    path: str, marks: Iterable[bytes], end: int | None, deadline: float
) -> Iterator[dict[str, Any] | None]:
    """The lines before a position of the file, None for its end, that contain one of these marks.

    None in their place: a part could not be searched.
    """
    marks = tuple(marks)
    try:
        with _opened(path) as (fd, size):
            for _, line, _ in lines(fd, 0, size if end is None else min(end, size)):
                if clock.monotonic() >= deadline:
                    yield None
                    return
                if line is None:
                    yield None
                elif any(mark in line for mark in marks):
                    entry = parsed(line)
                    if isinstance(entry, dict):
                        yield entry
    except (OSError, ValueError):
        yield None


@contextmanager
def _opened(path: str) -> Iterator[tuple[int, int]]:
    """A plain file and its size. Opening a pipe without a writer would block."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "it is not a plain file")
        yield fd, status.st_size
    finally:
        os.close(fd)


def nested_strings(value: Any, word: str, depth: int = _MOST_DEPTH) -> Iterator[str]:
    """The strings anywhere in a value that contain a word, in upper or lower case."""
    if isinstance(value, str):
        if word in value.casefold():
            yield value
    elif depth and isinstance(value, dict | list):
        for nested in value.values() if isinstance(value, dict) else value:
            yield from nested_strings(nested, word, depth - 1)


def _is_line_start(fd: int, start: int, size: int) -> bool:
    """Whether a line begins at this position. If not, the file was rewritten."""
    return start == 0 or (start <= size and os.pread(fd, 1, start - 1) in (b"\n", b"}"))


def lines(fd: int, start: int, limit: int) -> Iterator[tuple[int, bytes | None, int]]:
    """Complete lines: where each begins, its content, and where it ends.

    A line that is too long is skipped. The last one may have no line end yet, and is complete if it
    can be parsed.
    """
    offset, pieces, length = start, [b""], 0
    position = start
    while position < limit:
        data = os.pread(fd, min(CHUNK, limit - position), position)
        if not data:
            return
        position += len(data)
        *ended, rest = data.split(b"\n")
        for piece in ended:
            length += len(piece)
            pieces.append(piece)
            line = b"".join(pieces) if length <= LONGEST_LINE else None
            yield offset, line, offset + length + 1
            offset, pieces, length = offset + length + 1, [], 0
        length += len(rest)
        pieces = [*pieces, rest] if length <= LONGEST_LINE else []
    if pieces and _is_whole(last := b"".join(pieces)):
        yield offset, last, offset + length


def _is_whole(line: bytes) -> bool:
    """Whether a line can be all that was to be written: it reads as an object."""
    return line.endswith(b"}") and isinstance(parsed(line), dict)


def entry_before(fd: int, start: int, matters: re.Pattern[bytes]) -> dict[str, Any]:
    """The last line that matters and has a time before a position; empty if none is near."""
    first = max(0, start - _NEAR)
    for line in reversed(os.pread(fd, start - first, first).split(b"\n")):
        if matters.search(line):
            with suppress(ValueError, RecursionError):
                payload = json.loads(line)
                if isinstance(payload, dict) and isinstance(payload.get("timestamp"), str):
                    return payload
    return {}


def reason(error: OSError | ValueError) -> str:
    """Why a transcript cannot be read."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
