"""What the adapter of a host must answer."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from ctx.hosts.events import Event, Heading
from ctx.hosts.transcripts import MOST_READ, TranscriptPart, TranscriptStamp, TranscriptStart, Turn


class Transcripts(Protocol):
    """The files in which a host writes conversations down.

    A path names the transcript of one session. Where a file contains several, as a database does,
    the adapter appends the session to it. Only `stamp` and `beginning` fail, with `OSError`: the
    others return what can be read, with a sentence about what cannot.
    """

    file_names: str
    """What they are called, for a person who looks for them."""
    is_rewritten: bool = False
    """Whether a file is written anew when its session goes on, and may then have another name."""

    def folder(self, host_folder: str) -> str:
        """Where they lie, in the folder where the host keeps its files."""

    def files(self, folder: str) -> Sequence[str]:
        """The transcripts of sessions in a folder or a file; of a transcript, itself."""

    def folder_of(self, path: str) -> str:
        """The folder whose `files` are the transcripts that belong together with this one."""

    def stamp(self, path: str) -> TranscriptStamp:
        """How far a transcript goes now."""

    def session_of(self, path: str) -> str:
        """The session whose transcript a file is by its name; empty where it is none."""

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        """The transcripts of a session's subagents that changed since then."""

    def shows_hook(self, path: str) -> bool:
        """Whether a transcript shows that a hook of ctx answered at the start of the session."""

    def beginning(self, path: str) -> TranscriptStart:
        """What the beginning of a transcript says."""

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

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        """Where it keeps its files, for a user with this home."""

    @property
    def transcripts(self) -> Transcripts: ...

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        """What a hook reported. `ContentRefused` where that is nothing to keep."""

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        """The event of a payload that was stored."""

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        """The payload of an event without content: only that it happened, and to which file."""
