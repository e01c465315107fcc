"""What the adapter of a host must answer."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from ctx.hosts.events import Event, Heading
from ctx.hosts.hook_events import HookAnswer, HookEvent
from ctx.hosts.transcripts import MOST_READ, TranscriptPart, TranscriptStamp, TranscriptStart, Turn


class Transcripts(Protocol):
    """The files in which a host writes conversations down.

    A path names the transcript of one session. Where a file contains several, as a database does,
    the adapter appends the session to it. Only `stamp` and `beginning` fail, with `OSError`: the
    others return what can be read, with a sentence about what cannot.
    """

    @property
    def file_names(self) -> str:
        """What they are called, for a person who looks for them."""

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


class Hooks(Protocol):
    """What a hook process needs to know about its host.

    Every hook loads the implementation, so it imports nothing slow until a method needs it.
    """

    @property
    def spool_name(self) -> str:
        """The host in the names of spool files; empty for the first host."""

    @property
    def nothing(self) -> bytes:
        """What a hook prints if it has no answer."""

    @property
    def largest_answer(self) -> int:
        """The longest text that an agent receives whole, as `length` counts it."""

    @property
    def starts_with_prompt(self) -> bool:
        """Whether the context of a session is given with its first prompt, because the host does
        not handle an answer at the start well."""

    @property
    def compacts_silently(self) -> bool:
        """Whether no start of the session follows a compaction: then the next prompt gets what a
        compacted session needs."""

    def length(self, text: str) -> int:
        """The length of a text, in the units of the host's limit."""

    def session(self, payload: bytes) -> str:
        """The session that a payload names, without parsing all of it; empty: none."""

    def folder(self, payload: bytes) -> str:
        """The same for the folder in which the agent works."""

    def transcript(self, payload: bytes) -> str:
        """The same for the path of the transcript."""

    def edited_files(self, payload: bytes) -> list[str]:
        """The same for the files that the agent is about to edit, as absolute paths."""

    def is_by_agent(self, line: bytes) -> bool:
        """Whether the agent wrote a line of the transcript."""

    def is_of_subagent(self, payload: bytes) -> bool:
        """Whether a payload names the subagent that it is about. It may be wrong where a tool call
        has a field of the same name."""

    def is_noise(self, word: str, payload: bytes, environment: Mapping[str, str]) -> bool:
        """Whether to ignore a payload: a host may report a prompt where there is none, and another
        host may run this hook."""

    def has_turn(self, payload: bytes, tail: bytes) -> bool:
        """Whether the end of the transcript contains the turn that a Stop ends. A host may write it
        while the hook runs; if the payload contains the last message, that need not be awaited."""

    def process(self, environment: Mapping[str, str]) -> str:
        """The id of the host's process; empty: the host does not pass it on."""

    def project_folder(self, environment: Mapping[str, str]) -> str:
        """The folder of the project; empty: the host does not pass it on."""

    def without_session(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment without the variables of one session, for a process that serves all."""

    def read(self, payload: bytes) -> HookEvent:
        """An event that needs an answer. `ValueError` if the payload cannot be parsed."""

    def with_response(
        self, payload: bytes, session: str, folder: str, response: str
    ) -> tuple[str, bytes]:
        """The session and the payload of a Stop with a response that is given by hand.

        Session and folder are used if the payload names none.
        """

    def forked_from(self, event: HookEvent, process: str, now_s: float) -> str:
        """The session that a forked one was copied from; empty if it is not known."""

    def remembers(self, event: HookEvent) -> bool:
        """Whether a resumed session still has the context that it received."""

    def write(self, name: str, answer: HookAnswer) -> bytes:
        """The answer to an event of this name, as the host reads it from standard output."""


class Host(Protocol):
    @property
    def name(self) -> str:
        """What sessions and authors are called by: `claude-code`."""

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        """Where it keeps its files, for a user with this home."""

    @property
    def transcripts(self) -> Transcripts: ...

    @property
    def hooks(self) -> Hooks: ...

    def read(self, event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
        """What a hook reported. `ContentRefused` where that is nothing to keep."""

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        """The event of a payload that was stored."""

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        """The payload of an event without content: only that it happened, and to which file."""
