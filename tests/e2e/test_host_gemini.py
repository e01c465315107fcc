"""Real sessions in Gemini CLI: what one remembers, the next one gets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import CTX
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
from tests.e2e.host_clients.gemini_api import serving_gemini
from tests.e2e.host_clients.host_person import FACT, REMEMBER, HostPerson

EXTENSION = Path(__file__).parents[2] / "plugins" / "gemini-cli"
VARIABLES = {
    "GEMINI_API_KEY": "none",
    "GOOGLE_GEMINI_BASE_URL": "{api}",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}
PRICE = "def price():\n    return 1\n"
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


@pytest.fixture
def person(surroundings: Path, tmp_path: Path) -> Iterator[HostPerson]:
    """A user of Gemini CLI with ctx. The test fails if a hook logs an error."""
    program = npm_programs.gemini()
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    someone = HostPerson(surroundings, project, program, npm_programs.GEMINI)
    someone.adds("Releases have names.")
    (surroundings / ".gemini").mkdir()
    (surroundings / ".gemini" / "settings.json").write_text(json.dumps(SETTINGS))
    someone.ctx("install", "--host", "gemini")
    yield someone
    someone.leaves()
    assert someone.complaints() == []


def say(
    person: HostPerson, prompt: str, *replies: Answer, resume: str = "", **more: Any
) -> list[ChatRequest]:
    words = ["--yolo", "-m", "gemini-2.5-flash", "--output-format", "json", "-p", prompt]
    words += ["--resume", resume] if resume else []
    return person.play(words, VARIABLES, *replies, serving=serving_gemini, **more)


def test_what_one_session_remembers_is_given_to_the_next(person: HostPerson) -> None:
    first = say(
        person,
        "Add the price, please.",
        Reply(("I look.",), (Tool("run_shell_command", {"command": "make price"}),)),
        Reply(
            (),
            (
                Tool("write_file", {"file_path": "shop.py", "content": PRICE}),
                Tool("read_file", {"file_path": "missing.py"}),
            ),
        ),
        f"Done. {REMEMBER}",
    )
    assert "Releases have names." in first[0].text
    (session,) = person.sessions(1)
    assert session["host"] == "gemini"
    assert person.steps(session["id"]) == [
        ("command", "make price"),
        ("prompt", "Add the price, please."),
        ("say", "Done."),
        ("say", "I look."),
        ("write", "shop.py"),
    ]
    (command,) = [
        step
        for step in person.ctx("sessions", "replay", session["id"])["steps"]
        if step["kind"] == "command"
    ]
    assert (command["ok"], command["exit_code"]) == (False, 2)
    # A resumed conversation has its first prompt and its context, and gets only what is new.
    resumed = say(person, "Go on.", "On it.", resume=session["id"])
    assert resumed[0].text.count("Add the price, please.") == 1
    assert resumed[0].text.count("Releases have names.") == 1
    assert FACT in resumed[0].text
    second = say(
        person,
        "When do deploys happen?",
        Reply((), (Tool("mcp_ctx_recall", {"query": "deploys"}),)),
        "On Fridays.",
    )
    assert FACT in second[0].text
    assert "Added `price`" in second[0].text
    assert "mcp_ctx_recall" in second[0].tools
    assert FACT in second[1].results[0]
    newest, _ = person.sessions(2)
    # A call of our own tools is no step.
    assert person.steps(newest["id"]) == [
        ("prompt", "When do deploys happen?"),
        ("say", "On Fridays."),
    ]
    # Everything is known already.
    done = person.ctx("import", "--from", "gemini")
    assert (done["sessions"], done["steps"]) == ([], 0)


def test_the_extension_of_this_repository_does_what_an_installation_does(
    person: HostPerson,
) -> None:
    person.ctx("uninstall", "--host", "gemini")
    person.puts_on_path("ctx", [CTX])
    install = ["extensions", "install", str(EXTENSION), "--consent", "--skip-settings"]
    person.play(install, VARIABLES, serving=serving_gemini)
    [request, *_] = say(person, "What do we name?", "Releases.")
    assert "Releases have names." in request.text
    (session,) = person.sessions(1)
    assert session["host"] == "gemini"
    assert ("say", "Releases.") in person.steps(session["id"])


def test_only_the_persons_words_become_the_users(person: HostPerson) -> None:
    say(
        person,
        PROMPT,
        calling("invoke_agent", agent_name="generalist", prompt=TASK),
        "Counted.",
        subagent=delegated(
            calling("list_directory", dir_path="."),
            calling("complete_task", result="There are three."),
        ),
    )
    session = check_words(person)
    # The conversation is compressed before its next request: it has two prompts, and is large.
    snapshot = f"<state_snapshot>{SUMMARY}</state_snapshot>"
    large = Reply((), (Tool("list_directory", {"dir_path": "."}),), input_tokens=985_000)
    asked = say(person, "Go on.", large, "On it.", resume=session, on_the_side=snapshot)
    assert SUMMARY in asked[-1].text
    assert PROMPT not in asked[-1].text
    check_words(person)
    check_context(say(person, "Hello.", "Hello.")[0].text)
    assert len(person.sessions(2)) == 2
