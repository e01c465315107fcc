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
    ran = ctx("search", "bb")
    assert ran.out == "No matching nodes.\n"
    assert ran.err == "1 superseded node matches: --include-superseded.\n"
    ctx("delete", three)
    assert listed(ctx) == {two}
    # Undoing cannot hide everything either.
    ctx("unlink", two, one)
    unlinked = ctx("undo", "--list", "--limit=1", "--format=json").json["changes"][0]["id"]
    ctx("link", one, two, "--type=SUPERSEDES")
    assert listed(ctx) == {one}
    ctx("undo", unlinked)
    assert listed(ctx) == {one, two}


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


def test_an_import_cannot_hide_everything(ctx: Ctx, folder: Path) -> None:
    ids = ["01KFDGRP00AAAAAAAAAAAAAAAA", "01KFDGRP00BBBBBBBBBBBBBBBB"]
    made = {"created_at": "2026-01-20T10:00:00Z"}
    times = {**made, "updated_at": "2026-01-20T10:00:00Z"}
    nodes = [{"id": each, "type": "fact", "content": each, **times} for each in ids]
    ends = [dict(zip(("from_id", "to_id"), pair, strict=True)) for pair in (ids, ids[::-1])]
    edges = [
        {"id": f"01KFDGRP01{number:016d}", **each, "type": "SUPERSEDES", **made}
        for number, each in enumerate(ends)
    ]
    (folder / "circle.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert ctx("import", "circle.json").code == 0
    assert len(listed(ctx)) == 2
