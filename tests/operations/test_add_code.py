"""Snapshots of the code: large projects, interruptions and concurrent changes."""

from pathlib import Path

import pytest

from ctx import layout
from ctx.cli import add_code
from ctx.cli.add_code import Options, StagedSnapshot
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.ids import CLI_SESSION
from ctx.objects import verify
from ctx.workspace import Environment, Workspace, open_project
from tests.conftest import Ctx


@pytest.fixture
def workspace(repo: Path, ctx: Ctx, surroundings: Path) -> Workspace:
    for number in range(6):
        (repo / f"m{number}.py").write_text(f"def f{number}():\n    return {number}\n")
    assert ctx("init").code == 0
    return open_project(_environment(repo, surroundings))


@pytest.fixture
def codebase(workspace: Workspace, repo: Path, surroundings: Path) -> Codebase:
    found = indexing.codebase_at(_environment(repo, surroundings))
    add_code.add_code(found, Options())
    return found


def _environment(repo: Path, home: Path) -> Environment:
    store = layout.UserStore(str(home / ".ctx"))
    return Environment(str(repo), store, {}, (), CLI_SESSION)


def take_snapshot(workspace: Workspace, codebase: Codebase) -> StagedSnapshot:
    return add_code.snapshot(workspace, codebase, Options())


def test_an_interrupted_snapshot_stages_nothing(
    workspace: Workspace, codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add_code, "_MOST_PENDING", 10)

    def stop(done: int, _total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_code.snapshot(workspace, codebase, Options(), stop)
    repository = workspace.repository
    assert repository.refs.read("work/cli") is None
    assert verify.verify(repository).damages == ()
    found = take_snapshot(workspace, codebase)
    assert (found.files, found.changed) == (6, 6)
    assert verify.verify(repository).damages == ()


def test_files_that_changed_meanwhile_are_left_out(
    workspace: Workspace, codebase: Codebase, repo: Path
) -> None:
    (repo / "m1.py").write_text("def other():\n    return 7\n")
    (repo / "m2.py").unlink()
    found = take_snapshot(workspace, codebase)
    assert found.files == 4
    assert [(each.path, each.reason) for each in found.left_out] == [
        ("m1.py", "it changed while it was read"),
        ("m2.py", "it cannot be read: No such file or directory"),
    ]


def test_deleted_files_are_not_in_a_snapshot(
    workspace: Workspace, codebase: Codebase, repo: Path
) -> None:
    take_snapshot(workspace, codebase)
    (repo / "m2.py").unlink()
    (repo / "m3.py").write_text("def g():\n    return 3\n")
    part = Options(("m[34].py",), str(repo))
    add_code.add_code(codebase, part)
    found = add_code.snapshot(workspace, codebase, part)
    assert (found.files, found.changed, found.removed) == (5, 1, 1)


def test_very_deep_folders_are_left_out(
    workspace: Workspace, codebase: Codebase, repo: Path
) -> None:
    folder = repo.joinpath(*["a"] * 250)
    folder.mkdir(parents=True)
    (folder / "deep.py").write_text("x = 1\n")
    add_code.add_code(codebase, Options())
    found = take_snapshot(workspace, codebase)
    assert found.files == 6
    assert [each.reason for each in found.left_out] == ["it is in too many nested folders"]
