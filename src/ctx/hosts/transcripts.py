"""What the transcripts of a host say."""

import os
from typing import NamedTuple

from ctx.hosts.events import Event


class Message(NamedTuple):
    id: str
    text: str
    """Its blocks of text, with blank lines between them."""


class Turn(NamedTuple):
    """What an agent said between two prompts."""

    messages: tuple[Message, ...]
    """In the order in which they were written; those without text are left out."""
    problem: str
    """What may be missing, and why; empty if nothing is."""
    errors: tuple[str, ...] = ()
    """What the host wrote itself where the model failed. It stands where an answer would."""


class TranscriptPart(NamedTuple):
    events: tuple[Event, ...]
    """In the order in which they stand in the file."""
    next_offset: int
    """Where the next reading begins: behind whole lines, and before a call without a result."""
    problem: str
    """What may be missing, and why; empty if nothing is."""


class TranscriptStamp(NamedTuple):
    """How far a transcript goes now."""

    size: int
    """Where it ends: the `next_offset` of a reading of all of it."""
    changed_ms: int


class TranscriptStart(NamedTuple):
    """What the beginning of a transcript says about its session."""

    folder: str
    """Where it worked; empty where that is not said."""
    began_ms: int | None
    copied: int = 0
    """How much of it may be of another session, to find out which of two was first."""


MOST_READ = 4 * 1024 * 1024
"""Bytes that one reading of a transcript takes; the next one goes on behind them."""


def has_final(turn: Turn, last_message: str) -> bool:
    """Whether a turn ends with the text that the host calls its last.

    That text may be all of a message or its last block. If the host names none, none is missing.
    """
    final = storable(last_message).strip()
    if not final or not turn.messages:
        return not final
    text = turn.messages[-1].text.strip()
    return text.split() == final.split() or text.endswith(f"\n\n{final}")


def storable(text: str) -> str:
    """The text without halves of characters, which a host may leave where it cuts a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def usable_folder(path: str) -> str:
    """A folder that a host names, if it can be one: an absolute path without a null character."""
    return path if os.path.isabs(path) and "\0" not in path else ""
