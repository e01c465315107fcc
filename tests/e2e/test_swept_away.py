"""`git clean` takes a commit that git does not have yet: that is said, and it can be got back."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from ctx import disk
from ctx.cli.main import main
from tests.conftest import Ctx, Ran, git
from tests.faults import Disk, Stopped

SWEPT = "was swept away before git had it"


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power failures."""
    monkeypatch.setattr(disk, "sync", lambda _: None)


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    keep(ctx, "Base.")
    return repo


def commit(ctx: Ctx, text: str) -> str:
    """A fact, committed to memory alone."""
    assert ctx("-q", "add", "--type", "fact", text).code == 0
    made = ctx("commit", "-m", text, "--format", "json")
    assert made.code == 0, made
    return str(made.json["commit"])


def keep(ctx: Ctx, text: str) -> None:
    commit(ctx, text)
    git("add", "-A")
    git("commit", "-qm", text)


def facts(ctx: Ctx) -> set[str]:
    """What a reader finds, who is told nothing else."""
    shown = ctx("list", "--limit", "0", "--format", "json")
    assert (shown.code, shown.err) == (0, "")
    return {node["content"] for node in shown.json["nodes"]}


def recovered(ctx: Ctx, *words: str) -> Ran:
    done = ctx("stage", "recover", *words)
    assert (done.code, done.err) == (0, ""), done
    return done


def snapshot(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("checked_out", [False, True])
def test_a_commit_comes_back(project: Path, ctx: Ctx, checked_out: bool) -> None:
    commit(ctx, "One.")
    assert ctx("add", "decision", "Use one queue", "--body", "It is simpler.").code == 0
    commit(ctx, "Two.")
    before, known = snapshot(project / ".ctx"), facts(ctx)
    git("clean", "-qfdx")
    if checked_out:
        git("checkout", "-q", ".")

    for words in (["list"], ["search", "One"], ["add", "--type", "fact", "Later."], ["log"]):
        said = ctx(*words).err
        assert said.count(SWEPT) == 1, words
        assert "`ctx stage recover`" in said
    told = ctx("list", "--format", "json")
    assert SWEPT in json.loads(told.err)["warning"]
    assert len(told.json["nodes"]) == (2 if checked_out else 1)

    dry = recovered(ctx, "--dry-run", "--format", "json").json["republished"]
    assert SWEPT in ctx("list").err
    done = recovered(ctx, "--format", "json").json["republished"]
    assert dry == done
    assert (done["message"], done["commits"], done["problem"]) == ("Two.", 2, None)
    assert any("decisions/" in path for path in done["documents"])
    assert facts(ctx) == known | {"Later."}
    assert snapshot(project / ".ctx") == before
    assert recovered(ctx, "--format", "json").json["republished"] is None
    assert ctx("debug", "verify").code == 0
    keep(ctx, "Three.")
    assert facts(ctx) == known | {"Later.", "Three."}


def test_an_amended_commit_comes_back_alone(project: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    assert ctx("-q", "add", "--type", "fact", "Two.").code == 0
    assert ctx("commit", "--amend", "-m", "Both").code == 0
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    assert "a head again" in recovered(ctx).out
    assert facts(ctx) == {"Base.", "One.", "Two."}
    assert len(os.listdir(".ctx/heads")) == 1


def test_where_no_file_has_two_names(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    commit(ctx, "One.")
    git("clean", "-qfdx")
    recovered(ctx)
    assert facts(ctx) == {"Base.", "One."}


def test_the_whole_store_comes_back_into_a_new_one(project: Path, ctx: Ctx) -> None:
    """It was never added, and nothing of it is left."""
    shutil.rmtree(".git")
    git("init", "-q", "-b", "main")
    shutil.rmtree(".ctx")
    assert ctx("init", "--no-git").code == 0
    commit(ctx, "One.")
    git("clean", "-qfdx")
    assert ctx("init", "--no-git").code == 0
    assert "a head again" in recovered(ctx).out
    assert facts(ctx) == {"One."}


def test_nothing_begins_anew_in_its_place(project: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    git("clean", "-qfdx")
    ctx("-q", "add", "--type", "fact", "Two.")
    refused = ctx("commit", "-m", "Two")
    assert refused.code == 1
    assert "error E009" in refused.err
    git("checkout", "-q", ".")
    # By itself nothing goes on either.
    assert "error E009" in ctx("commit", "--auto").err
    assert "a head again" in recovered(ctx).out
    assert ctx("commit", "--auto").code == 0
    assert facts(ctx) == {"Base.", "One.", "Two."}


def test_a_person_goes_on_without_it(project: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    ctx("-q", "add", "--type", "fact", "Two.")
    assert ctx("commit", "-m", "Two").code == 0
    assert facts(ctx) == {"Base.", "Two."}
    assert recovered(ctx, "--format", "json").json["republished"] is None


# What is no accident


def left_alone(ctx: Ctx, expected: set[str]) -> None:
    before = snapshot(Path(".ctx"))
    assert facts(ctx) == expected
    assert recovered(ctx, "--format", "json").json["republished"] is None
    assert snapshot(Path(".ctx")) == before


def test_another_branch(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    git("switch", "-q", "main")
    left_alone(ctx, {"Base."})
    git("branch", "-qD", "feature")
    left_alone(ctx, {"Base."})


def test_git_is_asked_once(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    git("switch", "-q", "main")
    assert facts(ctx) == {"Base."}
    monkeypatch.setenv("PATH", str(tmp_path))
    shown = ctx("list", "--format", "json")
    assert (shown.code, shown.err) == (0, "")


def test_reset(project: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    git("reset", "-q", "--hard", "HEAD~1")
    left_alone(ctx, {"Base."})


def test_reset_of_what_was_only_added(project: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    git("add", "-A")
    git("reset", "-q", "--hard")
    left_alone(ctx, {"Base."})


def test_revert(project: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    git("revert", "--no-edit", "HEAD")
    left_alone(ctx, {"Base."})


def test_stash(project: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    git("stash", "-qu")
    left_alone(ctx, {"Base."})
    git("stash", "pop", "-q")
    assert facts(ctx) == {"Base.", "One."}


def test_added_files_are_not_swept(project: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    git("add", "-A")
    git("clean", "-qfdx")
    left_alone(ctx, {"Base.", "One."})


def test_not_on_another_branch_than_its_own(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    commit(ctx, "Swept.")
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    git("switch", "-q", "main")
    before = snapshot(Path(".ctx"))
    assert SWEPT in ctx("list").err
    assert "made on another branch" in recovered(ctx).out
    assert snapshot(Path(".ctx")) == before
    git("switch", "-q", "feature")
    assert "a head again" in recovered(ctx).out
    assert facts(ctx) == {"Base.", "Feature.", "Swept."}


# Stopped in between


def test_stopped_while_it_comes_back(project: Path, ctx: Ctx, tmp_path: Path) -> None:
    commit(ctx, "One.")
    commit(ctx, "Two.")
    whole = snapshot(project / ".ctx")
    git("clean", "-qfdx")
    shutil.copytree(project, tmp_path / "spare")
    counting = Disk()
    with counting.installed():
        assert main(["stage", "recover"]) == 0
    for number in range(0, counting.operations, 3):
        for entry in project.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(tmp_path / "spare", project, dirs_exist_ok=True)
        with Disk(number).installed(), suppress(Stopped):
            main(["stage", "recover"])
        recovered(ctx)
        assert facts(ctx) == {"Base.", "One.", "Two."}, counting.log[number]
        found = snapshot(project / ".ctx")
        assert {name for name in whole if name not in found} == set(), counting.log[number]


def test_second_names_are_collected_when_they_are_old(project: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    # An open session began from it, and needs no second name of it.
    ctx("-q", "add", "--type", "fact", "Staged.")
    staged = project / ".git/ctx/main/stage/objects"
    head = os.listdir(".ctx/heads")[0]
    assert head in os.listdir(staged)
    for entry in staged.iterdir():
        os.utime(entry, (0, 0))
    assert ctx("gc").code == 0
    assert head not in os.listdir(staged)
    assert facts(ctx) == {"Base.", "One.", "Staged."}
    assert ctx("debug", "verify").code == 0


def test_collecting_where_the_beginning_of_a_session_is_elsewhere(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a commit on another branch, a second name is here, and not all that it needs."""
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    head = os.listdir(".ctx/heads")[0]
    with monkeypatch.context() as patch:
        patch.setenv("CTX_SESSION", "other")
        ctx("-q", "add", "--type", "fact", "Staged.")
    keep(ctx, "More.")
    git("switch", "-q", "main")
    staged = project / ".git/ctx/main/stage/objects"
    for entry in staged.iterdir():
        if entry.name != head:
            os.utime(entry, (0, 0))
    for _ in range(2):
        assert ctx("gc").code == 0
    assert head in os.listdir(staged)
    git("switch", "-q", "feature")
    assert facts(ctx) == {"Base.", "Feature.", "Staged.", "More."}
