"""Conversations in a project with its own store: initialised here, or an untrusted clone."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ctx.context.project_store_context import NOT_TRUSTED
from tests.conftest import Ctx, git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import Person


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


def where(node: dict[str, Any]) -> tuple[str, list[str]]:
    return node["scope"], node["tags"]


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
    assert rule not in said.requests[0].text
    if person.client.reports_hooks:
        # Older clients do not pass it on. It comes when the file is read, and once.
        about = f"## Before you edit auth.py\n- [decision] {rule}"
        assert [request.text.count(about) for request in said.requests[1:]] == [1, 1, 1]
        person.settles()
        assert person.ctx("why", said.session)["items"][-1]["layer"] == "before_edit"
