"""`ctx link`, `unlink`, `edges`, `trace` and `related`."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx


def test_linking_twice_is_linking_once(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=decision", "One"), add("--type=fact", "Two")
    assert ctx("link", one, two, "--type=DependsOn").out == (
        f"Linked: {one} ── DEPENDS_ON → {two}\n"
    )
    assert ctx("link", one, two, "--type=depends-on").out == (
        f"Already linked: {one} ── DEPENDS_ON → {two}\n"
    )
    assert ctx("edges", one).out == f"  ── DEPENDS_ON →  {two}  fact  Two\n"
    assert ctx("edges", two, "--direction=in").out == f"  ← DEPENDS_ON ──  {one}  decision  One\n"
    assert ctx("edges", two, "--direction=out").out == "No edges.\n"
    [edge] = ctx("edges", one, "--format=json").json["edges"]
    assert edge["metadata"] == {"tool": "cli", "confidence": 1000}


def test_unlinking(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    ctx("link", one, two, "--type=DEPENDS_ON")
    ctx("link", one, two)
    assert ctx("unlink", two, one).out == f"Not linked: {two} and {one}\n"
    assert ctx("unlink", one, two, "--type=RELATES_TO").out == (
        f"Unlinked: {one} ── RELATES_TO → {two}\n"
    )
    assert ctx("unlink", one, two).out == f"Unlinked: {one} ── DEPENDS_ON → {two}\n"


def test_evidence(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    refused = ctx("link", one, two, "--confidence=low")
    assert refused.code == 2
    assert refused.err.startswith("error E011: An edge of low confidence needs a reason.")
    assert ctx("link", one, two, "--confidence=low", "--reason=same trace").code == 0
    assert ctx("edges", one).out == f"  ── RELATES_TO →  {two}  fact  Two  30 %, same trace\n"


@pytest.mark.parametrize(
    ("word", "near"), [("DEPENDS", "DEPENDS_ON"), ("relates", "RELATES_TO"), ("", "DEPENDS_ON")]
)
def test_an_unknown_edge_type(ctx: Ctx, add: Add, word: str, near: str) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    ran = ctx("link", one, two, f"--type={word}")
    assert ran.code == 2
    assert f"There is no edge type {word!r}." in ran.err
    assert near in ran.err


@pytest.mark.parametrize("command", ["edges", "trace", "related"])
def test_an_empty_edge_type_is_not_all_edges(ctx: Ctx, add: Add, command: str) -> None:
    ran = ctx(command, add("--type=fact", "One"), "--type=")
    assert ran.code == 2
    assert "There is no edge type ''." in ran.err


def test_a_node_is_not_linked_to_itself(ctx: Ctx, add: Add) -> None:
    one = add("--type=fact", "One")
    ran = ctx("link", one, one)
    assert ran.code == 2
    assert ran.err.startswith(f"error E011: An edge cannot lead from {one} to itself.")


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
    assert "must be 1 or more" in ctx("trace", a, "--depth=0").err
    assert ctx("trace", d).out.endswith("Not derived from anything.\n")
    assert ctx("trace", b, "--reverse", "--type=CALLS").out.endswith("Nothing depends on it.\n")


@pytest.mark.slow
def test_a_long_chain_is_no_recursion(ctx: Ctx, folder: Path) -> None:
    made = "2026-01-20T10:00:00Z"
    ids = [f"01KFDGRP00{number:016d}" for number in range(3000)]
    nodes = [
        {"id": i, "type": "fact", "content": i, "created_at": made, "updated_at": made} for i in ids
    ]
    edges = [
        {
            "id": f"01KFDGRP01{n:016d}",
            "from_id": ids[n],
            "to_id": ids[n + 1],
            "type": "DERIVED_FROM",
            "created_at": made,
        }
        for n in range(2999)
    ]
    (folder / "chain.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert ctx("import", "chain.json").code == 0
    assert len(ctx("trace", ids[0], "--format=json").json["steps"]) == 3000
    assert ctx("delete", ids[-1], "--cascade").out.startswith("Deleted 3,000 nodes:")


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


def test_a_depth_counts_the_nearest_way(ctx: Ctx, add: Add) -> None:
    a, b, c, d, e = (add("--type=fact", name) for name in ("Aa", "Bb", "Cc", "Dd", "Ee"))
    for from_id, to_id in ((a, b), (b, c), (c, d), (d, e), (a, d)):
        ctx("link", from_id, to_id, "--type=DERIVED_FROM")
    steps = ctx("trace", a, "--depth=3", "--format=json").json["steps"]
    assert e in {step["id"][:12] for step in steps}


@pytest.mark.slow
def test_deleting_takes_everything_that_was_derived(ctx: Ctx, folder: Path) -> None:
    """Also where there are far more edges than nodes."""
    made = "2026-01-20T10:00:00Z"
    ids = [f"01KFDGRP00{number:016d}" for number in range(160)]
    times = {"created_at": made, "updated_at": made}
    nodes = [{"id": i, "type": "fact", "content": i, **times} for i in ids]
    pairs = [(high, low) for high in range(160) for low in range(high)]
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
    assert len(edges) > 10_000
    (folder / "dense.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert ctx("import", "dense.json").code == 0
    assert ctx("delete", ids[0], "--cascade").out.startswith("Deleted 160 nodes:")


def test_linking_again_keeps_what_it_rests_on(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    ctx("link", one, two, "--reason=measured it", "--confidence=medium")
    assert ctx("link", one, two).out.startswith("Already linked")
    assert "60 %, measured it" in ctx("edges", one).out
    assert ctx("link", one, two, "--confidence=low", "--reason=  ").code == 2


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
