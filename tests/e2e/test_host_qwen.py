"""Real sessions in Qwen Code: what one remembers, the next one gets."""

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
from tests.e2e.host_clients.host_person import FACT, REMEMBER, HostPerson

VARIABLES = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "{api}", "OPENAI_MODEL": "scripted"}
SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}


@pytest.fixture
def person(surroundings: Path, tmp_path: Path) -> Iterator[HostPerson]:
    """A user of Qwen Code with ctx. The test fails if a hook logs an error."""
    program = npm_programs.qwen()
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    someone = HostPerson(surroundings, project, program, npm_programs.QWEN)
    someone.adds("Releases have names.")
    settings = surroundings / ".qwen" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(SETTINGS))
    someone.ctx("install", "--host", "qwen")
    yield someone
    someone.leaves()
    assert someone.complaints() == []


def say(person: HostPerson, prompt: str, *replies: Answer, **more: Any) -> list[ChatRequest]:
    words = ["--yolo", "--output-format", "json", prompt]
    return person.play(words, VARIABLES, *replies, **more)


def test_what_one_session_remembers_is_given_to_the_next(person: HostPerson) -> None:
    path = str(person.project / "shop.py")
    shell = {"command": "make price", "description": "Runs make", "is_background": False}
    first = say(
        person,
        "Add the price, please.",
        Reply(
            ("I look.",),
            (
                Tool("run_shell_command", shell),
                Tool("write_file", {"file_path": path, "content": "def price():\n    return 1\n"}),
            ),
        ),
        f"Done. {REMEMBER}",
    )
    assert "Releases have names." in first[0].text
    assert "Exit Code: 2" in first[1].results[0]
    # Its hooks do not report the end of such a session.
    (session,) = person.sessions(0)
    assert session["host"] == "qwen"
    steps = person.steps(session["id"])
    assert [step for step in steps if step[0] != "say"] == [
        ("command", "make price"),
        ("prompt", "Add the price, please."),
        ("write", "shop.py"),
    ]
    recall = Reply((), (Tool("mcp__ctx__recall", {"query": "Fridays"}),))
    second = say(person, "When do deploys happen?", recall, "On Fridays.")
    assert FACT in second[0].text
    # The client lists tools of servers in a text, and explains them on request.
    assert "mcp__ctx__recall" in second[0].text
    assert FACT in second[1].results[0]


def test_only_the_persons_words_become_the_users(person: HostPerson) -> None:
    shell = calling("run_shell_command", command="ls", description="List", is_background=False)
    say(
        person,
        PROMPT,
        calling("agent", description="Count", prompt=TASK, subagent_type="general-purpose"),
        "Counting goes on.",
        # It is told when the subagent has ended.
        "Counted.",
        subagent=delegated(shell, "There are three."),
    )
    session = check_words(person, ended=False)
    words = ["--yolo", "--output-format", "json", "--resume", session]
    person.play([*words, "/compress"], VARIABLES, f"<state_snapshot>{SUMMARY}</state_snapshot>")
    person.play([*words, "Go on."], VARIABLES, "On it.")
    check_words(person, ended=False)
    steps = person.ctx("sessions", "replay", session)["steps"]
    assert ("mark", "compacted") in [(step["kind"], step["text"]) for step in steps]
    check_context(say(person, "Hello.", "Hello.")[0].text)
