"""What the adapter of a host must answer."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Protocol

from ctx.hosts.events import Event, Heading
from ctx.hosts.transcripts import MOST_READ, Beginning, TranscriptPart, Turn


class Transcripts(Protocol):
    """The files in which a host writes conversations down. Nothing here fails: what can be read is
    given, with a sentence about what cannot."""

    @property
    def file_names(self) -> str:
        """What they are called, for a person who looks for them."""

    def folder(self, host_folder: str) -> str:
        """Where they lie, in the folder where the host keeps its files."""

    def session_of(self, path: str) -> str:
        """The session whose transcript a file is by its name; empty where it is none."""

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        """The transcripts of a session's subagents that changed since then."""

    def beginning(self, start: bytes) -> Beginning:
        """What the first bytes of a transcript say."""

    def events(
        self,
        path: str,
        start: int,
        end: int | None = None,
        *,
        most: int = MOST_READ,
        deadline: float = inf,
    ) -> TranscriptPart:
        """What happened between two places of the file; None is its end."""

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:
        """What was said between two places of the file; None is its end."""

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        """What was said after the last prompt before a place of the file; None is its end."""

    def read_by_agent(self, path: str, end: int | None, deadline: float) -> Iterator[str | None]:
        """The texts before a place of the file that the agent read and did not write, as far as
        they may hold commands. None: a part could not be searched."""


class Host(Protocol):
    @property
    def name(self) -> str:
        """What sessions and authors are called by: `claude-code`."""

    @property
    def transcripts(self) -> Transcripts: ...

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        """What a hook reported. `ContentRefused` where that is nothing to keep."""

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        """The event of a payload that was stored."""

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        """The payload of an event without content: only that it happened, and to which file."""
