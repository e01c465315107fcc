"""The adapter of the scripted host.

Its payloads and the lines of its transcripts have one shape:

    {"chat": "c1", "dir": "/home/dev/shop", "log": "/…/c1.log", "by": "user", "words": "Do it"}
    {"chat": "c1", "dir": …, "did": "shell", "ref": "r1", "what": "make", "came": "…", "code": 2}

An answer of a hook is two lines of JSON: the text for the agent, and the text for the user.
"""

import json
import os
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from ctx import clock
from ctx.errors import ContentRefused
from ctx.hosts import transcript_paths
from ctx.hosts.events import Event, Heading, Speaker
from ctx.hosts.hook_events import HookAnswer, HookEvent
from ctx.hosts.tool_calls import Call, CommandCall, FileContents, FileWrite, Outcome, UnknownTool
from ctx.hosts.transcripts import (
    MOST_READ,
    Message,
    TranscriptPart,
    TranscriptStamp,
    TranscriptStart,
    Turn,
)

NAME = "scripted"

Payload = Mapping[str, Any]


def _call(payload: Payload) -> Call | None:
    match payload.get("did"):
        case "shell":
            code = payload.get("code", 0)
            return CommandCall(payload["what"], Outcome(code == 0, code, payload.get("came", "")))
        case "edit":
            return FileWrite(
                FileContents(payload.get("old"), payload.get("new", ""), is_whole=True)
            )
        case None:
            return None
        case _:
            return UnknownTool()


class Transcripts:
    file_names = "<chat>.log"

    def folder(self, host_folder: str) -> str:
        return os.path.join(host_folder, "logs")

    def shows_hook(self, path: str) -> bool:
        return not os.path.exists(path)

    def session_of(self, path: str) -> str:
        name, suffix = os.path.splitext(os.path.basename(path))
        return name if suffix == ".log" else ""

    def of_subagents(self, path: str, since_ms: int) -> list[str]:  # noqa: ARG002
        return []

    def files(self, folder: str) -> list[str]:
        return transcript_paths.files_below(folder, 0, self.session_of)

    def folder_of(self, path: str) -> str:
        return os.path.dirname(path)

    def stamp(self, path: str) -> TranscriptStamp:
        return transcript_paths.stamp(path)

    def beginning(self, path: str) -> TranscriptStart:
        first = json.loads(transcript_paths.first_bytes(path).partition(b"\n")[0])
        return TranscriptStart(first["dir"], first["ms"])

    def events(
        self,
        path: str,
        start: int,
        end: int | None = None,
        *,
        most: int = MOST_READ,  # noqa: ARG002
        deadline: float = inf,  # noqa: ARG002
    ) -> TranscriptPart:
        file = Path(path)
        data = file.read_bytes()[start:end] if file.exists() else b""
        found = [self._event(json.loads(line)) for line in data.splitlines()]
        return TranscriptPart(tuple(found), start + len(data), "")

    def _event(self, line: Payload) -> Event:
        event_id = f"{line['ms']:013d}-t-{len(json.dumps(line)):08x}"
        spoken = "UserPromptSubmit" if line.get("by") == "user" else "AssistantMessage"
        name = "PostToolUse" if "did" in line else spoken
        return Scripted().read(event_id, name, clock.iso(line["ms"]), line)

    def since(self, path: str, start: int, end: int | None, deadline: float) -> Turn:  # noqa: ARG002
        events = self.events(path, start, end).events
        said = [event for event in events if event.speaker == "agent" and event.text]
        return Turn(tuple(Message(each.id, each.text or "") for each in said), "")

    def last_turn(self, path: str, end: int | None, deadline: float) -> Turn:
        return self.since(path, 0, end, deadline)

    def read_by_agent(
        self,
        path: str,
        end: int | None,
        deadline: float,  # noqa: ARG002
    ) -> Iterator[str | None]:
        for event in self.events(path, 0, end).events:
            if event.speaker != "agent":
                yield json.dumps(dict(event.payload))


class ScriptedHooks:
    spool_name = NAME
    nothing = b""
    largest_answer = 4_000
    starts_with_prompt = False
    compacts_silently = False

    def length(self, text: str) -> int:
        return len(text)

    def session(self, payload: bytes) -> str:
        return self.read(payload).session

    def folder(self, payload: bytes) -> str:
        return self.read(payload).folder

    def edited_files(self, _payload: bytes) -> list[str]:
        return []

    def transcript(self, payload: bytes) -> str:
        return self.read(payload).transcript

    def is_by_agent(self, line: bytes) -> bool:
        return b'"by": "agent"' in line

    def is_of_subagent(self, payload: bytes) -> bool:  # noqa: ARG002
        return False

    def is_noise(self, word: str, payload: bytes, environment: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False

    def has_turn(self, payload: bytes, tail: bytes) -> bool:  # noqa: ARG002
        return True

    def process(self, environment: Mapping[str, str]) -> str:
        return environment.get("SCRIPTED_PROCESS", "")

    def project_folder(self, environment: Mapping[str, str]) -> str:  # noqa: ARG002
        return ""

    def without_session(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {name: environment[name] for name in environment if name != "SCRIPTED_PROCESS"}

    def read(self, payload: bytes) -> HookEvent:
        keys = json.loads(payload)
        where = (keys["chat"], keys["dir"], keys.get("log", ""))
        return HookEvent(*where, payload, keys.get("began"), keys.get("words", ""))

    def with_response(
        self, payload: bytes, session: str, folder: str, response: str
    ) -> tuple[str, bytes]:
        keys = {"chat": session, "dir": folder, **json.loads(payload), "typed": response}
        return keys["chat"], json.dumps(keys).encode()

    def forked_from(self, event: HookEvent, process: str, now_s: float) -> str:  # noqa: ARG002
        return ""

    def remembers(self, event: HookEvent) -> bool:  # noqa: ARG002
        return True

    def write(self, name: str, answer: HookAnswer) -> bytes:  # noqa: ARG002
        return "".join(f"{json.dumps(each)}\n" for each in answer).encode() if any(answer) else b""


class Scripted:
    name = NAME
    transcripts = Transcripts()
    hooks = ScriptedHooks()

    def folder(self, variables: Mapping[str, str], home: str) -> str:  # noqa: ARG002
        return os.path.join(home, "scripted")

    def read(self, event_id: str, name: str, at: str, payload: Payload) -> Event:
        if not isinstance(payload.get("chat"), str):
            raise ContentRefused("It names no session.")
        columns = (payload["dir"], payload.get("did"), payload.get("ref"))
        return self.restore(Heading(event_id, payload["chat"], name, at, *columns), payload)

    def restore(self, heading: Heading, payload: Payload) -> Event:
        speaker: Speaker = "user" if payload.get("by") == "user" else "agent"
        return Event(
            *heading,
            payload,
            NAME,
            payload.get("words"),
            speaker if "words" in payload else "",
            path=payload.get("file", ""),
            call=_call(payload),
            transcript=payload.get("log", ""),
            response=payload.get("typed"),
        )

    def outline(self, event: Event, path: str) -> Payload:
        kept = {key: event.payload[key] for key in ("chat", "dir") if key in event.payload}
        return {**kept, "file": path} if path else kept
