"""`ctx show`, `update`, `tag`, `untag`, `tags`, `pin` and `unpin`: one node, shown and changed."""

import re
from typing import Any

from tests.cli.conftest import Add
from tests.conftest import Ctx


def node(ctx: Ctx, node_id: str) -> Any:
    return ctx("show", node_id, "--format=json").json["node"]


def test_a_node_is_shown_whole(ctx: Ctx, add: Add) -> None:
    words = ["--type=decision", "--tag=a:b", "--meta=rationale=cheap", "--summary=Two lines"]
    ran = ctx("show", add(*words, "Line one\n  line two"))
    times = re.sub(r"\d{4}-\S+Z \(\d s\)", "TIME (0 s)", ran.out)
    assert re.sub(r"[0-9A-Z]{26}", "ID", times) == (
        "decision ID\n"
        "  source          user\n"
        "  tags            a:b\n"
        "  created         TIME (0 s)\n"
        "  tokens          6\n"
        "  summary         Two lines\n"
        "  meta rationale  cheap\n"
        "\n"
        "Line one\n  line two\n"
    )
    # Control characters do not steer the terminal, and fences stay closed.
    node_id = add("--type=fact", "red \x1b[31m alert\n```\nfenced")
    assert "\x1b" not in ctx("list").out
    assert "\\x1b[31m" in ctx("list").out
    assert node(ctx, node_id)["content"] == "red \x1b[31m alert\n```\nfenced"
    assert "````" in ctx("show", node_id, "--format=markdown").out


def test_edges_and_history(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "--session=s-1", "Two")
    ctx("tag", one, "x:y")
    ctx("link", two, one, "--type=SUPERSEDES")
    ctx("update", one, "--content=Uno")
    ctx("untag", one, "x:y")
    ran = ctx("show", one, "--with-edges", "--history")
    assert f"  ← SUPERSEDES ──  {two}  fact  Two\n" in ran.out
    history = ctx("show", one, "--history", "--format=json").json["history"]
    assert [(version["action"], version["what"]) for version in history] == [
        ("add", "type: fact, content: One"),
        ("tag", "+ x:y"),
        ("link", f"+ {two} SUPERSEDES → this"),
        ("update", "content: Uno"),
        ("untag", "- x:y"),
    ]


def test_fields_change_and_others_stay(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "--meta=a=1", "--meta=b=2", "--summary=Old", "Before")
    ran = ctx("update", node_id, "--content=After", "--type=decision", "--meta=b=3", "--meta=a=")
    assert ran.out == f"Updated: {node_id} (type, content, metadata)\n"
    found = node(ctx, node_id)
    assert (found["type"], found["content"], found["summary"]) == ("decision", "After", "Old")
    assert found["metadata"] == {"b": "3"}
    assert ctx("search", "after").out.startswith(f"  {node_id}")
    assert ctx("search", "before").out == "No matching nodes.\n"
    assert ctx("update", node_id, "--content=After").out == f"Unchanged: {node_id}\n"
    assert len(ctx("undo", "--list", "--format=json").json["changes"]) == 2
    assert ctx("update", node_id, "Deploys run", "on Mondays").out.endswith(" (content)\n")
    assert node(ctx, node_id)["content"] == "Deploys run on Mondays"
    assert ctx("update", node_id, "One", "--content=Other").code == 2
    ran = ctx("update", node_id)
    assert (ran.code, ran.err.startswith("error E011: Nothing to change.")) == (2, True)
    for name in ("01ZZZZZZZZZZ", "zz", "", "not/an/id"):
        ran = ctx("update", name, "--content=x")
        assert (ran.code, ran.err[:12]) == (1, "error E020: ")


def test_tagging_twice_is_tagging_once(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "Fact")
    first = ctx("tag", node_id, "project:shop", "a:b")
    assert first.out == f"Tagged: {node_id} + project:shop, + a:b\n"
    again = ctx("tag", node_id, "project:shop")
    assert (again.code, again.out) == (0, f"Unchanged: {node_id} has a:b project:shop\n")
    assert ctx("untag", node_id, "a:b", "never:there").out == f"Untagged: {node_id} - a:b\n"
    assert node(ctx, node_id)["tags"] == ["project:shop"]
    # Two spellings that look the same are one tag.
    assert ctx("tag", node_id, "caf\u00e9:x").out.startswith("Tagged")
    assert ctx("tag", node_id, "cafe\u0301:x").out.startswith("Unchanged")
    assert node_id in ctx("query", "tag:cafe\u0301:x").out
    assert ctx("untag", node_id, "cafe\u0301:x").out.startswith("Untagged")
    for word in ("*", "a:*", "::", ":x", "x:"):
        assert ctx("tag", node_id, word).code == 2


def test_pins_and_tiers(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "--tag=tier:reference", "Two")
    assert ctx("pin", one, two).out == f"Pinned: {one} One\nPinned: {two} Two\n"
    assert ctx("pin", one).out == f"Already pinned: {one} One\n"
    # A tier replaces another, but not the pin.
    assert ctx("tag", two, "tier:working").out == (
        f"Tagged: {two} + tier:working, - tier:reference\n"
    )
    assert node(ctx, two)["tags"] == ["tier:pinned", "tier:working"]
    unpinned = ctx("unpin", one, two)
    assert unpinned.out == f"Unpinned: {one} One\nUnpinned: {two} Two\n"
    assert unpinned.err == (
        f"Agents are not shown {one} at start. To show it: `ctx tag {one} tier:reference`\n"
    )
    assert node(ctx, two)["tags"] == ["tier:working"]


def test_listing_tags(ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=task:a", "--tag=x:y", "One")
    add("--type=fact", "--tag=task:a", "--tag=task:b", "Two")
    assert ctx("tags").out == "  task:a  2\n  task:b  1\n  x:y     1\n"
    assert ctx("tags", "--prefix=task:", "--format=json").json == {
        "tags": [
            {"tag": "task:a", "nodes": 2, "user": 2, "project": 0},
            {"tag": "task:b", "nodes": 1, "user": 1, "project": 0},
        ],
        "scopes": ["user"],
    }
    assert ctx("tags", "--prefix=q").out == "No tags.\n"
    assert ctx("tags", "--format=markdown").out.startswith("| tag | nodes |\n| --- | --- |\n")
