"""Finds texts that may contain a command for ctx in a JSON value, such as a transcript line."""

from collections.abc import Iterator
from typing import Any

from ctx.hosts.transcripts import storable

MARKS = (b"ctx:", b"CTX:", b"Ctx:")
"""Bytes of which a line with a command contains at least one."""

_MOST_DEPTH = 20


def texts_in(value: Any, depth: int = _MOST_DEPTH) -> Iterator[str]:
    """The texts in a JSON value that mention ctx."""
    if isinstance(value, str):
        if "ctx" in value.casefold():
            yield storable(value)
    elif depth and isinstance(value, dict | list):
        for nested in value.values() if isinstance(value, dict) else value:
            yield from texts_in(nested, depth - 1)
