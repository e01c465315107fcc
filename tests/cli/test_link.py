"""`ctx link`, `unlink`, `edges`, `trace` and `related`."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx


def test_superseding(ctx: Ctx, add: Add) -> None:
    old, new = add("--type=fact", "Old"), add("--type=fact", "New")
    ctx("link", new, old, "--type=SUPERSEDES")
    assert ctx("show", old, "--format=json").json["node"]["superseded_by"].startswith(new)
    assert ctx("search", "old").out == "No matching nodes.\n"
    assert old in ctx("search", "old", "--include-superseded").out
    back = ctx("link", old, new, "--type=SUPERSEDES")
    assert back.code == 2
    assert f"{new} already supersedes {old}" in back.err
    ctx("delete", new)
    assert old in ctx("search", "old").out, "what replaced it is gone, so it holds again"
    ctx("restore", new)
    assert ctx("search", "old").out == "No matching nodes.\n"
    ctx("unlink", new, old)
    assert old in ctx("search", "old").out


def test_tracing_where_something_comes_from(ctx: Ctx, add: Add) -> None:
    a, b, c, d = (add("--type=fact", name) for name in ("Aa", "Bb", "Cc", "Dd"))
    for from_id, to_id, kind in (
        (a, b, "DERIVED_FROM"),
        (b, c, "DERIVED_FROM"),
        (a, c, "DEPENDS_ON"),
        (c, a, "DEPENDS_ON"),
        (c, d, "RELATES_TO"),
    ):
        ctx("link", from_id, to_id, f"--type={kind}")
    traced = ctx("trace", a)
    assert [re.sub(r"(?<=\S) +(?=fact)", " ", line) for line in traced.out.splitlines()] == [
        f"  {a} fact  Aa",
        f"    DERIVED_FROM → {b} fact  Bb",
        f"      DERIVED_FROM → {c} fact  Cc",
        f"        DEPENDS_ON → {a} fact  Aa (see above)",
        f"    DEPENDS_ON → {c} fact  Cc (see above)",
    ]
    reverse = ctx("trace", c, "--reverse", "--format=json").json
    assert [(step["depth"], step["repeated"]) for step in reverse["steps"]] == [
        (0, False),
        (1, False),
        (2, False),
        (3, True),
        (1, True),
    ]
    assert len(ctx("trace", a, "--depth=1").out.splitlines()) == 3
    # The depth counts the nearest way.
    far = add("--type=fact", "Ff")
    ctx("link", c, far, "--type=DERIVED_FROM")
    steps = ctx("trace", a, "--depth=2", "--format=json").json["steps"]
    assert far in {step["id"][:12] for step in steps}
    assert ctx("trace", d).out.endswith("Not derived from anything.\n")
    assert ctx("trace", b, "--reverse", "--type=CALLS").out.endswith("Nothing depends on it.\n")


@pytest.mark.slow
def test_a_long_chain_is_no_recursion(ctx: Ctx, folder: Path) -> None:
    ids = imported(ctx, folder, 1500, [(number, number + 1) for number in range(1499)])
    assert len(ctx("trace", ids[0], "--format=json").json["steps"]) == 1500
    assert ctx("delete", ids[-1], "--cascade").out.startswith("Deleted 1,500 nodes:")


def test_related(ctx: Ctx, add: Add) -> None:
    a, b, c, d = (add("--type=fact", name) for name in ("Aa", "Bb", "Cc", "Dd"))
    ctx("link", a, b, "--type=DEPENDS_ON")
    ctx("link", c, a)
    ctx("link", c, d)
    assert ctx("related", a).out.splitlines() == [
        f"  1  ← RELATES_TO ──  {c}  fact  Cc",
        f"  1  ── DEPENDS_ON →  {b}  fact  Bb",
    ]
    two = ctx("related", a, "--depth=2", "--format=json").json
    assert [(step["id"][:12], step["depth"]) for step in two["steps"]] == [(c, 1), (b, 1), (d, 2)]
    assert ctx("related", a, "--depth=2", "--limit=1").out.endswith("  … and 2 more (--limit)\n")
    assert ctx("related", a, "--type=CALLS").out == "No related nodes.\n"


@pytest.mark.slow
def test_deleting_takes_everything_that_was_derived(ctx: Ctx, folder: Path) -> None:
    """Also where there are far more edges than nodes."""
    pairs = [(high, low) for high in range(160) for low in range(high)]
    assert len(pairs) > 10_000
    ids = imported(ctx, folder, 160, pairs)
    assert ctx("delete", ids[0], "--cascade").out.startswith("Deleted 160 nodes:")


def test_restoring_a_node_whose_edge_lost_its_id(ctx: Ctx, add: Add, folder: Path) -> None:
    one, two, three = (add("--type=fact", name) for name in ("Aa", "Bb", "Cc"))
    ctx("link", one, two)
    [edge] = ctx("edges", one, "--format=json").json["edges"]
    ctx("delete", one)
    ids = {node["id"][:12]: node["id"] for node in ctx("list", "--format=json").json["nodes"]}
    taken = {**edge, "from_id": ids[two], "to_id": ids[three]}
    (folder / "edge.json").write_text(json.dumps({"nodes": [], "edges": [taken]}))
    assert ctx("import", "edge.json").code == 0
    assert ctx("restore", one).code == 0
    assert len(ctx("edges", one, "--format=json").json["edges"]) == 1


def test_linking_and_unlinking(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=decision", "One"), add("--type=fact", "Two")
    edge = f"{one} ── DEPENDS_ON → {two}"
    assert ctx("link", one, two, "--type=DependsOn").out == f"Linked: {edge}\n"
    assert ctx("link", one, two, "--type=depends-on").out == f"Already linked: {edge}\n"
    assert ctx("edges", one).out == f"  ── DEPENDS_ON →  {two}  fact  Two\n"
    assert ctx("edges", two, "--direction=in").out == f"  ← DEPENDS_ON ──  {one}  decision  One\n"
    assert ctx("edges", two, "--direction=out").out == "No edges.\n"
    [found] = ctx("edges", one, "--format=json").json["edges"]
    assert found["metadata"] == {"tool": "cli", "confidence": 1000}
    assert ctx("link", one, two, "--confidence=low", "--reason=same trace").code == 0
    # Linking again keeps what it rests on.
    assert ctx("link", one, two).out.startswith("Already linked")
    assert f"RELATES_TO →  {two}  fact  Two  30 %, same trace\n" in ctx("edges", one).out
    assert ctx("unlink", two, one).out == f"Not linked: {two} and {one}\n"
    unlinked = ctx("unlink", one, two, "--type=RELATES_TO").out
    assert unlinked == f"Unlinked: {one} ── RELATES_TO → {two}\n"
    assert ctx("unlink", one, two).out == f"Unlinked: {edge}\n"


def test_mistakes(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    for words, told, near in (
        (["link", one, two, "--type=DEPENDS"], "There is no edge type 'DEPENDS'.", "DEPENDS_ON"),
        (["link", one, two, "--type=relates"], "There is no edge type 'relates'.", "RELATES_TO"),
        (["link", one, two, "--type="], "There is no edge type ''.", "DEPENDS_ON"),
        (["edges", one, "--type="], "There is no edge type ''.", ""),
        (["trace", one, "--type="], "There is no edge type ''.", ""),
        (["related", one, "--type="], "There is no edge type ''.", ""),
        (["link", one, one], f"An edge cannot lead from {one} to itself.", ""),
        (["link", one, two, "--confidence=low"], "An edge of low confidence needs a reason.", ""),
        (["link", one, two, "--confidence=low", "--reason=  "], "An edge of low confidence", ""),
        (["trace", one, "--depth=0"], "must be 1 or more", ""),
    ):
        ran = ctx(*words)
        assert ran.code == 2
        assert told in ran.err
        assert near in ran.err


def imported(ctx: Ctx, folder: Path, size: int, pairs: list[tuple[int, int]]) -> list[str]:
    """Import nodes of which each pair is derived, and give their ids."""
    made = "2026-01-20T10:00:00Z"
    ids = [f"01KFDGRP00{number:016d}" for number in range(size)]
    times = {"created_at": made, "updated_at": made}
    edges = [
        {
            "id": f"01KFDGRP01{number:016d}",
            "from_id": ids[high],
            "to_id": ids[low],
            "type": "DERIVED_FROM",
            "created_at": made,
        }
        for number, (high, low) in enumerate(pairs)
    ]
    nodes = [{"id": each, "type": "fact", "content": each, **times} for each in ids]
    (folder / "graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert ctx("import", "graph.json").code == 0
    return ids
