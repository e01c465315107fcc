"""`ctx list`, and the ids that it shows."""

import json
from pathlib import Path

from tests.cli.conftest import Add, ageless
from tests.conftest import Ctx


def test_filters_and_the_limit(ctx: Ctx, add: Add) -> None:
    ran = ctx("list")
    assert (ran.code, ran.out, ran.err) == (0, "No nodes.\n", "")
    nothing = {"nodes": [], "short_ids": {}, "total": 0, "scopes": ["user"], "other_projects": 0}
    assert ctx("list", "--format", "json").json == nothing
    first = add("--type=fact", "--tag=tier:reference", "Deploys run on Mondays")
    second = add("--type=decision", "--tag=project:shop", "We use SQLite")
    assert ageless(ctx("list").out) == (
        f"  {second}  decision  0 s  We use SQLite           project:shop\n"
        f"  {first}  fact      0 s  Deploys run on Mondays  tier:reference\n"
    )
    [node] = ctx("list", "--type=decision", "--format=json").json["nodes"]
    assert node["content"] == "We use SQLite"
    for number in range(3):
        add("--type=fact", "--tag=a:b", f"Fact {number}")
    limited = ctx("list", "--tag=a:b", "--limit=2")
    assert limited.out.splitlines()[-1] == "  … and 1 more (--limit)"
    assert len(ctx("list", "--tag=a:b", "--limit=0").out.splitlines()) == 3
    assert ctx("list", "--since=1h", "--tag=a:b", "--tag=c:d").out == "No nodes.\n"
    assert len(ctx("list", "--since=1h").out.splitlines()) == 5
    ran = ctx("list", "--type=fcat")
    assert ran.code == 2
    assert ran.err.startswith("error E011: There is no node type 'fcat'.\n  Did you mean `fact`?")


def test_two_nodes_of_one_millisecond_can_both_be_named(ctx: Ctx, folder: Path) -> None:
    """Also where they differ only in the last character of their ids."""
    made = "2026-01-20T10:00:00Z"
    ids = ["01KFDGRP00ABCDEFGHJKMNPQR" + last for last in "01"]
    nodes = [
        {
            "id": node_id,
            "type": "fact",
            "content": f"Twin {node_id[-1]}",
            "created_at": made,
            "updated_at": made,
        }
        for node_id in ids
    ]
    (folder / "twins.json").write_text(json.dumps({"nodes": nodes, "edges": []}))
    assert ctx("import", "twins.json").code == 0
    shown = [line.split()[0] for line in ctx("list").out.splitlines()]
    assert shown == [ids[1], ids[0]]
    for node_id in shown:
        assert f"Twin {node_id[-1]}" in ctx("show", node_id).out
    ambiguous = ctx("show", ids[0][:12])
    assert ambiguous.code == 1
    assert ambiguous.err == (
        "error E021: Several nodes have an id that begins with 01KFDGRP00AB.\n"
        f"  {ids[0]}  fact  Twin 0\n"
        f"  {ids[1]}  fact  Twin 1\n"
        "  Use a longer prefix.\n"
    )


def test_superseded_nodes_and_anchors_are_listed_only_on_request(ctx: Ctx, add: Add) -> None:
    old = add("--type=fact", "Deploys run on Fridays")
    new = add("--type=fact", f"--supersedes={old}", "Deploys run on Mondays")
    task = add("task", "Mend it", "--mention=a.py")
    listed = ctx("list", "--json").json
    assert [each["id"][:12] for each in listed["nodes"]] == [task, new]
    assert listed["total"] == 2
    both = ctx("list", "--include-superseded").out
    assert f"{old}  fact  0 s  Deploys run on Fridays (superseded)" in ageless(both)
    assert ctx("list", "--anchors", "--json").json["total"] == 3
    assert [each["type"] for each in ctx("list", "--type=item", "--json").json["nodes"]] == ["item"]
