"""Real sessions in OpenCode: what one remembers, the next one gets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.delegated_work import (
    PROMPT,
    SUMMARY,
    TASK,
    calling,
    check_context,
    check_words,
    delegated,
)
from tests.e2e.host_clients import npm_programs
from tests.e2e.host_clients.chat_api import Answer, ChatRequest
from tests.e2e.host_clients.host_person import FACT, NOWHERE, REMEMBER, HostPerson

VARIABLES = {
    "MODEL_URL": "{api}",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    # At its start it installs a package for plugins; ours needs none.
    "npm_config_fetch_retries": "0",
    "npm_config_registry": NOWHERE,
}
MODEL = {"name": "scripted", "limit": {"context": 200_000, "output": 8_000}}
SETTINGS = {
    "autoupdate": False,
    "share": "disabled",
    "model": "scripted/scripted",
    "small_model": "scripted/scripted",
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{env:MODEL_URL}", "apiKey": "none"},
            "models": {"scripted": MODEL},
        }
    },
}


@pytest.fixture
def person(surroundings: Path, tmp_path: Path) -> Iterator[HostPerson]:
    """A user of OpenCode with ctx. The test fails if a hook logs an error."""
    program = npm_programs.opencode()
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    someone = HostPerson(surroundings, project, program, npm_programs.OPENCODE)
    someone.adds("Releases have names.")
    folder = surroundings / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(SETTINGS))
    someone.ctx("install", "--host", "opencode")
    yield someone
    someone.leaves()
    assert someone.complaints() == []


def say(person: HostPerson, prompt: str, *replies: Answer, **more: Any) -> list[ChatRequest]:
    return person.play(["run", "--format", "json", prompt], VARIABLES, *replies, **more)


def test_what_one_session_remembers_is_given_to_the_next(person: HostPerson) -> None:
    path = str(person.project / "shop.py")
    first = say(
        person,
        "Add the price, please.",
        Reply(
            ("I look.",),
            (
                Tool("bash", {"command": "make price", "description": "Runs make"}),
                Tool("write", {"filePath": path, "content": "def price():\n    return 1\n"}),
            ),
        ),
        Reply(
            (),
            (
                Tool("edit", {"filePath": path, "oldString": "return 1", "newString": "return 2"}),
                Tool("read", {"filePath": str(person.project / "missing.py")}),
            ),
        ),
        f"Done. {REMEMBER}",
    )
    assert "Releases have names." in first[0].text
    assert "File not found" in first[2].results[3]
    (session,) = person.sessions(1)
    assert session["host"] == "opencode"
    assert person.steps(session["id"]) == [
        ("command", "make price"),
        ("prompt", "Add the price, please."),
        ("say", "Done."),
        ("say", "I look."),
        ("write", "shop.py"),
        ("write", "shop.py"),
    ]
    recall = Reply((), (Tool("ctx_recall", {"query": "Fridays"}),))
    second = say(person, "When do deploys happen?", recall, "On Fridays.")
    assert FACT in second[0].text
    assert "ctx_recall" in second[0].tools
    assert FACT in second[1].results[0]
    assert "Added `price`" in second[0].text
    assert len(person.sessions(2)) == 2


def test_only_the_persons_words_become_the_users(person: HostPerson) -> None:
    look = calling("bash", command="ls", description="List")
    say(
        person,
        PROMPT,
        calling("task", description="Count prices", prompt=TASK, subagent_type="general"),
        # The next request would be too large: the conversation is compacted first.
        look._replace(input_tokens=198_000),
        "Counted.",
        subagent=delegated(look, "There are three."),
        on_the_side=SUMMARY,
    )
    session = check_words(person)
    steps = person.ctx("sessions", "replay", session)["steps"]
    assert ("recap", SUMMARY) in [(step["kind"], step["text"]) for step in steps]
    assert [step["text"] for step in steps if step["agent"] and step["kind"] == "command"] == ["ls"]
    check_context(say(person, "Hello.", "Hello.")[0].text)
    assert len(person.sessions(2)) == 2
