"""`ctx move`: from one's own store to the project's, and back."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ctx.layout import project_at
from ctx.objects.repository import Repository
from tests.cli.conftest import Add, Piped
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


def test_there_and_back(ctx: Ctx, mine: str, add: Add) -> None:
    other = add("--user", "--type=fact", "Rests on it")
    ctx("link", other, mine)
    before, linked = node(ctx, mine), edges(ctx, mine)
    tried = ctx("move", mine, "--project", "--dry-run", "--format=json").json
    assert (tried["dry_run"], tried["scope"]) == (True, "project")
    assert [each["id"][:12] for each in tried["moved"]] == [mine]
    assert node(ctx, mine) == before
    moved = {"scope": "project", "staged": "cli", "tags": ["tier:reference"]}
    for _ in range(2):
        assert ctx("move", mine, "--project").out.startswith("Moved 1 node to the project:\n")
        assert node(ctx, mine) == {**before, **moved}
        assert edges(ctx, mine) == linked
        # An undo takes both stores back.
        assert ctx("undo").code == 0
        assert (node(ctx, mine), edges(ctx, mine)) == (before, linked)
    ctx("move", mine, "--project")
    assert ctx("move", mine, "--project").out == "Unchanged: 1 node is already in the project.\n"
    ctx("update", mine, "--content=What we know", "--summary=", "--meta=a=", "--meta=b=2")
    ctx("tag", mine, "area:net", "tier:working")
    assert ctx("move", mine, "--user").code == 0
    found = node(ctx, mine)
    assert found["tags"] == ["area:net", "project:app", "tier:working"]
    assert (found["content"], found["summary"]) == ("What we know", None)
    assert (found["metadata"], found["scope"]) == ({"b": "2"}, "user")
    assert found["created_at"] == before["created_at"]
    assert ctx("store", "check").code == 0


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
            "error E011: An edge would lead from the project to your own store.\n"
            f"  {mine} ── DEPENDS_ON → {other}\n"
            "  Move the nodes at the other end too, or drop the edges with --drop-edges.\n"
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


# What is committed of what was moved


def published(project: Path) -> bytes:
    """Everything that git would carry to others."""
    objects = Repository(project_at(str(project))).objects
    said = [objects.read_file(path).payload for path in objects.everything()]
    narrative = (project / ".ctx" / "narrative").rglob("*.md")
    return b"\n".join([*said, *(path.read_bytes() for path in narrative)])


def is_whole(ctx: Ctx, project: Path) -> None:
    """The index is what it would be if it were made anew, and nothing is damaged."""
    before = ctx("export").out, ctx("undo", "--list", "--format=json").out
    shutil.rmtree(project / ".git" / "ctx" / "main" / "index")
    assert (ctx("export").out, ctx("undo", "--list", "--format=json").out) == before
    assert ctx("debug", "verify").code == 0


WAYS = {
    "moved there and undone": [
        ["add", "--user", "--type=fact", "--tag=PRIVATE:1", "PRIVATE"],
        ["move", "ID", "--project"],
        ["undo"],
    ],
    "by another session": [
        ["add", "--type=fact", "PRIVATE", "--session=agent"],
        ["tag", "ID", "PRIVATE:1"],
        ["move", "ID", "--user"],
    ],
    "to and fro": [
        ["add", "--type=fact", "PRIVATE"],
        ["move", "ID", "--user"],
        ["undo"],
        ["update", "ID", "--content=PRIVATE again"],
        ["move", "ID", "--user", "--session=agent"],
    ],
}


@pytest.mark.parametrize("order", [("cli", "agent"), ("agent", "cli")])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_moved_away_is_not_committed(
    ctx: Ctx, project: Path, add: Add, way: str, order: tuple[str, str]
) -> None:
    other = add("--type=fact", "Stays")
    node_id = add(*WAYS[way][0][1:])
    for words in WAYS[way][1:]:
        assert ctx(*[node_id if word == "ID" else word for word in words]).code == 0
    shown = node(ctx, node_id)
    assert shown["scope"] == "user"
    for session in order:
        made = ctx("commit", "--auto", "--session", session, "--format=json")
        assert made.code == 0, made.err
        assert b"PRIVATE" not in published(project)
        changes = [f"+ fact {other}: Stays"] if session == "cli" else []
        assert made.json["changes"] == changes
        assert made.json["message"] in ("Keep 1 node", "Keep what changed in the narrative", "")
        is_whole(ctx, project)
        assert node(ctx, node_id) == shown
    assert ctx("restore", node_id).code == 2
    for made in ctx("undo", "--list", "--format=json").json["changes"]:
        if made["action"] in ("move", "undo"):
            assert ctx("undo", made["id"]).code == 2
            assert node(ctx, node_id) == shown
    assert ctx("move", node_id, "--project").code == 0
    assert ctx("commit", "--auto", "--format=json").json["nodes"] == 1
    is_whole(ctx, project)


@pytest.mark.parametrize("session", ["cli", "agent"])
def test_of_what_was_committed_before_only_that_it_is_gone(
    ctx: Ctx, project: Path, add: Add, session: str
) -> None:
    node_id = add("--type=fact", "Known to all")
    ctx("commit", "--auto")
    ctx("update", node_id, "--content=PRIVATE", "--session", session)
    ctx("tag", node_id, "PRIVATE:1")
    ctx("move", node_id, "--user")
    shown = node(ctx, node_id)
    made = ctx("commit", "--auto", "--format=json").json
    assert (made["records"], made["changes"]) == (1, [f"- fact {node_id}: Known to all"])
    ctx("commit", "--auto", "--session", session)
    assert b"PRIVATE" not in published(project)
    is_whole(ctx, project)
    refused = ctx("undo")
    assert refused.code == 2
    assert "nowhere else" in refused.err
    assert node(ctx, node_id) == shown


def test_what_is_deleted_before_it_is_committed_was_never_there(
    ctx: Ctx, project: Path, add: Add
) -> None:
    for words in (["delete"], ["undo"]):
        node_id = add("--type=fact", "MISTAKE")
        assert ctx(*words, *([node_id] if words == ["delete"] else [])).code == 0
    assert ctx("commit", "--auto", "--format=json").json["commit"] is None
    assert b"MISTAKE" not in published(project)
    assert ctx("stage").out.endswith("Nothing staged.\n")
    assert ctx("restore", node_id).code == 1
    assert ctx("undo").code == 2
    is_whole(ctx, project)


def test_a_document_that_is_gone_with_its_node_is_not_committed(ctx: Ctx, project: Path) -> None:
    for title in ("MISTAKE", "Lost by accident"):
        made = ctx("add", "decision", title, "--format=json").json["node"]
        ctx("stage", "flush")
        (project / ".ctx" / "narrative" / made["metadata"]["file"]).unlink()
        if title == "MISTAKE":
            assert ctx("delete", made["id"], "--yes").code == 0
    assert ctx("commit", "--auto").code == 0
    said = published(project)
    assert b"MISTAKE" not in said
    assert b"Lost by accident" in said
    is_whole(ctx, project)


# Deleted after it was moved


def scopes(ctx: Ctx, node_id: str) -> list[str]:
    """The stores in which a node is alive."""
    every = ctx("list", "--limit=0", "--format=json", "--user").json["nodes"]
    every += ctx("list", "--limit=0", "--format=json", "--project").json["nodes"]
    return [each["scope"] for each in every if each["id"].startswith(node_id)]


def test_restore_brings_it_back_where_it_was(ctx: Ctx, mine: str) -> None:
    for to in ("project", "user"):
        assert ctx("move", mine, f"--{to}").code == 0
        assert ctx("restore", mine).err.startswith(f"error E011: The node {mine} is not deleted.")
        assert scopes(ctx, mine) == [to]
        assert ctx("delete", mine).code == 0
        assert scopes(ctx, mine) == []
        assert ctx("restore", mine).code == 0
        assert scopes(ctx, mine) == [to]
        assert ctx("undo").code == 0
        assert scopes(ctx, mine) == []
        assert ctx("restore", mine).code == 0


def deleted(ctx: Ctx, *words: str) -> tuple[list[str], int]:
    found = ctx("list", "--deleted", "--format=json", *words).json
    return [node["content"] for node in found["nodes"]], found["total"]


def test_deleted_nodes_are_listed_once(ctx: Ctx, mine: str, project: Path, add: Add) -> None:
    text = node(ctx, mine)["content"]
    assert ctx("move", mine, "--project").code == 0
    assert deleted(ctx) == ([], 0), "it was moved"
    assert ctx("undo").code == 0
    assert deleted(ctx) == ([], 0), "it is back"
    add("--type=fact", "A mistake")
    assert ctx("undo").code == 0
    assert deleted(ctx) == (["A mistake"], 1)
    assert ctx("list", "--deleted").out.count("\n") == 1
    assert ctx("delete", mine).code == 0
    assert deleted(ctx) == ([text, "A mistake"], 2)
    assert deleted(ctx, "--limit=1") == ([text], 2)
    other = add("--type=fact", "Last")
    assert ctx("delete", other).code == 0
    assert deleted(ctx, "--limit=2") == (["Last", text], 3)


def test_what_cannot_be_moved(ctx: Ctx, repo: Path, add: Add) -> None:
    node_id = add("--type=fact", "x")
    assert ctx("move", node_id, "--project").err.startswith("error E012: No project store in ")
    assert ctx("move", node_id, "--user").out.startswith("Unchanged: ")
    assert ctx("move", node_id).code == 2
    ctx("init")
    ctx("add", "decision", "Use jitter")
    ran = ctx("move", "decision_0001", "--user")
    assert ran.code == 2
    assert "has the file .ctx/narrative/decisions/0001-use-jitter-" in ran.err


def test_what_belongs_to_it_is_not_committed_either(
    ctx: Ctx, project: Path, add: Add, piped: Piped
) -> None:
    words = ("add", "command", "--stdin", "--name", "cargo test", "--exit-code=1")
    piped(b"PRIVATE\n" * 50)
    private = ctx(*words).out.split()[1]
    piped(b"SHARED\n" * 50)
    shared = ctx(*words, "--format=json").json
    assert ctx("move", private, "--user").code == 0
    stays, goes = (add("--type=fact", word) for word in ("Stays", "PRIVATE"))
    ctx("link", stays, goes, "--type=DEPENDS_ON", "--session=agent")
    ctx("link", goes, stays, "--type=RELATES_TO")
    assert ctx("move", goes, "--user", "--drop-edges").code == 0
    for session in ("cli", "agent"):
        assert ctx("commit", "--auto", "--session", session).code == 0
        said = published(project)
        assert goes.encode() not in said
        assert b"PRIVATE" not in said
        is_whole(ctx, project)
    assert b"SHARED\n" * 50 in said
    assert shared["blob"].encode() in said
