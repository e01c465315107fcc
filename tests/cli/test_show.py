"""`ctx show`"""

import re

from tests.cli.conftest import Add
from tests.conftest import Ctx


def test_a_node_whole(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=decision", "--tag=a:b", "--meta=rationale=cheap", "Line one\n  line two")
    ran = ctx("show", node_id)
    times = re.sub(r"\d{4}-\S+Z \(\d s\)", "TIME (0 s)", ran.out)
    assert re.sub(r"[0-9A-Z]{26}", "ID", times) == (
        "decision ID\n"
        "  source          user\n"
        "  tags            a:b\n"
        "  created         TIME (0 s)\n"
        "  tokens          6\n"
        "  meta rationale  cheap\n"
        "\n"
        "Line one\n  line two\n"
    )


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


def test_control_characters_do_not_steer_the_terminal(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "red \x1b[31m alert")
    assert "\x1b" not in ctx("list").out
    assert "\\x1b[31m" in ctx("list").out
    assert ctx("show", node_id, "--format=json").json["node"]["content"] == "red \x1b[31m alert"


def test_markdown(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "```\nfenced")
    assert "````" in ctx("show", node_id, "--format=markdown").out
