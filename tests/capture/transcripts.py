"""Transcripts of made-up sessions, as Claude Code writes them: one JSON object a line."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctx import clock

BEGAN = "2026-11-02T09:00:00Z"
STEP_MS = 1_000


class Transcript:
    """The file of a session, written line by line. Each line comes a second after the last."""

    def __init__(
        self, folder: Path, session: str, cwd: str = "/home/dev/shop", began: str = BEGAN
    ) -> None:
        self.session = session
        self.cwd = cwd
        self.path = folder / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self.now_ms = clock.parse_iso(began) or 0
        self._lines = 0
        self._messages = 0
        self._more: dict[str, Any] = {}

    def subagent(self, agent: str) -> "Transcript":
        """The file of an agent that works for the session."""
        own = Transcript(self.path.parent / self.session / "subagents", f"agent-{agent}", self.cwd)
        own.session = self.session
        own.now_ms = self.now_ms
        own._more = {"isSidechain": True, "agentId": agent}
        return own

    def in_team(self, team: str, name: str) -> None:
        """Whose lines are those of an agent of a team from now on."""
        self._more = {"teamName": team, "agentName": name}

    def entry(self, kind: str, **told: Any) -> dict[str, Any]:
        self._lines += 1
        self.now_ms += STEP_MS
        known_by = f"{self.path.name} {self._lines}"
        line = {
            "type": kind,
            "isSidechain": False,
            "uuid": hashlib.sha256(known_by.encode()).hexdigest()[:32],
            "timestamp": clock.iso(self.now_ms),
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.325",
            "gitBranch": "main",
            **self._more,
            **told,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return line

    def prompt(self, text: str, **told: Any) -> None:
        named = {"promptId": f"prompt-{self._lines}", **told}
        self.entry("user", message={"role": "user", "content": text}, **named)

    def titled(self, kind: str, **told: Any) -> None:
        """A line with a title: it has neither a time nor an id."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"type": kind, **told}) + "\n")

    def say(self, text: str) -> None:
        self._message({"type": "text", "text": text})

    def tool(self, name: str, given: dict[str, Any], result: Any, shown: str = "done") -> str:
        """A call and its result."""
        tool_use = self.call(name, given)
        self.result(tool_use, shown, toolUseResult=result)
        return tool_use

    def fails(self, name: str, given: dict[str, Any], error: str) -> str:
        tool_use = self.call(name, given)
        self.result(tool_use, error, is_error=True, toolUseResult=f"Error: {error}")
        return tool_use

    def call(self, name: str, given: dict[str, Any]) -> str:
        tool_use = f"toolu_{self.path.stem[:13]}_{self._lines}"
        self._message({"type": "tool_use", "id": tool_use, "name": name, "input": given})
        return tool_use

    def result(self, tool_use: str, shown: str, *, is_error: bool = False, **told: Any) -> None:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use, "content": shown}
        block |= {"is_error": True} if is_error else {}
        self.entry("user", message={"role": "user", "content": [block]}, **told)

    def _message(self, block: dict[str, Any]) -> None:
        self._messages += 1
        name = f"msg_{self.path.stem[:8]}_{self._messages}"
        message = {"id": name, "role": "assistant", "model": "a-model", "content": [block]}
        self.entry("assistant", message=message)

    def bash(self, command: str, output: str) -> str:
        result = {"stdout": output, "stderr": "", "interrupted": False}
        return self.tool("Bash", {"command": command}, result, output)

    def edit(self, path: str, old: str, new: str, original: str) -> str:
        given = {"file_path": f"{self.cwd}/{path}", "old_string": old, "new_string": new}
        result = {
            "filePath": f"{self.cwd}/{path}",
            "oldString": old,
            "newString": new,
            "originalFile": original,
            "structuredPatch": [],
            "replaceAll": False,
        }
        return self.tool("Edit", given, result, "The file has been updated.")

    def write(self, path: str, content: str) -> str:
        given = {"file_path": f"{self.cwd}/{path}", "content": content}
        result = {"type": "create", "filePath": f"{self.cwd}/{path}", "content": content}
        return self.tool("Write", given, result, "File created.")


def fix(transcript: Transcript, name: str = "total") -> None:
    """A small piece of work: a test fails, a function is changed, the test passes."""
    file, test = f"src/{name}.py", f"tests/test_{name}.py"
    original = f"def {name}(prices):\n    return 0\n"
    error = (
        "Exit code 1\n"
        "============================= test session starts ==============================\n"
        "collected 1 item\n\n"
        f"{test} F                                                     [100%]\n\n"
        "=================================== FAILURES ===================================\n"
        f"__________________________________ test_{name} _________________________________\n\n"
        f"    def test_{name}():\n"
        f">       assert {name}([1, 2, 3]) == 6\n"
        f"E       assert 0 == 6\n\n"
        f"{test}:4: AssertionError\n"
        "=========================== short test summary info ============================\n"
        f"FAILED {test}::test_{name} - assert 0 == 6\n"
        "============================== 1 failed in 0.02s ===============================\n"
    )
    transcript.prompt(f"The sum of an order is wrong: {name} gives 0. Please fix it.")
    transcript.say(f"I will look at {file} first.")
    transcript.fails("Bash", {"command": f"pytest {test}"}, error)
    transcript.edit(file, "return 0", "return sum(prices)", original)
    transcript.bash(f"pytest {test}", "1 passed in 0.01s")
    transcript.say(f"{name} now adds up the prices. We decided to leave rounding to the caller.")


def session_ids() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        digits = hashlib.sha256(f"session {number}".encode()).hexdigest()
        yield "-".join(
            (digits[:8], digits[8:12], "4" + digits[13:16], digits[16:20], digits[20:32])
        )
