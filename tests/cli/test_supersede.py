"""What takes the place of what: chains, and circles that nobody meant."""

import json
from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx


def listed(ctx: Ctx) -> set[str]:
    return {node["id"][:12] for node in ctx("list", "--format=json").json["nodes"]}


def test_a_chain_shows_its_newest(ctx: Ctx, add: Add) -> None:
    one, two, three = (add("--type=fact", name) for name in ("Aa", "Bb", "Cc"))
    ctx("link", two, one, "--type=SUPERSEDES")
    ctx("link", three, two, "--type=SUPERSEDES")
    assert listed(ctx) == {three}
    ctx("delete", three)
    assert listed(ctx) == {two}


def test_restoring_cannot_hide_everything(ctx: Ctx, add: Add) -> None:
    one, two, three = (add("--type=fact", name) for name in ("Aa", "Bb", "Cc"))
    ctx("link", one, two, "--type=SUPERSEDES")
    ctx("link", two, three, "--type=SUPERSEDES")
    ctx("delete", two)
    assert ctx("link", three, one, "--type=SUPERSEDES").code == 0
    ctx("restore", two)
    assert listed(ctx) == {one, two, three}, "in a circle none comes after another"
    ctx("unlink", three, one)
    assert listed(ctx) == {one}
    assert ctx("store", "check").code == 0


def test_undoing_cannot_hide_everything(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "Aa"), add("--type=fact", "Bb")
    ctx("link", one, two, "--type=SUPERSEDES")
    ctx("unlink", one, two)
    unlinked = ctx("undo", "--list", "--limit=1", "--format=json").json["changes"][0]["id"]
    ctx("link", two, one, "--type=SUPERSEDES")
    assert listed(ctx) == {two}
    ctx("undo", unlinked)
    assert listed(ctx) == {one, two}


def test_an_import_cannot_hide_everything(ctx: Ctx, folder: Path) -> None:
    made = "2026-01-20T10:00:00Z"
    ids = ["01KFDGRP00AAAAAAAAAAAAAAAA", "01KFDGRP00BBBBBBBBBBBBBBBB"]
    times = {"created_at": made, "updated_at": made}
    nodes = [{"id": i, "type": "fact", "content": i, **times} for i in ids]
    edges = [
        {
            "id": f"01KFDGRP01{n:016d}",
            "from_id": ids[n],
            "to_id": ids[1 - n],
            "type": "SUPERSEDES",
            "created_at": made,
        }
        for n in (0, 1)
    ]
    (folder / "circle.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert ctx("import", "circle.json").code == 0
    assert len(listed(ctx)) == 2


def test_a_search_says_that_something_was_once_so(ctx: Ctx, add: Add) -> None:
    old = add("--type=fact", "Postgres for the orders")
    add("--type=fact", f"--supersedes={old}", "SQLite for the orders")
    ran = ctx("search", "postgres")
    assert ran.out == "No matching nodes.\n"
    assert ran.err == "1 superseded node matches: --include-superseded.\n"
