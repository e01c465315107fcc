"""Reads the output of a command and keeps a bounded part of it.

Output may be endless or binary. It is read as a stream; the beginning, the end and the first lines
with an error are kept.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

_LONGEST_LINE = 2_000
_LONGEST_UNCUT = 256 * 1024
_MOST_BYTES = 1024 * 1024
_MOST_UNCUT = 100_000
_MOST_TELLING = 20

# Colours and cursor movements are removed.
_STEERING = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f]"
)
_ERROR_LINE = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|panicked|panic|exception|traceback|undefined"
    r"|unresolved|assert\w*|segmentation fault|not found|cannot|denied|fail)\b",
    re.IGNORECASE,
)
_HINTS = (
    *(b"error", b"fail", b"fatal", b"panic", b"exception", b"traceback", b"undefined"),
    *(b"unresolved", b"assert", b"segmentation", b"not found", b"cannot", b"denied"),
)
_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_INSIDE_KEY = re.compile(rb"[\s>|#*+-]*(?:[A-Za-z0-9+/=]{16,}|[A-Za-z-]{4,12}: [^\n]{0,100})?\s*")


class CommandOutput(NamedTuple):
    """The kept part of the output of a command."""

    head: tuple[str, ...]
    tail: tuple[str, ...]
    telling: tuple[str, ...]
    """The first lines with an error, wherever they are."""
    lines: int
    uncut: tuple[str, ...]
    """More and longer lines, for parsing diagnostics; they are not stored."""

    @property
    def cut(self) -> int:
        return self.lines - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        gap = [f"… {self.cut:,} lines left out …"] if self.cut else []
        return "\n".join([*self.head, *gap, *self.tail])

    def with_lines(self, shown: Callable[[str], str]) -> "CommandOutput":
        """A copy with a function applied to each kept line."""
        head, tail, telling = (
            tuple(map(shown, part)) for part in (self.head, self.tail, self.telling)
        )
        return self._replace(head=head, tail=tail, telling=telling)


def read(output: Iterable[bytes], most_lines: int) -> CommandOutput:
    """Read a whole output and keep up to `most_lines` lines."""
    reading = _OutputReader(most_lines)
    rest = b""
    for part in output:
        *whole, rest = (rest + part).split(b"\n")
        reading.take(whole)
        # An endless line, such as a binary file, must not fill the memory.
        rest = rest[:_LONGEST_UNCUT]
    if rest:
        reading.take([rest])
    return reading.printed()


class _OutputReader:
    """Collects lines. Only kept lines are decoded."""

    def __init__(self, most_lines: int) -> None:
        self._kept = _FirstAndLastLines(most_lines)
        self._uncut = _FirstAndLastLines(_MOST_UNCUT)
        self._telling: list[str] = []
        self._count = 0
        self._in_key = False

    def take(self, lines: list[bytes]) -> None:
        self._count += len(lines)
        whole = b"\n".join(lines)
        if self._in_key or b"PRIVATE KEY" in whole:
            lines = self._without_keys(lines)
            whole = b"\n".join(lines)
        if len(self._telling) < _MOST_TELLING and _may_have_error(whole):
            shown = (_terminal_line(line) for line in lines)
            self._telling += (line for line in shown if _ERROR_LINE.search(line))
            del self._telling[_MOST_TELLING:]
        self._kept.take(lines)
        self._uncut.take([line[:_LONGEST_UNCUT] for line in lines])

    def _without_keys(self, lines: list[bytes]) -> list[bytes]:
        """Blank the body of private keys: redaction does not recognise a key that was cut."""
        kept = []
        for line in lines:
            self._in_key = self._in_key and _INSIDE_KEY.fullmatch(line) is not None
            kept.append(b"" if self._in_key else line)
            self._in_key = self._in_key or _KEY_BEGINS.search(line) is not None
        return kept

    def printed(self) -> CommandOutput:
        head, tail = (
            tuple(map(_terminal_line, part)) for part in (self._kept.first, self._kept.last)
        )
        every = chain(self._uncut.first, self._uncut.last)
        uncut = tuple(_visible(line).decode("utf-8", "replace") for line in every)
        return CommandOutput(head, tail, tuple(self._telling), self._count, uncut)


class _FirstAndLastLines:
    """The first and the last of many lines, up to a number of lines and about a megabyte."""

    def __init__(self, most_lines: int) -> None:
        self._most_first = most_lines // 2
        self._most_last = most_lines - self._most_first
        self._first_size = self._last_size = 0
        self.first: list[bytes] = []
        self.last: deque[bytes] = deque()

    def take(self, lines: list[bytes]) -> None:
        kept = 0
        while (
            kept < len(lines)
            and len(self.first) < self._most_first
            and self._first_size <= _MOST_BYTES // 2
        ):
            self.first.append(lines[kept])
            self._first_size += len(lines[kept])
            kept += 1
        recent = lines[max(kept, len(lines) - self._most_last) :] if self._most_last else []
        self.last.extend(recent)
        self._last_size += sum(map(len, recent))
        while self.last and (
            len(self.last) > self._most_last or self._last_size > _MOST_BYTES // 2
        ):
            self._last_size -= len(self.last.popleft())


def _may_have_error(text: bytes) -> bool:
    """Whether a text may contain an error line. Most output fails this fast check."""
    lower = text.lower()
    return any(word in lower for word in _HINTS)


def _terminal_line(line: bytes) -> str:
    """A line as a terminal shows it, cut if it is too long."""
    visible = _visible(line)
    text = visible[:_LONGEST_LINE].decode("utf-8", "replace")
    return text if len(visible) <= _LONGEST_LINE else f"{text} …"


def _visible(line: bytes) -> bytes:
    # A progress bar overwrites itself: the last text is the visible one.
    return _STEERING.sub(b"", line.rstrip(b"\r")).rpartition(b"\r")[2]
