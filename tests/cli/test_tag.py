"""`ctx tag`, `untag`, `tags`, `pin` and `unpin`."""

from tests.cli.conftest import Add
from tests.conftest import Ctx


def tags(ctx: Ctx, node_id: str) -> list[str]:
    found: list[str] = ctx("show", node_id, "--format=json").json["node"]["tags"]
    return found


def test_tagging_twice_is_tagging_once(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "Fact")
    first = ctx("tag", node_id, "project:shop", "a:b")
    assert first.out == f"Tagged: {node_id} + project:shop, + a:b\n"
    again = ctx("tag", node_id, "project:shop")
    assert (again.code, again.out) == (0, f"Unchanged: {node_id} has a:b project:shop\n")
    assert ctx("untag", node_id, "a:b", "never:there").out == f"Untagged: {node_id} - a:b\n"
    assert tags(ctx, node_id) == ["project:shop"]


def test_a_tier_replaces_another_but_not_the_pin(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "--tag=tier:reference", "Fact")
    ctx("pin", node_id)
    assert ctx("tag", node_id, "tier:working").out == (
        f"Tagged: {node_id} + tier:working, - tier:reference\n"
    )
    assert tags(ctx, node_id) == ["tier:pinned", "tier:working"]


def test_pinning(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "--tag=tier:working", "Two")
    assert ctx("pin", one, two).out == f"Pinned: {one} One\nPinned: {two} Two\n"
    assert ctx("pin", one).out == f"Already pinned: {one} One\n"
    unpinned = ctx("unpin", one, two)
    assert unpinned.out == f"Unpinned: {one} One\nUnpinned: {two} Two\n"
    assert unpinned.err == (
        f"Agents are not shown {one} at start. To show it: `ctx tag {one} tier:reference`\n"
    )
    assert tags(ctx, two) == ["tier:working"]


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


def test_two_spellings_that_look_the_same_are_one_tag(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "--tag=caf\u00e9:x", "Fact")
    assert ctx("tag", node_id, "cafe\u0301:x").out.startswith("Unchanged")
    assert node_id in ctx("query", "tag:cafe\u0301:x").out
    assert ctx("untag", node_id, "cafe\u0301:x").out.startswith("Untagged")


def test_an_invalid_tag(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "Fact")
    for word in ("*", "a:*", "::", ":x", "x:"):
        assert ctx("tag", node_id, word).code == 2
