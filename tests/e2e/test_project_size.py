"""Memory in a project stays small: a commit adds a few small files."""

from pathlib import Path

import pytest

from ctx import disk
from tests.conftest import Ctx
from tests.e2e.growing_project import grow, open_project_memory, size


def test_fifty_commits_of_three_nodes_stay_small(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "sync", lambda _: None)
    assert ctx("init").code == 0
    before = size(repo / ".ctx")
    with open_project_memory(repo) as memory:
        grow(memory, commits=50, nodes=3)
    grown = size(repo / ".ctx") - before
    assert grown.files <= 400
    assert grown.bytes <= 1_000_000
    assert ctx("list", "--limit", "0", "--format", "json").json["total"] == 150
