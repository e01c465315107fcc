"""Folders and git repositories as targets."""

import os
from pathlib import Path

import pytest

from ctx import clock
from ctx.sync.batch_target import BatchTarget
from ctx.sync.folder_target import FolderTarget
from ctx.sync.git_target import GitTarget
from tests.conftest import git
from tests.contract.batch_targets import ONE, BatchTargetContract
from tests.sync.replicas_in_memory import FolderCopy


class TestFolder(BatchTargetContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> BatchTarget:
        (tmp_path / "shared").mkdir()
        return FolderTarget(str(tmp_path / "shared"))

    @pytest.fixture
    def elsewhere(self, tmp_path: Path) -> BatchTarget:
        return FolderTarget(str(tmp_path / "shared"))


class TestGit(BatchTargetContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> BatchTarget:
        git("init", "-q", "--bare", str(tmp_path / "memory.git"))
        return GitTarget(str(tmp_path / "memory.git"), str(tmp_path / "clone"))

    @pytest.fixture
    def elsewhere(self, tmp_path: Path) -> BatchTarget:
        return GitTarget(str(tmp_path / "memory.git"), str(tmp_path / "another"))


class TestInMemory(BatchTargetContract):
    @pytest.fixture
    def target(self) -> BatchTarget:
        return FolderCopy()

    @pytest.fixture
    def elsewhere(self, target: BatchTarget) -> BatchTarget:
        return target


def test_a_damaged_clone_is_made_again(tmp_path: Path) -> None:
    git("init", "-q", "--bare", str(tmp_path / "memory.git"))
    target = GitTarget(str(tmp_path / "memory.git"), str(tmp_path / "clone"))
    target.publish([ONE])
    for path in (tmp_path / "clone" / "objects").rglob("*"):
        if path.is_file():
            path.unlink()
    assert target.listing().batches == {ONE.name}
    assert target.read(ONE.name) == ONE.data


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    target = FolderTarget(str(shared))
    old, new = shared / f"{'3' * 64}.12-1.tmp", shared / f"{'4' * 64}.12-1.tmp"
    other = shared / "notes.tmp"
    for path in (old, new, other):
        path.write_bytes(b"half")
    yesterday = clock.wall_s() - 90_000
    for path in (old, other):
        os.utime(path, (yesterday, yesterday))
    assert target.listing() == (frozenset(), ())
    target.publish([ONE])
    assert {path.name for path in shared.iterdir()} == {ONE.name, new.name, other.name}


def test_other_branches_of_the_repository_stay(tmp_path: Path, repo: Path) -> None:
    git("commit", "-q", "--allow-empty", "-m", "Mine")
    git("clone", "-q", "--bare", ".", str(tmp_path / "memory.git"))
    target = GitTarget(str(tmp_path / "memory.git"), str(tmp_path / "clone"))
    target.publish([ONE])
    branches = git("branch", "--format=%(refname:short)", cwd=tmp_path / "memory.git").split()
    assert branches == ["ctx-sync", "main"]
    assert git("log", "--format=%s", "main", cwd=tmp_path / "memory.git") == "Mine\n"
