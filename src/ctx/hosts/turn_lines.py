"""The messages of an agent, read from a transcript with one JSON object per line.

The file may be large and the last messages matter most, so it is read backwards. What a line means
is up to the host. Nothing here fails: the result contains what could be read, and a message about
the rest.
"""

import json
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import takewhile
from typing import Any, NamedTuple

from ctx import clock
from ctx.hosts.transcript_reader import LONGEST_LINE, reason
from ctx.hosts.transcripts import Message, Turn

FURTHEST = 64 * 1024 * 1024
"""The maximum number of bytes to read."""

_FIRST_CHUNK = 256 * 1024
_LARGEST_CHUNK = 4 * 1024 * 1024


class TurnEntry(NamedTuple):
    """A relevant line: a prompt, or a part of a message."""

    message_id: str | None
    """None for a prompt."""
    name: str
    """The unique id of the line. A later line with the same one replaces it."""
    texts: tuple[str, ...] = ()


class TurnLines(NamedTuple):
    """What the lines of a host's transcripts mean."""

    may_matter: Callable[[bytes], bool]
    """Whether a line may be relevant: searching it is faster than parsing it."""
    read: Callable[[Any, int], TurnEntry | None]
    """The content of a parsed line at a position; None if it is not relevant."""
    errors: Callable[[Any], Sequence[str] | None] = lambda _: None
    """What the host wrote itself because the model failed; None if the line is no such report."""

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:
        """The messages between two positions of the file, None for its end.

        A line belongs to the position of its end, so an incomplete line is read next time. If the
        time is up, the result contains the latest messages.
        """
        reading = _TranscriptReader(self, path, start, end, deadline)
        with closing(reading.entries()) as entries:
            return reading.turn(entries)

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        """The messages after the last prompt before a position of the file, None for its end."""
        reading = _TranscriptReader(self, path, 0, end, deadline)
        with closing(reading.entries()) as entries:
            return reading.turn(takewhile(_is_said, entries))


class _Line:
    """A line, read from its end."""

    def __init__(self, *, is_ended: bool) -> None:
        self.is_ended = is_ended
        """Whether the line end is part of what is read."""
        self.length = 0
        self._pieces: list[bytes] = []

    @property
    def is_too_long(self) -> bool:
        return self.length > LONGEST_LINE

    @property
    def data(self) -> bytes:
        return b"".join(reversed(self._pieces))

    def put_before(self, piece: bytes) -> None:
        self.length += len(piece)
        if self.is_too_long:
            self._pieces = []
        else:
            self._pieces.append(piece)


class _TranscriptReader:
    """Reads a file backwards, once."""

    def __init__(
        self, meaning: TurnLines, path: str, start: int, end: int | None, deadline: float
    ) -> None:
        self._meaning = meaning
        self._path = path
        self._start = max(start, 0)
        self._end = end
        self._deadline = deadline
        self._problem = ""
        self._is_cut = False
        self._errors: list[str] = []

    def turn(self, entries: Iterable[TurnEntry]) -> Turn:
        newest_first = list(entries)
        if self._is_cut and newest_first:
            # The commands of a message are identified by their positions in it. If its beginning
            # may be missing, the positions are unknown.
            first = newest_first[-1].message_id
            if first is not None:
                newest_first = [entry for entry in newest_first if entry.message_id != first]
        return Turn(_messages(reversed(newest_first)), self._problem, tuple(self._errors))

    def entries(self) -> Generator[TurnEntry, None, None]:
        """The relevant lines, newest first."""
        for offset, line in self._lines():
            if line.is_too_long:
                self._note(f"A line of more than {LONGEST_LINE >> 20} MB was skipped.")
                continue
            data = line.data
            if line.is_ended and not self._meaning.may_matter(data):
                continue
            try:
                entry = json.loads(data.decode())
            except (ValueError, RecursionError):
                if line.is_ended:
                    self._note("A line of the transcript is damaged.")
                else:
                    self._note("The last line of the transcript is half-written.")
                continue
            errors = self._meaning.errors(entry)
            if errors is not None:
                self._errors += errors
                continue
            parsed = self._meaning.read(entry, offset)
            if parsed is not None:
                yield parsed

    def _lines(self) -> Iterator[tuple[int, _Line]]:
        """The lines that are not empty, with their positions, last first."""
        name = self._path.encode("utf-8", "backslashreplace").decode()
        try:
            # Opening a pipe without a writer would block.
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except FileNotFoundError:
            self._note_cut(f"There is no transcript {name}.")
            return
        except (OSError, ValueError) as error:
            self._note_cut(f"The transcript {name} cannot be opened: {reason(error)}.")
            return
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                for offset, line in self._lines_of(fd):
                    if line.length:
                        yield offset, line
            else:
                self._note_cut(f"The transcript {name} is not a plain file.")
        except OSError as error:
            self._note_cut(f"The transcript {name} cannot be read: {reason(error)}.")
        finally:
            os.close(fd)

    def _lines_of(self, fd: int) -> Iterator[tuple[int, _Line]]:
        start, size = self._start, os.fstat(fd).st_size
        if start > size:
            self._note_cut("The transcript is shorter than it was.")
            return
        end = size if self._end is None else min(self._end, size)
        position, chunk = end, _FIRST_CHUNK
        line = _Line(is_ended=False)
        # Before `start`, only the beginning of the line at `start` is searched.
        while position > start or (position > 0 and line.length):
            left = FURTHEST - (end - position)
            if problem := self._stop_reason(left):
                self._note_cut(problem)
                return
            wanted = min(chunk, left, position - start if position > start else position)
            data = os.pread(fd, wanted, position - wanted)
            if len(data) < wanted:
                self._note_cut("The transcript became shorter while it was read.")
                return
            first, *others = data.split(b"\n")
            at = position
            for piece in reversed(others):
                line.put_before(piece)
                at -= len(piece)
                yield at, line
                if at <= start:
                    return
                line = _Line(is_ended=True)
                at -= 1
            line.put_before(first)
            position -= wanted
            chunk = min(2 * chunk, _LARGEST_CHUNK)
        yield position, line

    def _stop_reason(self, left: int) -> str:
        """Why reading stops, given the bytes left to the limit; empty if it continues."""
        if clock.monotonic() >= self._deadline:
            return "Reading the transcript took too long."
        if not left:
            return f"Only the last {FURTHEST >> 20} MB of the transcript were read."
        return ""

    def _note_cut(self, problem: str) -> None:
        """Note that something is missing before the text that was read."""
        self._is_cut = True
        self._problem = problem

    def _note(self, problem: str) -> None:
        self._problem = self._problem or problem


def _is_said(entry: TurnEntry) -> bool:
    return entry.message_id is not None


def _messages(entries: Iterable[TurnEntry]) -> tuple[Message, ...]:
    """The messages that the entries form, in order."""
    messages: list[tuple[str, dict[str, tuple[str, ...]]]] = []
    places: dict[str, dict[str, tuple[str, ...]]] = {}
    by_name: dict[str, dict[str, tuple[str, ...]]] = {}
    for entry in entries:
        if entry.message_id is None:
            # A message does not continue after a prompt, whatever its id is.
            places = {}
            continue
        parts = by_name.get(entry.name) or places.get(entry.message_id)
        if parts is None:
            parts = {}
            messages.append((entry.message_id, parts))
            places[entry.message_id] = parts
        parts[entry.name] = entry.texts
        by_name[entry.name] = parts
    joined = (
        (name, [text for texts in parts.values() for text in texts]) for name, parts in messages
    )
    return tuple(Message(name, "\n\n".join(texts)) for name, texts in joined if texts)
