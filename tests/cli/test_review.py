import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx, git


class Merged(NamedTuple):
    """Nodes of a project in which two branches have changed the same, and were merged."""

    edited: str
    deleted: str
    tagged: str


@pytest.fixture(scope="module")
def template() -> dict[Merged, Path]:
    """Such a project, once it was made: it is the same for every test."""
    return {}


@pytest.fixture
def merged(
    repo: Path,
    ctx: Ctx,
    add: Add,
    template: dict[Merged, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Merged:
    if not template:
        nodes = _merged(ctx, add)
        made = tmp_path_factory.mktemp("merged") / "app"
        template[nodes] = Path(shutil.copytree(repo, made))
    [(nodes, made)] = template.items()
    shutil.copytree(made, repo, dirs_exist_ok=True)
    # Nobody has trusted it yet from the home that this test has.
    ctx("trust", "--yes")
    return nodes


def _merged(ctx: Ctx, add: Add) -> Merged:
    ctx("init")
    nodes = Merged(
        add("--type=fact", "Deploys run on Mondays"),
        add("--type=fact", "The cache is cold"),
        add("--type=fact", "Nobody edits this"),
    )
    _commit(ctx, "Base")
    git("switch", "-qc", "side")
    ctx("update", nodes.edited, "--content", "Deploys run on Fridays", "--meta", "who=Ann")
    ctx("update", nodes.deleted, "--content", "The cache is warm")
    ctx("tag", nodes.tagged, "a:b")
    _commit(ctx, "Side")
    git("switch", "-q", "main")
    ctx("update", nodes.edited, "--content", "Deploys run daily", "--meta", "who=Bob")
    ctx("delete", nodes.deleted)
    ctx("tag", nodes.tagged, "c:d")
    _commit(ctx, "Main")
    git("merge", "-q", "--no-edit", "side")
    return nodes


def _commit(ctx: Ctx, message: str) -> None:
    ctx("commit", "-m", message)
    git("add", "-A")
    git("commit", "-qm", message)


def open_fields(ctx: Ctx) -> list[tuple[str, str, list[Any]]]:
    found = ctx("review", "--format", "json").json["open"]
    return [
        (each["short_id"], each["field"], [version["value"] for version in each["versions"]])
        for each in found
    ]


def test_what_both_sides_changed_is_listed(merged: Merged, ctx: Ctx) -> None:
    every = [
        (merged.edited, "content", ["Deploys run daily", "Deploys run on Fridays"]),
        (merged.edited, "metadata who", ["Bob", "Ann"]),
        (merged.deleted, "node", [False, True]),
    ]
    assert open_fields(ctx) == every
    lines = ctx("review").out.splitlines()
    assert lines[:3] == [
        "3 open decisions.",
        "",
        f"fact {merged.edited} content: Deploys run daily",
    ]
    shown = [re.split(r" {2,}", line.strip()) for line in lines]
    assert [(each[0], each[-2], each[-1]) for each in shown if len(each) == 5] == [
        (number, "A Person <person@example.org>", text)
        for number, text in (
            ("1 (current)", "Deploys run daily"),
            ("2", "Deploys run on Fridays"),
            ("1 (current)", "Bob"),
            ("2", "Ann"),
            ("1 (current)", "deleted"),
            ("2", "edited"),
        )
    ]
    assert lines[-2:] == [
        "3 fields changed on both branches. Version 1 is in effect:",
        "Keep it with `ctx review --accept ID`, or take another with `--pick ID --version=N`.",
    ]
    ctx("review", "--accept", merged.edited)
    assert open_fields(ctx) == every[2:]
    ctx("undo")
    assert open_fields(ctx) == every
    # A commit that joins says how much is open, and the next word about a field settles it.
    assert ctx("commit", "-m", "Both", "--format", "json").json["disputes"] == 3
    ctx("update", merged.edited, "--content", "Deploys run when they are ready")
    assert open_fields(ctx) == every[1:]


def test_accepting_keeps_what_holds_for_everybody(
    merged: Merged, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        ("--accept", merged.tagged),
        ("--accept", merged.edited, "--field", "type"),
        ("--pick", merged.deleted, "--version", "3"),
        ("--pick", merged.deleted),
        ("--field", "content"),
        ("--version", "1"),
    ):
        assert ctx("review", *words).code in (1, 2)
    told = "3 conflicting changes after a merge"
    assert "To review: 3 conflicting changes; `ctx review`\n" in ctx("status").out
    assert "Next: `ctx review` shows changes" in ctx("status").out
    assert ctx("status", "--json").json["conflicts"] == 3
    assert f"warning: {told}: `ctx review`\n" in ctx("list").err
    assert f"warning: {told}: `ctx review`\n" in ctx("context").err
    assert told in ctx("doctor").out
    before = ctx("list", "--format", "json").json["nodes"]
    done = ctx("review", "--accept", merged.edited, "--format", "json").json
    assert [each["field"] for each in done["settled"]] == ["content", "metadata who"]
    assert [each["field"] for each in done["open"]] == ["node"]
    assert "\n  now: deleted\n" in ctx("review", "--accept", merged.deleted).out
    for command in ("status", "list", "context", "doctor"):
        ran = ctx(command)
        assert "conflicting" not in ran.out + ran.err
    after = ctx("list", "--format", "json").json["nodes"]
    assert [each["content"] for each in after] == [each["content"] for each in before]
    _commit(ctx, "Settled")
    git("clone", "-q", ".", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    assert ctx("trust", "--yes").code == 0
    assert ctx("review").out == "Nothing to review.\n"


def test_another_version_can_be_picked(merged: Merged, ctx: Ctx) -> None:
    refused = ctx("review", "--pick", merged.edited, "--version", "2")
    told = f"error E011: 2 fields of {merged.edited} are in conflict."
    assert (refused.code, refused.err.splitlines()[0]) == (2, told)
    words = ("review", "--pick", merged.edited, "--field=content", "--version=2")
    assert "\n  now: Deploys run on Fridays\n" in ctx(*words).out
    assert ctx("review", "--accept", merged.edited, "--json").json["current"] == ["Bob"]
    ran = ctx("review", "--pick", merged.deleted, "--version=2")
    assert ran.out == f"Settled: {merged.deleted} node: The cache is warm\n  now: edited\n"
    node = ctx("show", merged.edited, "--format", "json").json["node"]
    assert (node["content"], node["metadata"]) == ("Deploys run on Fridays", {"who": "Bob"})
    assert ctx("show", merged.deleted).code == 0
    assert open_fields(ctx) == []


def test_one_line_of_history_has_nothing_to_review(repo: Path, ctx: Ctx, add: Add) -> None:
    ctx("init")
    node = add("--type=fact", "One", "--session=agent-7")
    # Sessions of one working tree know of each other.
    ctx("update", node, "--content", "Two")
    for session in ("agent-7", "cli"):
        ctx("commit", "-m", session, f"--session={session}")
        assert ctx("review").out == "Nothing to review.\n"
    assert not any(ctx("review", "--format", "json").json.values())


def on_a_terminal(answers: str, **variables: str) -> str:
    """`ctx review` before a person who types these answers; what the screen shows."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ctx", "review"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "dumb", **variables},
    )
    os.close(terminal)
    os.write(controller, answers.encode())
    shown = b""
    try:
        # At its end, a terminal without a program gives an error.
        while part := os.read(controller, 65536):
            shown += part
    except OSError:
        pass
    finally:
        os.close(controller)
        assert process.wait(timeout=300) == 0
    return shown.decode()


def test_a_terminal_asks_for_each_decision(merged: Merged, ctx: Ctx, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "Deploys run twice a day" > "$1"\n')
    editor.chmod(0o700)
    shown = on_a_terminal("x\ne\ns\n2\n", EDITOR=str(editor))
    assert shown.count("Which version: 1/2, [e]dit, [s]kip, [q]uit?") == 3
    assert shown.count("Which version: 1/2, [s]kip, [q]uit?") == 1
    assert f"Settled: {merged.deleted} node" in shown
    node = ctx("show", merged.edited, "--format", "json").json["node"]
    assert node["content"] == "Deploys run twice a day"
    assert ctx("show", merged.deleted).code == 0
    assert [each[1] for each in open_fields(ctx)] == ["metadata who"]
    on_a_terminal("q\n")
    assert [each[1] for each in open_fields(ctx)] == ["metadata who"]


@pytest.fixture
def clones(repo: Path, ctx: Ctx, add: Add, tmp_path: Path) -> tuple[Path, Path, str]:
    """Two clones that know of one node."""
    ctx("init")
    node = add("--type=fact", "Deploys run on Mondays")
    _commit(ctx, "Base")
    git("config", "receive.denyCurrentBranch", "updateInstead")
    theirs = tmp_path / "theirs"
    git("clone", "-q", ".", str(theirs))
    assert ctx("-C", str(theirs), "trust", "--yes").code == 0
    return repo, theirs, node


def _told_by_them(ctx: Ctx, theirs: Path, node: str, content: str) -> None:
    """Let somebody else change the node, and merge that."""
    ours = os.getcwd()
    os.chdir(theirs)
    ctx("update", node, "--content", content)
    _commit(ctx, content)
    os.chdir(ours)
    git("pull", "-q", "--no-edit", str(theirs), "main")
    # It came from a folder, not from a trusted remote.
    assert ctx("review", "accept", "--all").code == 0


def test_what_comes_while_something_is_staged_is_listed(
    clones: tuple[Path, Path, str], ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs, node = clones
    ctx("update", node, "--content", "Ours")
    assert open_fields(ctx) == []
    _told_by_them(ctx, theirs, node, "Theirs")
    listed = [(node, "content", ["Theirs", "Ours"])]
    assert open_fields(ctx) == listed
    staged = ctx("review", "--format", "json").json["open"][0]["versions"][1]
    assert (staged["commit"], staged["author"], staged["session"]) == (None, "cli", "cli")
    assert " staged " in ctx("review").out
    # Anything else that the session says changes nothing about it.
    ctx("tag", node, "a:b")
    assert open_fields(ctx) == listed
    made = ctx("commit", "-m", "Ours", "--format", "json").json
    assert (made["disputes"], len(made["parents"])) == (1, 1)
    assert open_fields(ctx) == listed
    shutil.rmtree(ours / ".git/ctx/main/index")
    assert open_fields(ctx) == listed
    git("add", "-A")
    git("commit", "-qm", "ours")
    git("clone", "-q", ".", str(tmp_path / "third"))
    monkeypatch.chdir(tmp_path / "third")
    assert ctx("trust", "--yes").code == 0
    assert open_fields(ctx) == listed
    ctx("review", "--pick", node, "--version=2")
    assert open_fields(ctx) == []
    assert ctx("show", node, "--format", "json").json["node"]["content"] == "Ours"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "session"), [("update", "agent-7"), ("accept", "cli"), ("pick", "agent-7")]
)
def test_who_has_read_what_came_settles_it(
    clones: tuple[Path, Path, str], ctx: Ctx, way: str, session: str
) -> None:
    _, theirs, node = clones
    ctx("update", node, "--content", "Ours")
    _told_by_them(ctx, theirs, node, "Theirs")
    words = {
        "update": ["update", node, "--content", "Both"],
        "accept": ["review", "--accept", node],
        "pick": ["review", "--pick", node, "--version=2"],
    }
    assert ctx(*words[way], "--session", session).code == 0
    assert open_fields(ctx) == []
    for name in dict.fromkeys(["cli", session]):
        ctx("commit", "-m", name, "--session", name)
        assert open_fields(ctx) == []


def test_what_was_amended_was_known_to_what_came_after(repo: Path, ctx: Ctx, add: Add) -> None:
    ctx("init")
    node = add("--type=fact", "First")
    _commit(ctx, "A")
    git("switch", "-qc", "side")
    add("--type=fact", "Something else")
    _commit(ctx, "D")
    git("switch", "-q", "main")
    add("--type=fact", "Forgotten")
    ctx("commit", "--amend", "-m", "B")
    git("add", "-A")
    git("commit", "-qm", "B")
    ctx("update", node, "--content", "Second")
    _commit(ctx, "C")
    git("merge", "-q", "--no-edit", "side")
    assert open_fields(ctx) == []


def test_accepting_once_is_enough_where_two_lose_with_the_same_words(
    repo: Path, ctx: Ctx, add: Add
) -> None:
    ctx("init")
    node = add("--type=fact", "First")
    _commit(ctx, "A")
    for name, content in (("one", "Same"), ("two", "Same"), ("three", "Other")):
        git("switch", "-qc", name, "main")
        ctx("update", node, "--content", content)
        _commit(ctx, name)
    for name in ("one", "two"):
        git("merge", "-q", "--no-edit", name)
    assert open_fields(ctx) == [(node, "content", ["Other", "Same"])]
    ctx("review", "--accept", node)
    assert open_fields(ctx) == []
