"""Memory beside the code stays small: a commit costs a few small files."""

from pathlib import Path

import pytest

from ctx import disk
from tests.conftest import Ctx
from tests.e2e.growing import grow, opened, size


def test_fifty_commits_of_three_nodes_each(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "sync", lambda _: None)
    assert ctx("init").code == 0
    before = size(repo / ".ctx")
    with opened(repo) as memory:
        grow(memory, commits=50, nodes=3)
    grown = size(repo / ".ctx") - before
    assert grown.files <= 400
    assert grown.bytes <= 1_000_000
    assert ctx("list", "--limit", "0", "--format", "json").json["total"] == 150
