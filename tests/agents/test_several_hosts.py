"""One project, several hosts: each begins with what the others left."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.codex.hooks import CodexHooks
from ctx.agents.gemini.hooks import GeminiHooks
from ctx.agents.known_hosts import (
    session_in_call,
    session_in_environment,
    without_sessions,
)
from ctx.agents.runtime import hook
from ctx.agents.runtime.hook import Hook
from ctx.agents.runtime.host_hooks import HostHooks
from tests.capture.conversations import nothing_started
from tests.conftest import Ctx

REMEMBER = "<ctx:remember type='fact' tags='tier:reference'>Builds run on Mondays.</ctx:remember>"


class Place:
    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder

    def run(self, host: HostHooks, word: str, *options: str, **more: Any) -> str:
        """Run a hook; the text for the agent."""
        variables = {"CTX_HOME": str(self.home), "CTX_WORKER_AUTOSTART": "0"}
        payload = {"session_id": f"{host.spool_name}-1", "cwd": str(self.folder), **more}
        data = json.dumps(payload).encode()
        with nothing_started():
            printed = hook.answer(Hook(word, list(options), variables, host), lambda: data)
        answer = json.loads(printed) if printed else {}
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.fixture
def place(surroundings: Path, repo: Path, ctx: Ctx) -> Place:
    found = Place(surroundings / ".ctx", repo)
    found.run(ClaudeHooks(), "stop", "--response", REMEMBER, session_id="first")
    assert ctx("hook", "apply").code == 0
    return found


def test_codex_begins_with_what_claude_code_left(place: Place) -> None:
    assert "Builds run on Mondays." in place.run(CodexHooks(), "session-start", source="startup")


def test_gemini_gets_its_context_with_the_first_prompt(place: Place) -> None:
    host = GeminiHooks()
    assert place.run(host, "session-start", source="startup") == ""
    first = place.run(host, "prompt-submit", prompt="When do builds run?")
    assert first.count("Builds run on Mondays.") == 1
    assert "Mondays" not in place.run(host, "prompt-submit", prompt="And then?")
    # A resumed conversation still has it, if its transcript does.
    transcript = place.folder / "chat.jsonl"
    transcript.write_text("<hook_context>…</hook_context>\n")
    place.run(host, "session-start", source="resume", transcript_path=str(transcript))
    resumed = place.run(host, "prompt-submit", prompt="Go on.", transcript_path=str(transcript))
    assert "Mondays" not in resumed


def test_gemini_gets_its_context_without_a_hook_at_the_start(place: Place) -> None:
    host = GeminiHooks()
    assert "Builds run on Mondays." in place.run(host, "prompt-submit", prompt="Hello.")
    assert "Mondays" not in place.run(host, "prompt-submit", prompt="And then?")


def test_a_worker_gets_what_applies_to_all_sessions() -> None:
    kept = "CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME GEMINI_API_KEY QWEN_HOME PATH"
    dropped = "CLAUDECODE CODEX_CI COPILOT_CLI GEMINI_SESSION_ID OPENCODE_PID QWEN_PROJECT_DIR"
    given = dict.fromkeys(f"{kept} {dropped} CLAUDE_PROJECT_DIR".split(), "x")
    assert set(without_sessions(given)) == set(kept.split())


def test_a_response_that_is_given_by_hand_counts() -> None:
    payload = json.dumps({"session_id": "one", "response": "Said before."}).encode()
    session, changed = CodexHooks().with_response(payload, "other", "/work", "Now.")
    fields = {"session_id": "one", "cwd": "/work", "response": "Now."}
    assert (session, json.loads(changed)) == ("one", fields)


# The session of a call of the MCP server

TURN = "x-codex-turn-metadata"


@pytest.mark.parametrize(
    ("meta", "session"),
    [
        ({}, ""),
        ({TURN: {"session_id": "one", "thread_id": "two"}}, "one"),
        ({TURN: {"thread_id": "two"}}, "two"),
        ({TURN: json.dumps({"session_id": "one"})}, "one"),
        ({TURN: "not JSON"}, ""),
        ({TURN: [1]}, ""),
        ({TURN: {"session_id": 5}}, ""),
        ({"progressToken": 1}, ""),
    ],
)
def test_codex_names_it_in_each_call(meta: dict[str, Any], session: str) -> None:
    assert session_in_call(meta) == session


def test_others_name_it_in_the_environment() -> None:
    assert session_in_environment({"COPILOT_AGENT_SESSION_ID": "one"}) == "one"
    assert session_in_environment({"GEMINI_SESSION_ID": "", "QWEN_CODE_SESSION_ID": "two"}) == "two"
    assert session_in_environment({"HOME": "/home/ada"}) == ""
