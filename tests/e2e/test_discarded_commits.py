"""Ordinary git commands remove commits of memory that no git commit holds yet.

That is named, and can be undone. Reading deletes nothing.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ctx import disk
from ctx.cli.main import main
from tests import effort
from tests.conftest import Ctx, Ran, git
from tests.e2e.conftest import Saved
from tests.e2e.discarding_trials import Trial
from tests.faults import Disk, Stopped

REMOVED = "before a git commit had"
# Older than what gc keeps, and not so old that the clock would be doubted.
LONG_AGO = (time.time() - 60 * 86_400,) * 2


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power failures."""
    monkeypatch.setattr(disk, "sync", lambda _: None)


def commit(ctx: Ctx, text: str) -> str:
    """Commit a fact to memory, and not to git."""
    assert ctx("-q", "add", "--type", "fact", text).code == 0
    made = ctx("commit", "-m", text, "--format", "json")
    assert made.code == 0, made
    return str(made.json["commit"])


def keep(ctx: Ctx, text: str) -> None:
    commit(ctx, text)
    git("add", "-A")
    git("commit", "-qm", text)


def facts(ctx: Ctx) -> set[str]:
    """The facts that a reader sees; no warning is printed."""
    shown = ctx("list", "--limit", "0", "--format", "json")
    assert (shown.code, shown.err) == (0, "")
    return {node["content"] for node in shown.json["nodes"]}


def states(ctx: Ctx) -> list[str]:
    """The states of the commits that are not in git, for the newest of each line."""
    shown = ctx("status", "--format", "json").json["untracked"]
    return [each["state"] for each in shown if each["is_tip"]]


def recover(ctx: Ctx, *words: str) -> Ran:
    done = ctx("stage", "recover", *words)
    assert (done.code, done.err) == (0, ""), done
    return done


def snapshot(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("checked_out", [False, True])
def test_a_removed_commit_is_recovered(based: Path, ctx: Ctx, checked_out: bool) -> None:
    commit(ctx, "One.")
    assert ctx("add", "decision", "Use one queue", "--body", "It is simpler.").code == 0
    commit(ctx, "Two.")
    before, known = snapshot(based / ".ctx"), facts(ctx)
    git("clean", "-qfdx")
    if checked_out:
        git("checkout", "-q", ".")

    for words in (["list"], ["search", "One"], ["add", "--type", "fact", "Later."], ["log"]):
        said = ctx(*words).err
        assert said.count(REMOVED) == 1, words
        assert "`ctx stage recover`" in said
    told = ctx("list", "--format", "json")
    assert REMOVED in json.loads(told.err)["warning"]
    assert len(told.json["nodes"]) == (2 if checked_out else 1)

    dry = recover(ctx, "--dry-run", "--format", "json").json["commits"]
    assert REMOVED in ctx("list").err
    done = recover(ctx, "--format", "json").json["commits"]
    assert dry == done
    (done,) = done
    assert (done["message"], done["commits"], done["problem"]) == ("Two.", 2, None)
    assert any("decisions/" in path for path in done["documents"])
    assert facts(ctx) == known | {"Later."}
    assert snapshot(based / ".ctx") == before
    assert recover(ctx, "--format", "json").json["commits"] == []
    assert ctx("debug", "verify").code == 0
    keep(ctx, "Three.")
    assert facts(ctx) == known | {"Later.", "Three."}


def test_only_the_amended_commit_is_recovered(based: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    assert ctx("-q", "add", "--type", "fact", "Two.").code == 0
    assert ctx("commit", "--amend", "-m", "Both").code == 0
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    assert "a head again" in recover(ctx).out
    assert facts(ctx) == {"Base.", "One.", "Two."}
    assert len(os.listdir(".ctx/heads")) == 1


def test_recovery_works_without_hard_links(
    based: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    commit(ctx, "One.")
    git("clean", "-qfdx")
    recover(ctx)
    assert facts(ctx) == {"Base.", "One."}


def test_the_whole_store_is_recovered_into_a_new_one(based: Path, ctx: Ctx) -> None:
    """It was never added to git, and was deleted completely."""
    shutil.rmtree(".git")
    git("init", "-q", "-b", "main")
    shutil.rmtree(".ctx")
    assert ctx("init", "--no-git").code == 0
    commit(ctx, "One.")
    git("clean", "-qfdx")
    assert ctx("init", "--no-git").code == 0
    assert "a head again" in recover(ctx).out
    assert facts(ctx) == {"One."}


def test_no_new_history_begins_after_a_removal(based: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    git("clean", "-qfdx")
    ctx("-q", "add", "--type", "fact", "Two.")
    refused = ctx("commit", "-m", "Two")
    assert refused.code == 1
    assert "error E009" in refused.err
    git("checkout", "-q", ".")
    # There is a history to go on with: what was removed stays named, and can join it later.
    assert ctx("commit", "--auto").code == 0
    assert REMOVED in ctx("list").err
    assert "a head again" in recover(ctx).out
    assert facts(ctx) == {"Base.", "One.", "Two."}


def test_a_removed_commit_can_be_given_up(based: Path, ctx: Ctx) -> None:
    lost = commit(ctx, "One.")
    assert "is in use" in ctx("stage", "abort", "--commit", lost[:8], "--dry-run").err
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    ctx("-q", "add", "--type", "fact", "Two.")
    assert ctx("commit", "-m", "Two").code == 0
    assert REMOVED in ctx("list").err
    assert ctx("stage", "abort", "--commit", lost[:8], "--dry-run").code == 0
    assert REMOVED in ctx("list").err
    given_up = ctx("stage", "abort", "--commit", lost[:8])
    assert (given_up.code, given_up.err) == (0, "")
    assert facts(ctx) == {"Base.", "Two."}
    assert recover(ctx, "--format", "json").json["commits"] == []
    assert ctx("gc", "--aggressive").code == 0
    assert "a head again" in recover(ctx, "--commit", lost[:8]).out
    assert facts(ctx) == {"Base.", "One.", "Two."}


def test_an_amended_commit_is_recovered_with_what_git_had_of_it(based: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    assert ctx("gc", "--aggressive").code == 0
    assert ctx("-q", "add", "--type", "fact", "Two.").code == 0
    assert ctx("commit", "--amend", "-m", "Both").code == 0
    git("add", "-A")
    git("reset", "-q", "--hard", "HEAD~1")
    assert "a head again" in recover(ctx).out
    shutil.rmtree(based / ".git/ctx/main/index")
    assert facts(ctx) == {"Base.", "One.", "Two."}
    assert ctx("debug", "verify").code == 0


def reset_what_was_added() -> None:
    git("add", "-A")
    git("reset", "-q", "--hard")


def stash_and_drop() -> None:
    git("stash", "-qu")
    git("stash", "drop", "-q")


def stash_what_was_added_and_drop() -> None:
    git("add", "-A")
    stash_and_drop()


def remove_from_the_index_and_clean() -> None:
    git("add", "-A")
    git("rm", "-rq", "--cached", ".ctx")
    git("checkout", "-qf", "HEAD")
    git("clean", "-qfdx")


def commit_and_reset_with_the_reflog() -> None:
    git("add", "-A")
    git("commit", "-qm", "Work.")
    git("reset", "-q", "--hard", "HEAD~1")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")


def add_in_part_and_reset() -> None:
    """Only the added files are removed."""
    git("add", ".ctx/heads")
    git("add", *[str(path) for path in sorted(Path(".ctx/objects").rglob("*"))[::2]])
    git("reset", "-q", "--hard")


@pytest.mark.parametrize(
    "throw_away",
    [
        reset_what_was_added,
        stash_and_drop,
        stash_what_was_added_and_drop,
        remove_from_the_index_and_clean,
        commit_and_reset_with_the_reflog,
        add_in_part_and_reset,
    ],
)
def test_commits_are_recovered_after(based: Path, ctx: Ctx, throw_away: Callable[[], None]) -> None:
    commit(ctx, "One.")
    commit(ctx, "Two.")
    assert ctx("gc", "--aggressive").code == 0
    throw_away()
    copies = snapshot(based / ".git/ctx/main/stage")
    for words in (["list"], ["search", "One"], ["log"], ["status"], ["doctor"], ["recall", "One"]):
        ctx(*words)
    assert snapshot(based / ".git/ctx/main/stage") == copies
    assert "git removed its files" in ctx("status").out
    assert states(ctx) == ["thrown away"]
    assert ctx("gc", "--aggressive").code == 0
    assert "a head again" in recover(ctx).out
    assert facts(ctx) == {"Base.", "One.", "Two."}
    assert ctx("debug", "verify").code == 0


def test_commits_of_a_removed_working_tree_are_recovered(
    based: Path, ctx: Ctx, tmp_path: Path
) -> None:
    git("worktree", "add", "-q", str(tmp_path / "side"))
    os.chdir(tmp_path / "side")
    commit(ctx, "Committed.")
    assert ctx("-q", "add", "--type", "fact", "Staged.").code == 0
    os.chdir(based)
    git("worktree", "remove", "--force", str(tmp_path / "side"))
    assert facts(ctx) == {"Base."}
    assert "worktree-side left staged work" in ctx("status").out
    assert "worktree-side is here" in recover(ctx).out
    assert facts(ctx) == {"Base.", "Committed.", "Staged."}
    assert recover(ctx, "--format", "json").json["worktrees"] == []
    assert ctx("debug", "verify").code == 0


def test_commits_of_a_deleted_branch_are_recovered(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    commit(ctx, "Lost.")
    git("add", "-A")
    git("switch", "-qf", "main")
    git("branch", "-qD", "feature")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    assert "thrown away" in states(ctx)
    recover(ctx)
    assert facts(ctx) >= {"Base.", "Lost."}
    keep(ctx, "Later.")
    assert facts(ctx) >= {"Base.", "Lost.", "Later."}
    assert states(ctx) == []


def test_commands_work_without_git(
    based: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit(ctx, "One.")
    git("commit", "-qm", "Another.", "--allow-empty")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts(ctx) == {"Base.", "One."}
    assert ctx("-q", "add", "--type", "fact", "Two.").code == 0
    assert ctx("commit", "-m", "Two").code == 0
    assert ctx("status").code == 0
    assert facts(ctx) == {"Base.", "One.", "Two."}


def test_commits_without_a_readable_entry_are_recovered(based: Path, ctx: Ctx) -> None:
    made = commit(ctx, "One.")
    (based / ".git/ctx/main/untracked" / made).write_text("{")
    git("add", "-A")
    git("reset", "-q", "--hard")
    assert REMOVED in ctx("list").err
    assert "a head again" in recover(ctx).out
    shutil.rmtree(based / ".git/ctx/main/untracked")
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    assert states(ctx) == ["thrown away"]
    assert "a head again" in recover(ctx).out
    assert facts(ctx) == {"Base.", "One."}


# Another branch is checked out


def test_a_head_follows_to_branches_with_its_parents(based: Path, ctx: Ctx) -> None:
    git("branch", "feature")
    commit(ctx, "One.")
    git("switch", "-q", "feature")
    assert facts(ctx) == {"Base.", "One."}
    keep(ctx, "Two.")
    assert facts(ctx) == {"Base.", "One.", "Two."}
    git("switch", "-q", "main")
    assert facts(ctx) == {"Base."}


def test_a_head_of_another_branch_is_parked(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    commit(ctx, "One.")
    commit(ctx, "Two.")
    git("switch", "-q", "main")
    assert facts(ctx) == {"Base."}
    assert states(ctx) == ["parked"]
    assert "(made on feature): parked" in ctx("status").out
    keep(ctx, "Main.")
    known = {"Base.", "Main."}
    assert facts(ctx) == known
    # Nothing of it is a head in what git has of this branch.
    assert len(git("ls-files", ".ctx/heads").split()) == 1
    git("switch", "-q", "feature")
    assert facts(ctx) == {"Base.", "Feature.", "One.", "Two."}
    assert states(ctx) == ["here"]
    keep(ctx, "Three.")
    assert facts(ctx) == {"Base.", "Feature.", "One.", "Two.", "Three."}
    git("switch", "-q", "main")
    assert facts(ctx) == known
    assert states(ctx) == []
    git("merge", "-q", "--no-edit", "feature")
    assert facts(ctx) == known | {"Feature.", "One.", "Two.", "Three."}


def test_a_parked_head_returns_when_its_branch_is_merged(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    commit(ctx, "One.")
    git("switch", "-q", "main")
    git("commit", "-qm", "Other.", "--allow-empty")
    assert facts(ctx) == {"Base."}
    git("merge", "-q", "--no-edit", "feature")
    assert facts(ctx) == {"Base.", "Feature.", "One."}


def test_stray_files_among_the_heads_are_ignored(based: Path, ctx: Ctx) -> None:
    for name in (".gitkeep", "x.orig", "ä\udcff"):
        (based / ".ctx/heads" / name).write_bytes(b"x")
    keep(ctx, "One.")
    assert facts(ctx) == {"Base.", "One."}
    assert "Ignored in .ctx/heads: " in ctx("status").out
    assert ctx("debug", "verify").code == 0
    assert ctx("gc").code == 0


# What is no accident


def left_alone(ctx: Ctx, expected: set[str]) -> None:
    before = snapshot(Path(".ctx"))
    assert facts(ctx) == expected
    assert recover(ctx, "--format", "json").json["commits"] == []
    assert snapshot(Path(".ctx")) == before


def test_commits_of_another_branch_are_left_alone(
    based: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    git("switch", "-q", "main")
    left_alone(ctx, {"Base."})
    with monkeypatch.context() as patch:
        # What git was asked once is known.
        patch.setenv("PATH", str(tmp_path))
        shown = ctx("list", "--format", "json")
        assert (shown.code, shown.err) == (0, "")
    git("branch", "-qD", "feature")
    left_alone(ctx, {"Base."})


def test_a_reset_of_git_commits_and_added_files_are_left_alone(based: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    # Once somebody has seen it in git, it is git's.
    assert ctx("gc").code == 0
    git("reset", "-q", "--hard", "HEAD~1")
    left_alone(ctx, {"Base."})
    commit(ctx, "Two.")
    git("add", "-A")
    git("clean", "-qfdx")
    left_alone(ctx, {"Base.", "Two."})


def test_a_stash_is_left_alone(based: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    for before in ([], ["add", "-A"]):
        if before:
            git(*before)
        git("stash", "-qu")
        left_alone(ctx, {"Base."})
        assert states(ctx) == ["stashed"]
        git("stash", "pop", "-q")
        assert facts(ctx) == {"Base.", "One."}


def test_a_commit_is_recovered_only_on_its_own_branch(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    commit(ctx, "Swept.")
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    git("switch", "-q", "main")
    before = snapshot(Path(".ctx"))
    assert states(ctx) == ["parked"]
    assert recover(ctx, "--format", "json").json["commits"] == []
    assert snapshot(Path(".ctx")) == before
    git("switch", "-q", "feature")
    assert "a head again" in recover(ctx).out
    assert facts(ctx) == {"Base.", "Feature.", "Swept."}


# Staged work that no branch has


def stage(ctx: Ctx, text: str) -> None:
    assert ctx("-q", "add", "--type", "fact", text).code == 0


def drop_what_staged_work_is_built_on(ctx: Ctx) -> None:
    keep(ctx, "Two.")
    assert ctx("gc", "--aggressive").code == 0
    stage(ctx, "Three.")
    git("reset", "-q", "--hard", "HEAD~1")


def test_parked_work_without_a_branch_is_taken_up_here(based: Path, ctx: Ctx) -> None:
    drop_what_staged_work_is_built_on(ctx)
    assert facts(ctx) == {"Base."}
    shown = ctx("status").out
    assert "Staged: cli (1 text, parked)" in shown
    assert "Parked session cli: no branch has what it is built on; `ctx stage recover`" in shown
    assert "cli is parked: no branch has what it is built on" in ctx("stage").out
    before = snapshot(based / ".ctx"), snapshot(based / ".git/ctx/main/stage")
    dry = recover(ctx, "--dry-run").out
    assert {line.strip() for line in dry.splitlines()} >= {"+ Two.", "+ Three."}
    assert "Session cli was parked: it would be taken up here." in dry
    assert (snapshot(based / ".ctx"), snapshot(based / ".git/ctx/main/stage")) == before
    recover(ctx)
    assert facts(ctx) == {"Base.", "Two.", "Three."}
    assert "Nothing to repair" in recover(ctx).out
    keep(ctx, "Four.")
    assert facts(ctx) == {"Base.", "Two.", "Three.", "Four."}
    assert ctx("debug", "verify").code == 0


def test_parked_work_is_taken_up_if_git_has_forgotten_its_commit(based: Path, ctx: Ctx) -> None:
    drop_what_staged_work_is_built_on(ctx)
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    found = recover(ctx, "--format", "json").json
    assert found["parked"] == [{"session": "cli", "branch": None, "texts": ["Three."]}]
    assert facts(ctx) == {"Base.", "Three."}
    keep(ctx, "Four.")
    assert facts(ctx) == {"Base.", "Three.", "Four."}
    assert ctx("debug", "verify").code == 0


def test_gc_copies_what_parked_work_is_built_on(based: Path, ctx: Ctx) -> None:
    drop_what_staged_work_is_built_on(ctx)
    assert ctx("gc", "--aggressive").code == 0
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    assert ctx("gc", "--aggressive", "--keep-days", "0").code == 0
    recover(ctx)
    assert facts(ctx) == {"Base.", "Two.", "Three."}
    assert ctx("debug", "verify").code == 0


def test_parked_work_names_a_branch_that_has_it(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "gone")
    keep(ctx, "Two.")
    stage(ctx, "Three.")
    git("branch", "-m", "renamed")
    git("switch", "-q", "main")
    assert "Parked session cli: check out renamed to continue" in ctx("status").out
    assert recover(ctx, "--format", "json").json["parked"][0]["branch"] == "renamed"
    assert facts(ctx) == {"Base."}
    git("tag", "kept", "renamed")
    git("branch", "-qD", "renamed")
    assert "check out refs/tags/kept" in ctx("stage").out
    git("tag", "-d", "kept")
    assert "`ctx stage recover` takes it up here" in ctx("status").out
    recover(ctx)
    assert facts(ctx) == {"Base.", "Two.", "Three."}


def test_a_commit_that_git_dropped_is_offered(based: Path, ctx: Ctx) -> None:
    keep(ctx, "Two.")
    dropped = os.listdir(".ctx/heads")[0][:12]
    assert ctx("gc", "--aggressive").code == 0
    git("reset", "-q", "--hard", "HEAD~1")
    assert f"no branch has it; `ctx stage recover --commit {dropped}`" in ctx("status").out
    found = recover(ctx, "--format", "json").json
    assert (found["commits"], found["dropped"][0]["texts"]) == ([], ["Two."])
    assert facts(ctx) == {"Base."}
    recover(ctx, "--commit", dropped)
    assert facts(ctx) == {"Base.", "Two."}
    assert states(ctx) == ["here"]
    git("reset", "-q", "--hard", "HEAD@{1}")
    assert (facts(ctx), states(ctx)) == ({"Base.", "Two."}, [])


def test_commits_of_a_removed_working_tree_and_its_branch_are_offered(
    based: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their reflogs are gone too."""
    side = based.parent / "side"
    git("worktree", "add", "-q", "-b", "side", str(side))
    monkeypatch.chdir(side)
    for text in ("One.", "Two.", "Three."):
        keep(ctx, text)
    monkeypatch.chdir(based)
    git("worktree", "remove", "--force", str(side))
    assert recover(ctx, "--dry-run", "--format", "json").json["worktree_texts"] == []
    git("branch", "-qD", "side")
    found = recover(ctx, "--dry-run", "--format", "json").json
    assert found["worktree_texts"] == ["Three."]
    assert [each["texts"] for each in found["dropped"]] == [["One.", "Two."]]
    recover(ctx)
    assert facts(ctx) == {"Base.", "One.", "Two.", "Three."}
    assert ctx("debug", "verify").out.count("no damage found") == 1
    git("gc", "-q", "--prune=now")
    assert (facts(ctx), states(ctx)) == ({"Base.", "One.", "Two.", "Three."}, ["here"])


def test_a_commit_of_others_that_git_dropped_is_not_offered(based: Path, ctx: Ctx) -> None:
    """Its texts may be anybody's, and agents read the status."""
    keep(ctx, "Two.")
    assert ctx("gc", "--aggressive").code == 0
    (based / ".git/ctx/main/mine").unlink()
    git("reset", "-q", "--hard", "HEAD~1")
    assert states(ctx) == []
    assert recover(ctx, "--format", "json").json["dropped"] == []


def test_gc_removes_what_was_aborted_and_keeps_what_is_parked(based: Path, ctx: Ctx) -> None:
    stage(ctx, "Given up.")
    assert ctx("stage", "abort").code == 0
    git("switch", "-qc", "feature")
    keep(ctx, "Two.")
    stage(ctx, "Parked.")
    git("switch", "-q", "main")
    assert ctx("gc", "--aggressive", "--keep-days", "0").code == 0
    assert [each["state"] for each in ctx("stage", "--format", "json").json["chains"]] == ["parked"]
    git("switch", "-q", "feature")
    assert facts(ctx) == {"Base.", "Two.", "Parked."}


# Stopped in between


def test_an_interrupted_recovery_can_be_repeated(based: Path, ctx: Ctx) -> None:
    commit(ctx, "One.")
    commit(ctx, "Two.")
    whole = snapshot(based / ".ctx")
    git("clean", "-qfdx")
    saved = Saved(based)
    counting = Disk()
    with counting.installed():
        assert main(["stage", "recover"]) == 0
    for number in range(0, counting.operations, 5):
        saved.restore()
        with Disk(number).installed(), suppress(Stopped):
            main(["stage", "recover"])
        recover(ctx)
        assert facts(ctx) == {"Base.", "One.", "Two."}, counting.log[number]
        found = snapshot(based / ".ctx")
        assert {name for name in whole if name not in found} == set(), counting.log[number]


@pytest.mark.parametrize("gone", ["branch", "commit", "working tree"])
def test_parked_work_can_be_taken_up_after_an_interruption(
    based: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    expected = {"Base.", "Two.", "Three."}
    if gone == "working tree":
        git("worktree", "add", "-q", "--detach", str(based.parent / "side"))
        monkeypatch.chdir(based.parent / "side")
        keep(ctx, "Two.")
        stage(ctx, "Three.")
        monkeypatch.chdir(based)
        git("worktree", "remove", "--force", str(based.parent / "side"))
    else:
        drop_what_staged_work_is_built_on(ctx)
    if gone == "commit":
        git("reflog", "expire", "--expire=now", "--all")
        git("gc", "-q", "--prune=now")
        expected.remove("Two.")
    saved = Saved(based)
    counting = Disk()
    with counting.installed():
        assert main(["stage", "recover"]) == 0
    for number in range(0, counting.operations, effort.every(3)):
        saved.restore()
        with Disk(number).installed(), suppress(Stopped):
            main(["stage", "recover"])
        found = recover(ctx, "--dry-run", "--format", "json").json
        parts = [*found["commits"], *found["parked"]]
        offered = {text for part in parts for text in part["texts"]}.union(found["worktree_texts"])
        shown = ctx("list", "--format", "json").json["nodes"]
        assert offered.union(node["content"] for node in shown) == expected, counting.log[number]
        recover(ctx)
        assert facts(ctx) == expected, counting.log[number]
        assert ctx("debug", "verify").code == 0


def test_old_hard_links_are_collected(based: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    # An open session began from it, and needs no second name of it.
    ctx("-q", "add", "--type", "fact", "Staged.")
    staged = based / ".git/ctx/main/stage/objects"
    head = os.listdir(".ctx/heads")[0]
    assert head in os.listdir(staged)
    for entry in staged.iterdir():
        os.utime(entry, LONG_AGO)
    assert ctx("gc").code == 0
    assert head not in os.listdir(staged)
    assert facts(ctx) == {"Base.", "One.", "Staged."}
    assert ctx("debug", "verify").code == 0


def test_gc_works_if_the_base_of_a_session_is_on_another_branch(
    based: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hard link to a commit of another branch exists, but not all of its objects."""
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    head = os.listdir(".ctx/heads")[0]
    with monkeypatch.context() as patch:
        patch.setenv("CTX_SESSION", "other")
        ctx("-q", "add", "--type", "fact", "Staged.")
    keep(ctx, "More.")
    git("switch", "-q", "main")
    staged = based / ".git/ctx/main/stage/objects"
    for entry in staged.iterdir():
        if entry.name != head:
            os.utime(entry, LONG_AGO)
    for _ in range(2):
        assert ctx("gc").code == 0
    assert head in os.listdir(staged)
    git("switch", "-q", "feature")
    assert facts(ctx) == {"Base.", "Feature.", "Staged.", "More."}


@pytest.mark.parametrize("seed", range(effort.times(12)))
def test_random_git_commands_lose_nothing_without_a_report(tmp_path: Path, seed: int) -> None:
    Trial(tmp_path, seed).run()
