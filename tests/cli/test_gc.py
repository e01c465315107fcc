import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ctx


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    """A store with a commit that was amended away, and the staging of two commits."""
    assert ctx("init").code == 0
    (folder / "a.txt").write_text("a\n")
    assert ctx("add", "file", "a.txt", "-m", "One").code == 0
    assert ctx("commit", "--amend", "-m", "Uno").code == 0
    return folder


def answer(ctx: Ctx, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = ctx("gc", *words, "--format", "json").json
    return found


def test_a_dry_run_deletes_nothing(project: Path, ctx: Ctx) -> None:
    before = sorted((project / ".ctx").rglob("*"))
    shown = ctx("gc", "--dry-run", "--keep-days", "0")
    assert shown.out.startswith("Would delete 4 files")
    assert sorted((project / ".ctx").rglob("*")) == before
    assert ctx("gc", "--keep-days", "0").out.startswith("Deleted 4 files")
    assert ctx("gc", "--keep-days", "0").out.startswith("Deleted 0 files")
    assert ctx("debug", "verify").code == 0


def test_young_objects_are_kept(project: Path, ctx: Ctx) -> None:
    found = answer(ctx)
    assert found["deleted"] == []
    assert found["young"] == 4
    for words, deleted in (
        (["--set", "gc.keep_days=0"], 4),
        (["--set", "gc.keep_days=0", "--keep-days", "5"], 0),
    ):
        assert len(answer(ctx, "--dry-run", *words)["deleted"]) == deleted
    week_ago = time.time() - 8 * 86400
    for path in (project / ".ctx").rglob("*"):
        if path.is_file():
            os.utime(path, (week_ago, week_ago))
    assert len(answer(ctx)["deleted"]) == 4


def test_aggressive_takes_staging_that_is_done_with(project: Path, ctx: Ctx) -> None:
    deleted = answer(ctx, "--aggressive")["deleted"]
    assert len(deleted) == 3
    assert all("stage" in item["path"] for item in deleted)
    (project / "b.txt").write_text("b\n")
    ctx("add", "file", "b.txt", "--session", "open")
    answer(ctx, "--keep-days", "0", "--aggressive")
    made = ctx("commit", "-m", "B", "--session", "open", "--format", "json").json
    assert made["files"] == ["b.txt"]


def test_leftovers_of_killed_writers_go(project: Path, ctx: Ctx) -> None:
    shard = next((project / ".ctx" / "objects").iterdir())
    id = shard.name + "0" * 62
    old = shard / f"{id}.1-1.tmp"
    ref = project / ".ctx" / "local" / "refs" / "main.1-1.tmp"
    young = shard / f"{id}.1-2.tmp"
    foreign = shard / "notes.tmp"
    for path in (old, ref, young, foreign):
        path.write_text("half")
    for path in (old, ref, foreign):
        os.utime(path, (1, 1))
    assert "2 files that are not needed" in ctx("debug", "verify").out
    assert "notes.tmp" in ctx("debug", "verify").out
    answer(ctx)
    assert [path.exists() for path in (old, ref, young, foreign)] == [False, False, True, True]
