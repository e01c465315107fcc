"""Conversations in a project with its own store: initialised here, or an untrusted clone."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ctx.context.project_store_context import NOT_TRUSTED
from tests.conftest import Ctx, git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import CTX, Person


@pytest.fixture
def resident(person: Person) -> Person:
    """A user in a project that they initialised."""
    (person.home / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    person.ctx("init")
    return person


@pytest.fixture
def visitor(person: Person, tmp_path: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A user in a clone of the project of another person."""
    (person.home / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    theirs = tmp_path / "theirs" / "shop"
    git("init", "-q", "-b", "main", str(theirs))
    monkeypatch.chdir(theirs)
    monkeypatch.setenv("CTX_HOME", str(tmp_path / "theirs" / "home"))
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "--tag=tier:reference", "Deploys are on Tuesdays.").code == 0
    assert ctx("commit", "-m", "Deploys").code == 0
    git("add", ".")
    git("commit", "-qm", "All")
    shutil.rmtree(person.project)
    git("clone", "-q", str(theirs), str(person.project))
    return person


def shell(command: str) -> Reply:
    return Reply((), (Tool("Bash", {"command": command, "description": "Try"}),))


def where(node: dict[str, Any]) -> tuple[str, list[str]]:
    return node["scope"], node["tags"]


def committed(person: Person) -> list[str]:
    """The sessions of the commits, newest first."""
    person.settles()
    return [commit["session"] for commit in person.ctx("log")["commits"]]


def test_nodes_of_both_stores_are_shown_in_the_next_conversation(resident: Person) -> None:
    person = resident
    person.puts_on_path("ctx", [CTX])
    mine = person.adds("Mine.", "--user", "--type", "fact", "--tag", "tier:reference")
    ours = person.adds("Ours.")
    first = person.say(
        "Hello.",
        shell("ctx add --type fact 'By hand.' && ctx list --format json > seen.json"),
        '<ctx:remember type="fact" tags="tier:reference">Deploys are on Tuesdays.</ctx:remember>'
        '<ctx:task name="Token refresh" action="start"/> <ctx:recall query="deploys"/>',
    )
    context = first.request.injected_at("SessionStart")
    assert f"- [fact:{ours[:12]}] Ours.\n- [fact:{mine[:12]}] Mine.\n" in context
    seen = json.loads((person.project / "seen.json").read_text())["nodes"]
    staged = {node["content"]: node["staged"] for node in seen}
    assert staged == {"By hand.": first.session, "Ours.": "cli", "Mine.": None}

    nodes = person.nodes()
    assert where(nodes["Deploys are on Tuesdays."]) == ("project", ["tier:reference"])
    assert where(nodes["Mine."]) == ("user", ["tier:reference"])
    (file,) = (person.project / ".ctx" / "narrative" / "tasks").glob("*token-refresh*.md")
    assert "Token refresh" in file.read_text()
    assert committed(person)[0] == first.session, "what is over is committed"

    second = person.say("And?", "On Tuesdays.", resume=first.session)
    given = second.request.newest
    assert "] (agent) Deploys are on Tuesdays.\n" in given.injected_at("UserPromptSubmit")
    changed = given.injected_at("SessionStart")
    assert "Deploys are on Tuesdays." in changed
    assert "Ours." not in changed

    third = person.say("When do we deploy?", "On Tuesdays.")
    context = third.request.injected_at("SessionStart")
    for known in ("Deploys are on Tuesdays.", "Token refresh", "Ours.", "Mine."):
        assert context.count(known) == 1
    assert "(by " not in context, "all of it was written here"
    given_ids = {item["id"] for item in person.ctx("why", third.session)["items"]}
    assert {mine, ours} <= given_ids


def test_two_concurrent_conversations_stage_separately(resident: Person) -> None:
    def say(name: str) -> str:
        remember = f'<ctx:remember type="fact">{name} was here.</ctx:remember>'
        return resident.say(f"I am {name}.", remember).session

    with ThreadPoolExecutor() as pool:
        sessions = list(pool.map(say, ["Anna", "Berta"]))
    assert sorted(resident.nodes()) == ["Anna was here.", "Berta was here."]
    assert sorted(committed(resident)[:2]) == sorted(sessions)


def test_an_untrusted_project_is_not_shown_before_it_is_trusted(visitor: Person) -> None:
    person = visitor
    person.adds("Mine.", "--user", "--type", "fact", "--tag", "tier:reference")
    first = person.say(
        "When do we deploy?",
        '<ctx:remember type="fact">Asked.</ctx:remember><ctx:recall query="deploys"/>',
    )
    context = first.request.injected_at("SessionStart")
    assert NOT_TRUSTED.strip() in context
    assert "] Mine.\n" in context
    assert "Tuesdays" not in first.request.text
    assert where(person.nodes()["Asked."]) == ("user", ["project:shop"])
    assert git("status", "--porcelain", cwd=person.project) == ""

    person.ctx("trust", "--yes")
    second = person.say("And?", "Let me see.", resume=first.session)
    assert "Tuesdays" not in second.request.newest.injected_at("UserPromptSubmit"), (
        "recalled before"
    )
    third = person.say("When do we deploy?", "On Tuesdays.")
    context = third.request.injected_at("SessionStart")
    assert "] (by A Person) Deploys are on Tuesdays.\n" in context
    assert NOT_TRUSTED.strip() not in context


def test_an_agent_is_told_about_a_file_before_it_edits_it(resident: Person) -> None:
    person = resident
    path = person.project / "auth.py"
    path.write_text("def refresh(): ...\n")
    rule = "The token is never logged"
    person.ctx("add", "decision", rule, "--no-tier", "--mention", "auth.py")
    person.say("Hello.", "Hello.")
    person.settles()
    said = person.say(
        "Write it.",
        Reply((), (Tool("Read", {"file_path": str(path)}),)),
        Reply((), (Tool("Write", {"file_path": str(path), "content": "x = 1\n"}),)),
        Reply((), (Tool("Write", {"file_path": str(path), "content": "x = 2\n"}),)),
        "Done.",
    )
    assert path.read_text() == "x = 2\n"
    assert rule not in said.requests[1].text
    if person.client.reports_hooks:
        # Older clients do not pass it on.
        assert said.requests[-1].text.count(f"## Before you edit auth.py\n- [decision] {rule}") == 1
        person.settles()
        assert person.ctx("why", said.session)["items"][-1]["layer"] == "before_edit"
