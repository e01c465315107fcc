"""A cloned repository cannot read or change files of the user."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctx import clock, ids
from ctx.cli.main import main
from ctx.ids import Ulid
from ctx.layout import project_at
from ctx.memory.records import Record
from ctx.objects.object_store import typed
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.project import batches
from tests.conftest import Ctx, git


@pytest.fixture
def evil(tmp_path: Path, ctx: Ctx) -> Path:
    """A repository with a hostile store."""
    path = tmp_path / "evil" / "app"
    path.mkdir(parents=True)
    git("init", "-q", "-b", "main", cwd=path)
    assert ctx("-C", str(path), "init").code == 0
    git("add", "-A", cwd=path)
    git("commit", "-qm", "A store", cwd=path)
    return path


def clone(evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git("add", "-A", "-f", cwd=evil)
    git("commit", "-qm", "Trap", cwd=evil)
    path = tmp_path / "clone" / "app"
    git("clone", "-q", str(evil), str(path))
    monkeypatch.chdir(path)
    # Also one whose store is trusted must not reach what is ours.
    main(["trust", "--yes"])
    return path


COMMANDS = [
    ["debug", "refs"],
    ["debug", "verify"],
    ["debug", "index"],
    ["add", "file", "."],
    ["commit", "-m", "Mine"],
    ["gc", "--keep-days", "0", "--aggressive"],
]


def test_a_linked_local_folder_is_not_followed(
    evil: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (evil / ".ctx" / "local").symlink_to("../.git")
    path = clone(evil, tmp_path, monkeypatch)
    for words in COMMANDS:
        ctx(*words)
        git("log", "-1")
        assert (path / ".git" / "refs").is_dir()


def test_staging_from_a_clone_is_ignored(
    evil: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (evil / "evil.txt").write_text("evil\n")
    assert ctx("-C", str(evil), "add", "file", "evil.txt").code == 0
    shutil.copytree(evil / ".git" / "ctx" / "main", evil / ".ctx" / "local")
    (evil / "evil.txt").unlink()
    path = clone(evil, tmp_path, monkeypatch)
    (path / "mine.txt").write_text("mine\n")
    made = ctx("add", "file", "mine.txt", "-m", "Mine", "--format", "json").json
    assert made["commit"]["files"] == ["mine.txt"]
    assert git("status", "--porcelain", ".ctx/local") == ""


def test_a_linked_shard_is_not_followed(
    evil: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    notes = outside / "notes.tmp"
    notes.write_text("mine")
    os.utime(notes, (1, 1))
    for number in range(256):
        shard = evil / ".ctx" / "objects" / f"{number:02x}"
        if not shard.exists():
            shard.symlink_to("../../../../outside")
    path = clone(evil, tmp_path, monkeypatch)
    (path / "a.txt").write_text("a")
    for words in COMMANDS:
        ctx(*words)
    assert notes.read_text() == "mine"
    assert os.listdir(outside) == ["notes.tmp"]
    assert ctx("debug", "verify").code == 1


def test_a_repository_that_git_refuses_runs_nothing(
    evil: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monitor.chmod(0o755)
    git("config", "core.fsmonitor", str(monitor), cwd=evil)
    (evil / "a.txt").write_text("a")
    # git's own way to play a folder of another owner.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.chdir(evil)
    for words in (["add", "file", "."], ["commit", "-m", "x"], ["gc"], ["debug", "verify"]):
        assert "E000" not in ctx(*words).err
    assert not (tmp_path / "ran").exists()
    refused = ctx("add", "file", ".").err
    assert "dubious ownership" in refused
    assert f"`git config --global --add safe.directory {evil}`" in refused


def test_variables_of_a_git_hook_have_no_effect(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("init").code == 0
    (repo / "a.txt").write_text("a")
    ctx("add", "file", "a.txt", "-m", "A")
    git("add", "-A")
    git("commit", "-qm", "A")
    ctx("commit", "--amend", "-m", "B")
    git("add", "-A")
    git("commit", "-qm", "B")
    for variables in (
        {"GIT_INDEX_FILE": "/nowhere/index"},
        {"GIT_LITERAL_PATHSPECS": "1"},
        {"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere"},
    ):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            found = ctx("gc", "--keep-days", "0", "--format", "json").json
        assert [item for item in found["deleted"] if not item["path"].startswith(".git/")] == []
        assert found["held_by_git"] == 1


def test_a_hook_of_one_repository_does_not_write_into_another(
    repo: Path, ctx: Ctx, tmp_path: Path
) -> None:
    third = tmp_path / "third"
    third.mkdir()
    git("init", "-q", cwd=third)
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\n{sys.executable} -m ctx init {third}\n")
    hook.chmod(0o755)
    (repo / "x").write_text("x")
    git("add", "x")
    git("commit", "-qm", "x", "x")
    assert git("ls-files") == "x\n"
    assert ".ctx/config.toml" in git("ls-files", cwd=third)


@pytest.mark.parametrize("time", [10**17, -(10**17)])
def test_commits_with_any_time_are_shown(folder: Path, ctx: Ctx, time: int) -> None:
    assert ctx("init").code == 0
    repository = Repository(project_at(str(folder)))
    ((old, commit),) = repository.current()
    odd = typed(Commit((old,), time, "Odd", commit.root_tree))
    repository.objects.write([odd])
    repository.heads.advance(odd.id, [old])
    assert ctx("review", "accept", "--all").code == 0
    assert "Odd" in ctx("debug", "history").out
    (folder / "a.txt").write_text("a")
    assert ctx("add", "file", "a.txt", "-m", "On").code == 0


def add_forged_records(folder: Path, rows: list[tuple[str, str, str, int]]) -> None:
    """Commit records as (kind, subject, change, stamp), which no ctx would write."""
    repository = Repository(project_at(str(folder)))
    ((old, commit),) = repository.current()
    body = {"type": "fact", "content": "Odd"}
    batch = batches.encode_batch(
        [
            Record(
                ids.new_ulid(), (clock.now_ms() << clock.COUNTER_BITS) + stamp, Ulid(change),
                kind, kind, subject, "", None, body if kind == "node.put" else {}, "cli", "cli",
            )
            for kind, subject, change, stamp in rows
        ]
    )  # fmt: skip
    odd = typed(Commit((old,), 1, "Odd", commit.root_tree, record_batches=(batch.id,)))
    repository.objects.write([batch, odd])
    repository.heads.advance(odd.id, [old])


ONE, TWO, NODE, OTHER = (f"01M7ESYZ1SB4F8Q5T2V9W3X6K{number}" for number in range(4))
UNDOINGS = {
    "of each other": [("node.put", NODE, ONE, 1), ("undo", TWO, ONE, 2), ("undo", ONE, TWO, 3)],
    "of itself": [("node.put", NODE, ONE, 1), ("undo", ONE, ONE, 2)],
    "of each other at once": [
        ("node.put", NODE, ONE, 1),
        ("node.put", OTHER, TWO, 1),
        ("undo", TWO, ONE, 2),
        ("undo", ONE, TWO, 2),
    ],
    "with one stamp": [("node.put", NODE, ONE, 1), ("node.put", OTHER, ONE, 1)],
}


@pytest.mark.parametrize("name", UNDOINGS)
def test_forged_undo_records_have_no_effect(folder: Path, ctx: Ctx, name: str) -> None:
    assert ctx("init").code == 0
    add_forged_records(folder, UNDOINGS[name])
    ctx("add", "--type=fact", "Mine")
    assert "add" in [
        made["action"] for made in ctx("undo", "--list", "--format=json").json["changes"]
    ]
    for words in (["undo"], ["undo", ONE], ["undo", ONE], ["undo", TWO], ["review"]):
        ran = ctx(*words)
        assert "E000" not in ran.err, ran.err
    assert "Mine" not in ctx("list").out


def test_output_that_cannot_be_encoded_or_written(folder: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (folder / "ü.txt").write_text("a")
    command = f"PYTHONIOENCODING=ascii PYTHONUTF8=0 {sys.executable} -m ctx"
    for line, code in (
        ("add file ü.txt", 0),
        ("add file ü.txt --format json", 0),
        ("debug refs 2>&- >&-", 0),
        ("frobnicate 2>&-", 2),
        ("frobnicate 2> /dev/full", 2),
    ):
        ran = subprocess.run(
            f"{command} {line}", shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code, (line, ran.stderr)
        assert "Traceback" not in ran.stderr, line
        assert "Exception ignored" not in ran.stderr, line
        if "json" in line:
            json.loads(ran.stdout)


@pytest.mark.parametrize("name", ["LOCK", "index", "mine", "refs", "stage", "PUBLISHING", "."])
def test_links_in_an_unpacked_archive_are_not_followed(
    folder: Path, ctx: Ctx, tmp_path: Path, name: str
) -> None:
    """Without git, the local folder is in the store, and can come from an archive."""
    assert ctx("init").code == 0
    mine = tmp_path / "mine"
    mine.mkdir()
    for number in range(12):
        (mine / f"folder{number}").mkdir()
    (mine / "notes.tmp").write_text("mine")
    os.utime(mine / "notes.tmp", (1, 1))
    target = mine / "notes.tmp" if name in ("LOCK", "PUBLISHING", "mine") else mine
    place = folder / ".ctx" / "local" / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    (folder / "a.txt").write_text("a")
    for words in [*COMMANDS, ["init", "--force", "--yes"]]:
        assert ctx(*words).code == 1
    assert (mine / "notes.tmp").read_text() == "mine"
    assert len(list(mine.iterdir())) == 13


@pytest.mark.parametrize("name", ["heads", "objects", "narrative", "config.toml"])
def test_init_does_not_follow_links(
    evil: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "diary.md").write_text("dear diary")
    place = evil / ".ctx" / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    place.symlink_to("../../../mine")
    if name != "config.toml":
        (evil / ".ctx" / "config.toml").unlink()
    clone(evil, tmp_path, monkeypatch)
    for words in (["init"], ["init", "--force", "--yes"]):
        assert ctx(*words).code == 1
        assert [path.name for path in mine.iterdir()] == ["diary.md"]


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin"])
def test_links_to_devices_are_not_read(
    evil: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (evil / ".ctx" / "objects" / "aa").mkdir(exist_ok=True)
    (evil / ".ctx" / "objects" / "aa" / ("a" * 64)).symlink_to(target)
    path = clone(evil, tmp_path, monkeypatch)
    assert ctx("debug", "verify").code == 1
    assert "E003" in ctx("debug", "cat", "a" * 64).err
    (path / ".ctx" / "config.toml").unlink()
    (path / ".ctx" / "config.toml").symlink_to(target)
    assert ctx("debug", "refs").code == 1
