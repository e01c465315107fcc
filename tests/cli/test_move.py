"""`ctx move`: from one's own store to the project's, and back."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx
from tests.faults import Disk, Stopped


def node(ctx: Ctx, node_id: str) -> dict[str, Any]:
    found: dict[str, Any] = ctx("show", node_id, "--format=json").json["node"]
    return found


def edges(ctx: Ctx, node_id: str) -> set[tuple[str, str, str]]:
    found = ctx("edges", node_id, "--format=json").json["edges"]
    return {(edge["from_id"][:12], edge["type"], edge["to_id"][:12]) for edge in found}


@pytest.fixture
def mine(project: Path, add: Add) -> str:
    words = ["--tag=tier:reference", "--tag=project:app", "--summary=S", "--meta=a=1"]
    return add("--user", "--type=fact", *words, "What I know")


def test_there_and_back(ctx: Ctx, mine: str) -> None:
    before = node(ctx, mine)
    ran = ctx("move", mine, "--project")
    assert ran.out.splitlines()[0] == "Moved 1 node to the project:"
    moved = {"scope": "project", "staged": "cli", "tags": ["tier:reference"]}
    assert node(ctx, mine) == {**before, **moved}
    assert ctx("move", mine, "--project").out == ("Unchanged: 1 node is in the project already.\n")
    ctx("update", mine, "--content=What we know", "--summary=", "--meta=a=", "--meta=b=2")
    ctx("tag", mine, "area:net", "tier:working")
    assert ctx("move", mine, "--user").code == 0
    found = node(ctx, mine)
    assert found["tags"] == ["area:net", "project:app", "tier:working"]
    assert (found["content"], found["summary"], found["metadata"]) == (
        "What we know", None, {"b": "2"},
    )  # fmt: skip
    assert (found["scope"], found["created_at"]) == ("user", before["created_at"])
    assert ctx("store", "check").code == 0


def test_undo_takes_both_stores_back(ctx: Ctx, mine: str, add: Add) -> None:
    other = add("--user", "--type=fact", "Rests on it")
    ctx("link", other, mine)
    before = node(ctx, mine), edges(ctx, mine)
    ctx("move", mine, "--project")
    assert edges(ctx, mine) == before[1]
    assert ctx("undo").code == 0
    assert (node(ctx, mine), edges(ctx, mine)) == before
    assert ctx("move", mine, "--project").code == 0
    assert node(ctx, mine)["scope"] == "project"
    assert ctx("undo").code == 0
    assert (node(ctx, mine), edges(ctx, mine)) == before


def test_what_is_done_to_it_is_done_where_it_is(ctx: Ctx, mine: str) -> None:
    ctx("move", mine, "--project")
    assert ctx("tag", mine, "x:y").code == 0
    assert node(ctx, mine)["tags"] == ["tier:reference", "x:y"]
    assert ctx("delete", mine).code == 0
    assert "was deleted" in ctx("show", mine).err


def test_edges_come_along_where_they_may(ctx: Ctx, mine: str, add: Add) -> None:
    stays, follows = (add("--user", "--type=fact", word) for word in ("Stays", "Follows"))
    theirs = add("--type=fact", "The project's")
    ctx("link", mine, follows, "--type=DEPENDS_ON")
    ctx("link", mine, theirs, "--type=RELATES_TO")
    ctx("link", stays, mine, "--type=DERIVED_FROM")
    Path("a.py").touch()
    anchor = ctx("relate", mine, "Mentions", "a.py", "--format=json").json["edge"]["to_id"][:12]
    before = edges(ctx, mine)
    assert len(before) == 4
    assert ctx("move", mine, follows, "--project").code == 0
    assert edges(ctx, mine) == before
    assert [node(ctx, each)["scope"] for each in (mine, follows, theirs, anchor, stays)] == [
        *["project"] * 4,
        "user",
    ]
    assert ctx("move", follows, mine, "--user").code == 0
    assert edges(ctx, mine) == before
    assert node(ctx, theirs)["scope"] == "project"


def test_edges_that_would_lead_out_of_the_project(ctx: Ctx, mine: str, add: Add) -> None:
    other = add("--user", "--type=fact", "Also mine")
    ctx("link", mine, other, "--type=DEPENDS_ON")
    for more in ([], ["--dry-run"]):
        ran = ctx("move", mine, "--project", *more)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            "error E011: An edge would lead from the project to what is yours alone.\n"
            f"  {mine} ── DEPENDS_ON → {other}\n"
            "  Move the other ends along, or give --drop-edges to go without.\n"
        )
    assert node(ctx, mine)["scope"] == "user"
    ran = ctx("move", mine, "--project", "--drop-edges")
    assert ran.out.endswith("1 edge stayed behind.\n")
    assert edges(ctx, mine) == set()
    assert edges(ctx, other) == set()
    assert ctx("undo").code == 0
    assert edges(ctx, mine) == {(mine, "DEPENDS_ON", other)}


def test_what_supersedes_stays_with_what_it_supersedes(ctx: Ctx, mine: str, add: Add) -> None:
    old = add("--user", "--type=fact", "Old")
    ctx("link", mine, old, "--type=SUPERSEDES")
    assert ctx("move", old, "--project").code == 2
    assert ctx("move", mine, "--project").code == 2
    assert ctx("move", mine, old, "--project").code == 0
    assert node(ctx, old)["superseded_by"] == node(ctx, mine)["id"]
    assert ctx("move", old, "--user").code == 2
    assert ctx("move", mine, "--user").code == 2


def test_a_document_stays_with_its_file(ctx: Ctx, project: Path) -> None:
    ctx("add", "decision", "Use jitter")
    ran = ctx("move", "decision_0001", "--user")
    assert ran.code == 2
    assert "has the file .ctx/narrative/decisions/0001-use-jitter-" in ran.err


def test_a_dry_run_changes_nothing(ctx: Ctx, mine: str) -> None:
    ran = ctx("move", mine, "--project", "--dry-run", "--format=json").json
    assert (ran["dry_run"], ran["scope"], [each["id"][:12] for each in ran["moved"]]) == (
        True, "project", [mine],
    )  # fmt: skip
    assert node(ctx, mine)["scope"] == "user"


def test_without_a_project(ctx: Ctx, repo: Path, add: Add) -> None:
    node_id = add("--type=fact", "x")
    assert ctx("move", node_id, "--project").err.startswith("error E012: No project store in ")
    assert ctx("move", node_id, "--user").out.startswith("Unchanged: ")
    assert ctx("move", node_id).code == 2


@pytest.mark.parametrize("target", ["--project", "--user"])
def test_killed_in_between_nothing_is_lost(ctx: Ctx, mine: str, target: str) -> None:
    if target == "--user":
        ctx("move", mine, "--project")
    kept = node(ctx, mine)["content"]
    stop, done = 0, False
    both = 0
    while not done:
        disk = Disk(stop)
        with disk.installed():
            try:
                done = ctx("move", mine, target).code == 0
            except Stopped:
                pass
        found = ctx("list", "--limit=0", "--format=json").json["nodes"]
        assert [each["content"] for each in found] == [kept]
        both += found[0]["scope"] == "project" and not done
        stop += 1
    assert node(ctx, mine)["scope"] == target.removeprefix("--")
    assert both
    assert stop > 10
