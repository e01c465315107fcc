"""Real sessions in Qwen Code: what one remembers, the next one gets."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.host_clients import npm_programs
from tests.e2e.host_clients.chat_api import ChatRequest
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


def say(person: HostPerson, prompt: str, *replies: str | Reply) -> list[ChatRequest]:
    words = ["--yolo", "--output-format", "json", prompt]
    return person.play(words, VARIABLES, *replies)


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
