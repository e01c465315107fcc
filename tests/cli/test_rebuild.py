import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx, git


@pytest.fixture
def project(repo: Path, ctx: Ctx, add: Add) -> Path:
    ctx("init")
    for number in range(3):
        node = add("--type=fact", f"--tag=n:{number}", f"The fact number {number}")
        ctx("commit", "-m", f"Commit {number}")
        ctx("update", node, "--summary", f"Fact {number}")
    ctx("commit", "-m", "The end")
    git("add", "-A")
    git("commit", "-qm", "all")
    return repo


def index_of(folder: Path) -> Path:
    [path] = (folder / ".git" / "ctx" / "main" / "index").glob("*/store.db")
    return path


def test_the_same_heads_give_the_same_bytes(
    project: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clones = [tmp_path / "one", tmp_path / "two"]
    made = []
    for clone, backwards in zip(clones, (False, True), strict=True):
        git("clone", "-qn", str(project), str(clone))
        files = git("ls-tree", "-r", "--name-only", "HEAD", cwd=clone).split()
        for name in sorted(files, reverse=backwards):
            git("checkout", "-q", "HEAD", "--", name, cwd=clone)
        monkeypatch.chdir(clone)
        assert ctx("trust", "--yes").code == 0
        ran = ctx("rebuild", "--full")
        assert ran.code == 0, ran.err
        assert ran.out.startswith("Rebuilt the index: 3 nodes of 9 records in 5 commits (")
        made.append(index_of(clone).read_bytes())
    assert made[0] == made[1]


def test_the_index_of_the_code_is_made_with_it(project: Path, ctx: Ctx) -> None:
    (project / "a.py").write_text("import b\ndef f():\n    b.g()\n")
    (project / "b.py").write_text("import a\ndef g():\n    a.f()\n")
    known = [
        "The code: 2 items in 2 files, 4 edges between them.",
        "Cycles: 1 group of files, 1 group of items (`ctx code cycles`).",
    ]
    local = project / ".git" / "ctx" / "main"
    assert ctx("rebuild").out.splitlines()[1:] == known
    kept = (local / "DERIVED" / "scc_latest").read_text()
    shutil.rmtree(local / "DERIVED")
    assert ctx("rebuild", "--scc").out.splitlines() == known
    assert (local / "DERIVED" / "scc_latest").read_text() == kept
    (local / "index" / "code.db").write_bytes(b"damaged")
    assert ctx("rebuild", "--full").out.splitlines()[1:] == known
    made = ctx("rebuild", "--format", "json").json
    assert (made["removed"], made["code"]["parsed"], made["scc"]["file_cycles"]) == (0, 2, 1)
    assert ctx("rebuild", "--text", "--format", "json").json["code"] is None


def test_whatever_was_deleted_or_damaged_comes_again(project: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "Staged alone")
    before = ctx("list", "--format", "json").out
    shutil.rmtree(project / ".git" / "ctx" / "main" / "index")
    assert ctx("list", "--format", "json").out == before
    assert ctx("rebuild", "--full", "--format", "json").json["how"] == "full"
    assert ctx("list", "--format", "json").out == before
    assert git("status", "--porcelain") == ""
    with closing(sqlite3.connect(index_of(project))) as connection, connection:
        connection.execute("INSERT INTO nodes_fts(nodes_fts) VALUES ('delete-all')")
    assert ctx("search", "number", "--format", "json").json["nodes"] == []
    assert ctx("rebuild", "--text").code == 0
    assert len(ctx("search", "number", "--format", "json").json["nodes"]) == 3
    with index_of(project).open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 8192)
    for beside in ("-wal", "-shm"):
        index_of(project).with_name(f"store.db{beside}").unlink(missing_ok=True)
    ran = ctx("rebuild")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[1:] == ["1 damaged index removed."]
    assert ctx("list", "--format", "json").out == before
    assert ctx("rebuild", "--format", "json").json["removed"] == 0
    told = "Cycles: 0 groups of files, 0 groups of items (`ctx code cycles`).\n"
    assert ctx("rebuild", "--scc").out == told
