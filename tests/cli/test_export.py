import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx


@pytest.fixture
def three(ctx: Ctx, add: Add) -> list[str]:
    ids = [
        add("--type=fact", "--tag=project:shop", "A fact"),
        add("--type=decision", "--tag=project:shop", "Naïve «quotes» \u2028 and 漢字"),
        add("--type=fact", "Elsewhere"),
    ]
    ctx("link", ids[1], ids[0], "--type=SUPERSEDES")
    ctx("link", ids[2], ids[1], "--type=RELATES_TO")
    return ids


def test_only_some_nodes(three: list[str], ctx: Ctx) -> None:
    # Also what is superseded: nothing is left out of an export unasked.
    document = ctx("export").json
    assert len(document["nodes"]) == 3
    document = json.loads(ctx("export", "--query", "tag:project:shop").out)
    assert [node["content"] for node in document["nodes"]] == [
        "A fact",
        "Naïve «quotes» \u2028 and 漢字",
    ]
    assert [edge["type"] for edge in document["edges"]] == ["SUPERSEDES"]
    assert document["views"] == []
    alone = json.loads(ctx("export", "--query", "tag:project:shop AND type:fact").out)
    assert all(node["superseded_by"] is None for node in alone["nodes"])
    ran = ctx("export", "--query", "type:nothing")
    assert (ran.code, ran.out) == (2, "")


def test_to_a_file(three: list[str], ctx: Ctx, folder: Path) -> None:
    path = folder / "out.json"
    ran = ctx("export", "--output", "out.json")
    assert (
        ran.out == f"Exported 3 nodes, 2 edges to {path} ({path.stat().st_size / 1024:.1f} KiB).\n"
    )
    assert json.loads(path.read_text()) == ctx("export").json
    assert path.stat().st_mode & 0o777 == 0o600
    assert ctx("export", "-o", "out.json", "--format", "json").json == {
        "path": str(path),
        "nodes": 3,
        "edges": 2,
        "views": 1,
        "bytes": path.stat().st_size,
        "scope": "user",
    }
    assert [item.name for item in folder.iterdir()] == ["out.json"]


def test_a_file_that_cannot_be_written_is_left_as_it_was(
    three: list[str], ctx: Ctx, folder: Path
) -> None:
    (folder / "here").mkdir()
    ran = ctx("export", "-o", "here")
    assert ran.code == 1
    assert "E015" in ran.err
    assert ctx("export", "-o", "missing/x.json").code == 1
    (folder / "old.json").write_text("old")
    assert ctx("export", "-o", "old.json").code == 1
    (folder / "link.json").symlink_to("old.json")
    assert ctx("export", "-o", "link.json", "--force").code == 1
    assert (folder / "old.json").read_text() == "old"
    assert sorted(os.listdir(folder)) == ["here", "link.json", "old.json"]


def test_in_a_project_it_says_which_store_was_exported(ctx: Ctx, repo: Path) -> None:
    assert ctx("init").code == 0
    ctx("add", "--user", "Mine alone")
    ctx("add", "Of the project")
    ran = ctx("export")
    assert "Mine alone" not in ran.out
    assert ran.err == "This is the project store. To export your own: `ctx export --user`\n"
    mine = ctx("export", "--user")
    assert "Mine alone" in mine.out
    assert mine.err == ctx("export", "--project").err == ""
