"""The sessions of OpenCode, read from its database.

The text parts of a user's message are a prompt, without those that our plugin or OpenCode added
(`synthetic`). The parts of an agent's message are its texts and its tool calls. A part changes
while it is written, so a reading ends before the first one that is not complete.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from sqlite3 import Connection
from typing import Any

from ctx import clock
from ctx.agents import stored_events
from ctx.agents.opencode import storage, tools
from ctx.agents.opencode.hooks import NAME
from ctx.agents.opencode.storage import PartRow, SessionRow
from ctx.agents.stored_events import EventContent, ToolReport
from ctx.capture import repeated_commands, session_state
from ctx.capture.injected_text import SIGNS
from ctx.capture.steps import ASSISTANT_MESSAGE, RECAP
from ctx.hosts import transcript_reader
from ctx.hosts.events import Event
from ctx.hosts.host_adapter import Transcripts
from ctx.hosts.json_fields import fields_of, text_of
from ctx.hosts.transcripts import (
    MOST_READ,
    Message,
    TranscriptPart,
    TranscriptStamp,
    TranscriptStart,
    Turn,
    storable,
    usable_folder,
)

_ABORTED = "MessageAbortedError"
_MOST_PARTS = 50


class OpenCodeTranscripts(Transcripts):
    file_names = f"{storage.FILE}#<session>"

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, storage.FILE)

    def files(self, folder: str) -> Sequence[str]:
        if storage.split_name(folder)[1]:
            return [folder]
        is_folder = os.path.isdir(folder)
        database = os.path.join(folder, storage.FILE) if is_folder else folder
        try:
            with storage.opened(database) as connection:
                found = storage.sessions(connection)
        except OSError:
            return []
        return [storage.name_of(database, each.id) for each in found]

    def folder_of(self, path: str) -> str:
        return storage.split_name(path)[0]

    def stamp(self, path: str) -> TranscriptStamp:
        database, session = storage.split_name(path)
        with storage.opened(database) as connection:
            row = _require(connection, session)
            last_ms = storage.last_ms(connection, session)
        return TranscriptStamp(last_ms, row.changed_ms)

    def session_of(self, path: str) -> str:
        return storage.split_name(path)[1]

    def of_subagents(self, path: str, since_ms: int) -> list[str]:
        database, session = storage.split_name(path)
        try:
            with storage.opened(database) as connection:
                found = storage.children(connection, session, since_ms)
        except OSError:
            return []
        return [storage.name_of(database, each.id) for each in found]

    def shows_hook(self, path: str) -> bool:
        database, session = storage.split_name(path)
        try:
            with storage.opened(database) as connection:
                rows = storage.parts(connection, session, 0)
                first = [row.part for row, _ in zip(rows, range(_MOST_PARTS), strict=False)]
        except OSError:
            return False
        texts = [text_of(part, "text") for part in first if part.get("synthetic") is True]
        return any(sign.decode() in text for text in texts for sign in SIGNS)

    def beginning(self, path: str) -> TranscriptStart:
        database, session = storage.split_name(path)
        with storage.opened(database) as connection:
            row = _require(connection, session)
        return TranscriptStart(usable_folder(row.folder), row.began_ms)

    def events(
        self,
        path: str,
        start: int,
        end: int | None = None,
        *,
        most: int = MOST_READ,
        deadline: float = inf,
    ) -> TranscriptPart:
        reading = _SessionReader(path, most, deadline)
        try:
            reading.read(start, end)
        except OSError as error:
            problem = f"The database of OpenCode cannot be read: {error.strerror}."
            return TranscriptPart((), start, problem)
        return TranscriptPart(tuple(reading.events), reading.position, "")

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:
        return self._turn(path, start, end, deadline, is_last=False)

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        return self._turn(path, 0, end, deadline, is_last=True)

    def _turn(
        self, path: str, start: int, end: int | None, deadline: float, *, is_last: bool
    ) -> Turn:
        messages: dict[str, list[str]] = {}
        problem = ""
        try:
            for row in _rows(path, start, end):
                text = storable(text_of(row.part, "text"))
                if row.part.get("type") != "text" or row.part.get("synthetic") or not text.strip():
                    continue
                if row.message_data.get("role") == "assistant":
                    messages.setdefault(row.message, []).append(text)
                elif is_last:
                    messages.clear()
                if clock.monotonic() >= deadline:
                    problem = "Reading the database of OpenCode took too long."
                    break
        except OSError as error:
            problem = f"The database of OpenCode cannot be read: {error.strerror}."
        said = (Message(name, "\n\n".join(texts)) for name, texts in messages.items())
        return Turn(tuple(said), problem)

    def read_by_agent(self, path: str, end: int | None, deadline: float) -> Iterator[str | None]:
        try:
            for row in _rows(path, 0, end):
                if clock.monotonic() >= deadline:
                    yield None
                    return
                texts = transcript_reader.nested_strings(_not_by_agent(row), "ctx")
                yield from map(repeated_commands.without_reports, texts)
        except OSError:
            yield None


def typed_text(text: str) -> str:
    """A prompt as it was typed: `opencode run` puts one with spaces in quotes."""
    inner = text.strip()
    is_quoted = len(inner) > 1 and inner[0] == inner[-1] == '"' and '"' not in inner[1:-1]
    return inner[1:-1] if is_quoted and " " in inner else text


def _require(connection: Connection, session: str) -> SessionRow:
    row = storage.find(connection, session)
    if row is None:
        raise FileNotFoundError(None, "the session is not in the database")
    return row


def _rows(path: str, start: int, end: int | None) -> Iterator[PartRow]:
    database, session = storage.split_name(path)
    with storage.opened(database) as connection:
        for row in storage.parts(connection, session, start):
            if end is not None and row.began_ms > end:
                return
            yield row


def _not_by_agent(row: PartRow) -> Any:
    """What the agent read in a part and did not write."""
    if row.message_data.get("role") != "assistant":
        return row.part
    state = fields_of(row.part.get("state"))
    return {name: value for name, value in state.items() if name not in ("input", "raw", "title")}


class _SessionReader:
    """Reads the parts of one session once."""

    def __init__(self, path: str, most: int, deadline: float) -> None:
        self.events: list[Event] = []
        self.position = 0
        self._database, self._id = storage.split_name(path)
        self._most = most
        self._deadline = deadline
        self._session = self._agent = self._folder = self._transcript = ""
        self._last_message = ""
        self._aborted: set[str] = set()

    def read(self, start: int, end: int | None) -> None:
        self.position = start
        with storage.opened(self._database) as connection:
            self._set_session(_require(connection, self._id), connection)
            self._last_message = storage.last_message(connection, self._id)
            size = 0
            for row in storage.parts(connection, self._id, start):
                is_new = row.began_ms > self.position
                is_cut = size >= self._most or clock.monotonic() >= self._deadline
                if (end is not None and row.began_ms > end) or not self._is_complete(row):
                    self.position = max(self.position, min(row.began_ms, end or row.began_ms))
                    return
                self.position = row.began_ms
                if is_cut and is_new:
                    return
                size += row.size
                self._take(row)

    def _set_session(self, row: SessionRow, connection: Connection) -> None:
        """The session, and the one that it belongs to if it is that of a subagent."""
        self._folder = row.folder
        self._session = storage.main_of(connection, row).id
        self._agent = self._id if self._session != self._id else ""
        self._transcript = storage.name_of(self._database, self._session)

    def _is_complete(self, row: PartRow) -> bool:
        """Whether a part does not change any more. Only the last message of a session can."""
        if row.message != self._last_message or row.message_data.get("role") != "assistant":
            return True
        if fields_of(row.message_data.get("time")).get("completed") or row.message_data.get(
            "error"
        ):
            return True
        match row.part.get("type"):
            case "text":
                return "end" in fields_of(row.part.get("time"))
            case "tool":
                state = fields_of(row.part.get("state"))
                return state.get("status") in ("completed", "error")
            case _:
                return True

    def _take(self, row: PartRow) -> None:
        is_agent = row.message_data.get("role") == "assistant"
        if is_agent and text_of(row.message_data.get("error"), "name") == _ABORTED:
            self._abort(row)
        match row.part.get("type"):
            case "text" if row.part.get("synthetic") is not True:
                self._take_text(row, is_agent=is_agent)
            case "tool":
                self._take_call(row)

    def _abort(self, row: PartRow) -> None:
        if row.message not in self._aborted and not self._agent:
            self._aborted.add(row.message)
            self._add(row, row.message, session_state.INTERRUPT, EventContent())

    def _take_text(self, row: PartRow, *, is_agent: bool) -> None:
        text = storable(text_of(row.part, "text").strip())
        if not text or row.part.get("ignored") is True:
            return
        if not is_agent:
            # The prompt of a subagent is in the call that started it.
            if not self._agent:
                content = EventContent(typed_text(text), "user")
                self._add(row, row.id, session_state.PROMPT, content)
            return
        name = RECAP if row.message_data.get("summary") is True else ASSISTANT_MESSAGE
        if name != RECAP or not self._agent:
            self._add(row, row.id, name, EventContent(text, "agent"))

    def _take_call(self, row: PartRow) -> None:
        state = fields_of(row.part.get("state"))
        failed = state.get("status") == "error"
        report = ToolReport(
            text_of(row.part, "tool"),
            fields_of(state.get("input")),
            text_of(state, "output"),
            text_of(state, "error") if failed else None,
            fields_of(state.get("metadata")),
        )
        content = EventContent(path=tools.path_of(report), call=tools.call_of(report))
        name = "PostToolUseFailure" if failed else "PostToolUse"
        self._add(row, row.id, name, content, report.tool, text_of(row.part, "callID"))

    def _add(
        self,
        row: PartRow,
        known_by: str,
        name: str,
        content: EventContent,
        tool: str = "",
        call_id: str = "",
    ) -> None:
        at_ms = _ended_ms(row)
        heading = stored_events.heading(
            transcript_reader.event_id(at_ms, name, known_by),
            *(name, clock.iso(at_ms), self._session, self._folder, tool, call_id),
        )
        place = content._replace(agent=self._agent, transcript=self._transcript)
        self.events.append(stored_events.event(NAME, heading, place))


def _ended_ms(row: PartRow) -> int:
    times: Mapping[str, Any] = fields_of(row.part.get("time"))
    if row.part.get("type") == "tool":
        times = fields_of(fields_of(row.part.get("state")).get("time"))
    ended = times.get("end")
    is_time = isinstance(ended, int) and not isinstance(ended, bool) and ended >= row.began_ms
    return clock.possible_ms(ended if is_time and ended is not None else row.began_ms)
