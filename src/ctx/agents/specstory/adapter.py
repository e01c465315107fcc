"""SpecStory as a source of past sessions: the adapter that the registry loads."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx import clock, disk
from ctx.agents.claude_code.transcript_events import typed_prompt
from ctx.agents.line_transcripts import LineTranscripts, files_below
from ctx.agents.specstory import history
from ctx.agents.specstory.history import Turn
from ctx.agents.stored_events import EventContent, StoringHost, StoringReader
from ctx.capture import session_state
from ctx.capture.steps import ASSISTANT_MESSAGE
from ctx.errors import ContentRefused
from ctx.hook_files import live
from ctx.hosts.events import Event
from ctx.hosts.transcript_reader import TranscriptReader, digest
from ctx.hosts.transcripts import TranscriptStart
from ctx.hosts.turn_lines import TurnLines

NAME = "specstory"

_FOLDER = os.path.join(".specstory", "history")
_LARGEST = 32 * 1024 * 1024
_HEAD, _LONGEST_PROMPT = 4096, 64 * 1024
# What editors add to a prompt.
_ADDED = re.compile(
    r"(?s)<(ide_\w+|system[-_]reminder|environment_context)>.{0,9999}?</\1>|</?user_query>"
    r"|\[Image(: source:)? [^][\n]*\]"
)
_NOT_TYPED = re.compile(r"@agent (Continue|Try Again)|\[Request inter|Implement the plan as spec")


class _HistoryReader(StoringReader):
    """Reads a file whole: SpecStory writes it anew whenever its session goes on."""

    host = NAME
    matters = re.compile(b"")

    def take(self, offset: int, entry: dict[str, Any], line: bytes) -> None:
        """It has no lines of JSON."""

    def _read(self, fd: int, start: int, limit: int) -> None:
        if limit > _LARGEST:
            self.note(f"It has more than {_LARGEST >> 20} MB.")
        if start == limit or limit > _LARGEST:
            return
        self._position, text, written_ms = limit, _text(os.pread(fd, limit, 0)), self._at_ms
        turns = history.turns(text)
        named_ms = history.time_of_file(os.path.basename(self.path), text)
        began_ms = next(filter(None, (turn.at_ms for turn in turns)), named_ms) or written_ms
        self._at_ms = min(began_ms, written_ms) - 1000
        is_explained = False
        for turn in turns:
            self._at_ms = max(self._at_ms, min(turn.at_ms or 0, written_ms) - 1000)
            if not turn.is_user:
                self._take_answer(turn)
                is_explained = False
            elif not (turn.agent or is_explained):
                is_explained = self._take_prompt(turn)

    def _take_prompt(self, turn: Turn) -> bool:
        """Whether the next turn only explains a command that this one names."""
        text = "\n".join(part for _, part in turn.parts).strip().removesuffix("---")
        typed = typed_prompt(_ADDED.sub("", text[:_LONGEST_PROMPT]).strip())
        if typed and not _NOT_TYPED.match(typed):
            self._add(session_state.PROMPT, EventContent(typed, "user"))
        return text.startswith("<command-message>")

    def _take_answer(self, turn: Turn) -> None:
        said: list[str] = []
        for marker, text in (*turn.parts, ("---", "")):
            used = history.tool_in(text) if marker else None
            if said and (used or marker == "---"):
                self._add(ASSISTANT_MESSAGE, EventContent("\n\n".join(said), "agent", turn.agent))
                said.clear()
            if used:
                self._add("PostToolUse", used[1]._replace(agent=turn.agent), used[0])
            elif not marker and (words := text.removeprefix("---").strip()):
                said.append(words)

    def _add(self, name: str, content: EventContent, tool: str = "") -> None:
        # Most headings have no time, or only the minute.
        self._at_ms += 1000
        stamp, folder = clock.iso(self._at_ms), _project_of(self.path)
        known_by = f"{self.session} {len(self.events)}"
        self.add(name, content, stamp=stamp, known_by=known_by, folder=folder, tool=tool)


class SpecStoryTranscripts(LineTranscripts):
    file_names = os.path.join(_FOLDER, "<session>.md")
    is_rewritten = True
    turns = TurnLines(lambda _: False, lambda _, __: None)
    context_marks = (b"\n",)

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, _FOLDER)

    def files(self, folder: str) -> Sequence[str]:
        """Of several files of a session, the largest: a session that gets a title gets another."""
        inner = self.folder(folder)
        found = files_below(inner if os.path.isdir(inner) else folder, 0, self.session_of)
        found.sort(key=os.path.getsize)
        return [*{self.session_of(path): path for path in found}.values()]

    def session_of(self, path: str) -> str:
        try:
            start = _text(disk.read_plain(path, _HEAD)[:_HEAD])
        except (OSError, ValueError):
            return ""
        if not path.endswith(".md") or not history.is_own(start):
            return ""
        named = history.session_in(start)
        return named if live.is_session(named) else f"{digest(os.path.basename(path).encode())}-md"

    def beginning(self, path: str) -> TranscriptStart:
        found = self.events(path, 0).events
        return TranscriptStart(_project_of(path), clock.parse_iso(found[0].at) if found else None)

    def reader(self, path: str, most: int, deadline: float) -> TranscriptReader:
        return _HistoryReader(path, self.session_of(path), most, deadline)

    def texts_for_agent(self, entry: dict[str, Any]) -> Iterator[str]:  # noqa: ARG002
        return iter(())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "")


def _project_of(path: str) -> str:
    """The folder whose sessions these are; of a file that lies elsewhere, its folder."""
    return os.path.dirname(path).removesuffix(os.sep + _FOLDER)


class SpecStory(StoringHost):
    name = NAME
    transcripts = SpecStoryTranscripts()

    def folder(self, variables: Mapping[str, str], home: str) -> str:  # noqa: ARG002
        return home

    def read(self, *_: object) -> Event:
        raise ContentRefused("SpecStory has no hooks.")


HOST = SpecStory()
