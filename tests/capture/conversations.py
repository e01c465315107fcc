"""Conversations as a client writes them to a transcript, and the hooks that it calls.

The hooks run in this process. Where a hook would start a process that runs agent commands, it
starts one that does nothing: the commands stay in the spool until a test runs them.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import ids
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.known_hosts import HOSTS
from ctx.agents.runtime import hook
from ctx.agents.runtime.hook import Hook
from ctx.hook_files import spool
from ctx.layout import UserStore
from ctx.operations import apply
from ctx.operations.apply import ApplyResult
from ctx.workspace import Environment, Memory, open_memory

SESSION = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
TIMEOUT_S = 5.0


class Conversation:
    """One session: its transcript, and the payloads that its client sends to the hooks."""

    def __init__(self, client: "Client", session: str = SESSION) -> None:
        self.client = client
        self.session = session
        self.path = client.transcripts / f"{session}.jsonl"
        self.last = ""
        self._prompts = 0
        self._messages = 0

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def entry(self, kind: str, **fields: Any) -> None:
        line = {"type": kind, "sessionId": self.session, **fields}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def prompt(self, text: str = "Go on.") -> None:
        self._prompts += 1
        self.entry("user", message={"role": "user", "content": text})

    def reply(self, *texts: str, message_id: str = "") -> None:
        """A message of the agent: one entry for each of its blocks."""
        self._messages += 1
        name = message_id or f"msg_{self.session[:4]}_{self._messages}"
        for text in texts:
            block = {"type": "text", "text": text}
            self.entry("assistant", message={"id": name, "role": "assistant", "content": [block]})
        self.last = texts[-1]

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        """The payload that the client sends to a hook."""
        common = {
            "session_id": self.session,
            "transcript_path": str(self.path),
            "cwd": str(self.client.folder),
            "hook_event_name": event,
        }
        return {**common, **fields}

    def stop_payload(self, **fields: Any) -> dict[str, Any]:
        named = {"prompt_id": f"prompt-{self._prompts}", "last_assistant_message": self.last}
        return self.payload("Stop", **{**named, **fields})

    def start(self, source: str = "startup", *options: str, **fields: Any) -> dict[str, Any]:
        # No two starts say the same: the second would be taken for the same hook run twice.
        self.client.starts += 1
        named = {"source": source, "model": f"model-{self.client.starts}"}
        payload = self.payload("SessionStart", **{**named, **fields})
        answer = self.client.hook("session-start", payload, *options)
        if given := context_of(answer):
            # The client writes down what it was given.
            attachment = {"type": "hook_additional_context", "content": [given]}
            self.entry("attachment", attachment=attachment)
        return answer

    def stop(self, **fields: Any) -> dict[str, Any]:
        return self.client.hook("stop", self.stop_payload(**fields))

    def submit(self, text: str = "Go on.") -> dict[str, Any]:
        return self.client.hook("prompt-submit", self.payload("UserPromptSubmit", prompt=text))

    def end(self, reason: str = "other") -> dict[str, Any]:
        return self.client.hook("session-end", self.payload("SessionEnd", reason=reason))

    def answer(self, text: str) -> None:
        """One turn, from the prompt to its Stop."""
        self.prompt()
        self.reply(text)
        self.stop()


class Client:
    """A client in a folder, with the hooks of one person."""

    def __init__(self, home: Path, folder: Path, process: str = "") -> None:
        self.home = str(home)
        self.folder = folder
        self.process = process
        self.starts = 0
        self.transcripts = home.parent / "transcripts"
        self.transcripts.mkdir(exist_ok=True)

    def talk(self, session: str = SESSION) -> Conversation:
        return Conversation(self, session)

    def hook(self, word: str, payload: dict[str, Any], *options: str) -> dict[str, Any]:
        """The answer of a hook."""
        environment = {"HOME": os.path.dirname(self.home), "CTX_HOME": self.home}
        environment["CTX_WORKER_AUTOSTART"] = "0"
        if os.path.isdir(self.home):
            # Somebody who has heard what is captured.
            Path(self.home, "first-run").touch()
        if self.process:
            environment["CLAUDE_PID"] = self.process
        running = Hook(word, list(options), environment, ClaudeHooks())
        data = json.dumps(payload).encode() + b"\n"
        with nothing_started():
            answer = hook.answer(running, lambda: data)
        return json.loads(answer) if answer else {}

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        surroundings = Environment(
            str(self.folder),
            UserStore(self.home),
            {},
            (),
            ids.CLI_SESSION,
            load_hosts=lambda: HOSTS,
        )
        with open_memory(surroundings, writing=True) as memory:
            yield memory

    def apply(self) -> ApplyResult:
        """What `ctx hook apply` does, in this process."""
        with apply.hold_spool(self.home) as held, self.memory() as memory:
            assert held
            done = apply.commands(memory, self.home, TIMEOUT_S)
            more = apply.events(memory, self.home, TIMEOUT_S)
        stops, refused = (*done.stops, *more.stops), (*done.refused, *more.refused)
        return more._replace(stops=stops, refused=refused)

    def waiting(self) -> list[str]:
        """The entries in the spool, without ids."""
        return [name.partition(".")[2] for name in spool.pending_names(self.home)]


def context_of(answer: dict[str, Any]) -> str:
    """The context in the answer of a hook; empty if there is none."""
    text: str = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    return text


@contextmanager
def nothing_started() -> Iterator[None]:
    """For a hook in this process: processes that it starts end at once and are gone after it."""
    # Two processes never start in one millisecond, and events have the order of their times.
    time.sleep(0.002)
    started: list[int] = []
    spawn = os.posix_spawn

    def spawn_and_note(*arguments: Any, **options: Any) -> int:
        started.append(spawn(*arguments, **options))
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", shutil.which("true"))
        patch.setattr(os, "posix_spawn", spawn_and_note)
        yield
    for process in started:
        os.waitpid(process, 0)
