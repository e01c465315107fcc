"""The session of a call, where hosts name it."""

import json
from typing import Any

import pytest

from ctx.agents.known_hosts import session_in_call, session_in_environment

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
