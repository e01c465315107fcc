"""`ctx undo`: every kind of change is taken back, and taken back again."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctx import clock, ids
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def without_times(text: str) -> str:
    return re.sub(r'"updated_at": ?"[^"]*"', "", text)


CHANGES = {
    "add": ["add", "--type=fact", "--tag=x:y", "New"],
    "update": ["update", "ONE", "--content=Changed", "--type=task", "--summary=", "--meta=k="],
    "delete": ["delete", "ONE"],
    "cascade": ["delete", "TWO", "--cascade"],
    "tag": ["tag", "ONE", "tier:off-context", "q:r"],
    "untag": ["untag", "ONE", "tier:reference"],
    "pin": ["pin", "ONE", "TWO"],
    "link": ["link", "TWO", "ONE", "--type=RELATES_TO"],
    "supersede": ["link", "TWO", "ONE", "--type=SUPERSEDES"],
    "evidence": ["link", "ONE", "TWO", "--type=DEPENDS_ON", "--confidence=medium"],
    "unlink": ["unlink", "ONE", "TWO"],
    "summarize": ["summarize", "ONE", "TWO", "--content=Both", "--archive-sources"],
    "view": ["view", "create", "facts", "--query=type:fact"],
    "budget": ["view", "update", "default", "--budget=80000"],
    "no view": ["view", "delete", "mine"],
    "forget": ["forget", "one two", "-y"],
}


def test_undoing_a_change_and_undoing_that(ctx: Ctx, add: Add) -> None:
    """A view has the age that it had, too."""

    def state() -> str:
        views = ctx("view", "list", "--format=json").out
        return without_times(ctx("export").out) + (views if "--budget" not in words else "")

    one = add("--type=fact", "--tag=tier:reference", "--summary=S", "--meta=k=v", "One two")
    two = add("--type=fact", "Two")
    ctx("link", one, two, "--type=DEPENDS_ON")
    ctx("view", "create", "mine", "--query=type:fact")
    for words in CHANGES.values():
        before = state()
        assert ctx(*[{"ONE": one, "TWO": two}.get(word, word) for word in words]).code == 0
        after = state()
        assert after != before
        assert ctx("undo").code == 0
        assert state() == before
        assert ctx("undo", change(ctx)).code == 0
        assert state() == after
        assert ctx("undo", change(ctx)).code == 0
        assert state() == before


def test_what_was_changed_since_stays(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "First")
    ctx("update", node_id, "--content=Second", "--type=task")
    of_update = change(ctx)
    ctx("update", node_id, "--content=Third")
    ran = ctx("undo", of_update)
    assert ran.err.startswith(f"warning: content of {node_id} changed since then and is kept.\n")
    node = ctx("show", node_id, "--format=json").json["node"]
    assert (node["content"], node["type"]) == ("Third", "fact")
    ctx("delete", node_id)
    ctx("restore", node_id)
    restored = change(ctx)
    ctx("update", node_id, "--content=Edited since", "--session=agent-7")
    assert "the node of" in ctx("undo", restored).err
    assert alive(ctx) == ["Edited since"]


def change(ctx: Ctx) -> str:
    """The newest change."""
    made: str = ctx("undo", "--list", "--limit=1", "--format=json").json["changes"][0]["id"]
    return made


def content(ctx: Ctx, node_id: str) -> str:
    found: str = ctx("show", node_id, "--format=json").json["node"]["content"]
    return found


def alive(ctx: Ctx) -> list[str]:
    return [node["content"] for node in ctx("list", "--format=json").json["nodes"]]


def test_the_order_of_undoing_does_not_matter(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "A0")
    ctx("update", node_id, "--content=B1")
    first = change(ctx)
    ctx("update", node_id, "--content=C2")
    second = change(ctx)
    ctx("undo", first)
    assert content(ctx, node_id) == "C2"
    ctx("undo", second)
    assert content(ctx, node_id) == "A0"


def test_undoing_what_was_made_by_a_clock_that_was_ahead(
    ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms()
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: (now + 365 * 86_400_000) * 1_000_000)
        ctx("add", "--type=fact", "Ahead")
    ids._source.forget()
    assert ctx("undo").code == 0
    assert alive(ctx) == []
    assert ctx("undo", change(ctx)).code == 0
    assert alive(ctx) == ["Ahead"]


@pytest.mark.slow
def test_several_who_undo_at_once_take_back_different_changes(ctx: Ctx, add: Add) -> None:
    for number in range(4):
        add("--type=fact", f"Fact {number}")
    command = [sys.executable, "-m", "ctx", "undo"]
    undoing = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(3)
    ]
    told = [process.communicate(timeout=300)[0].decode() for process in undoing]
    assert [process.returncode for process in undoing] == [0, 0, 0], told
    assert alive(ctx) == ["Fact 0"]


def test_what_others_have_committed_is_not_meant(
    ctx: Ctx, project: Path, add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("add", "-A")
    git("commit", "-qm", "init")
    theirs = tmp_path / "theirs"
    git("clone", "-q", str(project), str(theirs))
    add("--type=fact", "Mine, committed")
    assert ctx("commit", "--auto").code == 0
    git("add", "-A")
    git("commit", "-qm", "mine")
    add("--type=fact", "Mine, staged")
    monkeypatch.chdir(theirs)
    assert ctx("trust", "--yes").code == 0
    add("--type=fact", "Theirs")
    assert ctx("commit", "--auto").code == 0
    git("add", "-A")
    git("commit", "-qm", "theirs")
    monkeypatch.chdir(project)
    git("pull", "-q", "--no-rebase", "--no-edit", str(theirs), "main")
    assert ctx("review", "accept", "--all").code == 0
    assert sorted(alive(ctx)) == ["Mine, committed", "Mine, staged", "Theirs"]
    newest = change(ctx)
    for left in (["Mine, committed", "Theirs"], ["Theirs"]):
        assert ctx("undo").code == 0
        assert sorted(alive(ctx)) == left
    assert ctx("undo").code == 2
    assert ctx("undo", newest).code == 0
    assert alive(ctx) == []


def test_the_stores_are_gone_back_in_the_order_of_what_was_done(
    ctx: Ctx, project: Path, add: Add
) -> None:
    add("--type=fact", "--session=agent-7", "Theirs")
    for number in range(4):
        add("--type=fact", f"Fact {number}", *(["--user"] if number % 2 else []))
    ctx("move", add("--type=fact", "Moved"), "--user")
    # The move changes both stores and counts once.
    found = ctx("undo", "--list", "--limit=2", "--json").json
    assert ([made["action"] for made in found["changes"]], found["more"]) == (["move", "add"], 5)
    assert ctx("undo", "--list", "--limit=2").out.endswith("  … and 5 more (--limit)\n")
    every = ctx("undo", "--list", "--limit=0", "--json").json
    assert (len(every["changes"]), every["more"]) == (7, 0)
    assert "--limit" not in ctx("undo", "--list").out
    assert ctx("undo", "--dry-run").out.startswith("Would undo: move at ")
    assert ctx("undo").code == 0
    for left in range(6, 1, -1):
        assert len(alive(ctx)) == left
        assert ctx("undo").code == 0
    assert alive(ctx) == ["Theirs"]
    ran = ctx("undo")
    told = "error E011: The session cli has nothing to undo."
    assert (ran.code, ran.err.startswith(told)) == (2, True)
    for word in ("zz", "01", "--limit=x"):
        assert ctx("undo", word).code in (1, 2)


def test_the_order_of_undoing_and_redoing_does_not_matter(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "A0")
    made = []
    for content in ("B1", "C2"):
        ctx("update", node_id, f"--content={content}")
        made.append(change(ctx))
    undone = []
    for each, left in zip(made, ("C2", "A0"), strict=True):
        ctx("undo", each)
        undone.append(change(ctx))
        assert alive(ctx) == [left]
    for each in reversed(undone):
        ctx("undo", each)
        assert alive(ctx) == ["C2"]
    # A deletion that was repeated, and one of what an undo has deleted.
    ctx("delete", node_id)
    first = change(ctx)
    ctx("restore", node_id)
    ctx("delete", node_id)
    ctx("undo", first)
    assert alive(ctx) == []
    other = add("--type=fact", "A")
    added = change(ctx)
    ctx("delete", other)
    deleted = change(ctx)
    for each in (added, deleted):
        ctx("undo", each)
        assert alive(ctx) == []
