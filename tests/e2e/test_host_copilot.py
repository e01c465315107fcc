"""Real sessions in Copilot CLI: what one remembers, the next one gets."""

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
from tests.e2e.host_clients.host_person import FACT, REMEMBER, HostPerson

VARIABLES = {
    "COPILOT_OFFLINE": "true",
    "COPILOT_AUTO_UPDATE": "false",
    "COPILOT_PROVIDER_BASE_URL": "{api}",
    "COPILOT_PROVIDER_API_KEY": "none",
    "COPILOT_MODEL": "gpt-4.1",
}


@pytest.fixture
def person(surroundings: Path, tmp_path: Path) -> Iterator[HostPerson]:
    """A user of Copilot CLI with ctx. The test fails if a hook logs an error."""
    program = npm_programs.copilot()
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    someone = HostPerson(surroundings, project, program, npm_programs.COPILOT)
    someone.adds("Releases have names.")
    someone.ctx("install", "--host", "copilot")
    yield someone
    someone.leaves()
    assert someone.complaints() == []


def say(person: HostPerson, prompt: str, *replies: Answer, **more: Any) -> list[ChatRequest]:
    words = ["--allow-all-tools", "--no-auto-update", "--output-format", "json", "-p", prompt]
    return person.play(words, VARIABLES, *replies, **more)


def test_what_one_session_remembers_is_given_to_the_next(person: HostPerson) -> None:
    path = str(person.project / "shop.py")
    first = say(
        person,
        "Add the price, please.",
        Reply(
            ("I look.",),
            (
                Tool("bash", {"command": "make price", "description": "Runs make"}),
                Tool("create", {"path": path, "file_text": "def price():\n    return 1\n"}),
            ),
        ),
        Reply(
            (),
            (
                Tool("edit", {"path": path, "old_str": "return 1", "new_str": "return 2"}),
                Tool("view", {"path": str(person.project / "missing.py")}),
            ),
        ),
        f"Done. {REMEMBER}",
    )
    assert "Releases have names." in first[0].text
    assert "exit code 2" in first[1].results[0]
    (session,) = person.sessions(1)
    assert session["host"] == "copilot"
    assert person.steps(session["id"]) == [
        ("command", "make price"),
        ("prompt", "Add the price, please."),
        ("say", "Done."),
        ("say", "I look."),
        ("write", "shop.py"),
        ("write", "shop.py"),
    ]
    recall = Reply((), (Tool("ctx-recall", {"query": "Fridays"}),))
    second = say(person, "When do deploys happen?", recall, "On Fridays.")
    assert FACT in second[0].text
    assert "ctx-recall" in second[0].tools
    assert FACT in second[1].results[0]
    assert "Added `price`" in second[0].text
    assert len(person.sessions(2)) == 2


def test_only_the_persons_words_become_the_users(person: HostPerson) -> None:
    task = {"description": "Count prices", "agent_type": "general-purpose", "mode": "sync"}
    look = calling("bash", command="ls", description="List")
    say(
        person,
        PROMPT,
        calling("task", prompt=TASK, name="count", **task),
        "Counted.",
        # Its subagent has one too.
        subagent=delegated(
            calling("task", prompt=f"Inner: {TASK}", name="inner", **task),
            look,
            "There are three.",
            "They are three.",
        ),
    )
    session = check_words(person)
    steps = person.ctx("sessions", "replay", session)["steps"]
    assert [step["text"] for step in steps if step["agent"] and step["kind"] == "command"] == ["ls"]
    words = ["--allow-all-tools", "--no-auto-update", "--output-format", "json"]
    person.play([*words, f"--resume={session}", "-p", "/compact"], VARIABLES, SUMMARY)
    person.play([*words, f"--resume={session}", "-p", "Go on."], VARIABLES, "On it.")
    check_words(person)
    steps = person.ctx("sessions", "replay", session)["steps"]
    assert ("recap", SUMMARY) in [(step["kind"], step["text"]) for step in steps]
    check_context(say(person, "Hello.", "Hello.")[0].text)
    assert len(person.sessions(2)) == 2
