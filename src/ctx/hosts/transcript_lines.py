"""The lines of a transcript, read forward: one JSON object per line, whichever host wrote it."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

LONGEST_LINE = 16 * 1024 * 1024
"""Longer lines contain images or tool output, not messages."""
CHUNK = 1024 * 1024
"""Bytes that are read at a time."""

_NEAR = 128 * 1024


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
    if not line.endswith(b"}"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


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
