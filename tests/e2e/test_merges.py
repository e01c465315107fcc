"""Memory follows every git operation on branches, without losses or conflicts."""

import os
from pathlib import Path

import pytest

from ctx import disk
from tests import effort
from tests.conftest import Ctx, git
from tests.e2e import merge_trials


@pytest.mark.parametrize("seed", range(effort.times(3)))
def test_any_branches_merge_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # Nothing here is about power failures.
    monkeypatch.setattr(disk, "sync", lambda _: None)
    base, space = tmp_path / "base", tmp_path / "trial"
    merge_trials.make_base(base, attributes=seed % 2 == 0)
    space.mkdir()
    merge_trials.trial(base, space, seed)


# One thing at a time


def stage(ctx: Ctx, text: str) -> None:
    done = ctx("-q", "add", "--type", "fact", text)
    assert (done.code, done.err) == (0, ""), done


def keep(ctx: Ctx, text: str) -> None:
    """Commit a fact to memory, and then everything to git."""
    stage(ctx, text)
    assert ctx("commit", "-m", text).code == 0
    git("add", "-A")
    git("commit", "-qm", text)


def facts(ctx: Ctx, folder: Path | None = None) -> set[str]:
    """The facts that a reader sees; reading prints no warning and changes nothing."""
    where = ("-C", str(folder)) if folder else ()
    before = git("status", "--porcelain", cwd=folder)
    shown = ctx("list", "--limit", "0", "--format", "json", *where)
    assert (shown.code, shown.err) == (0, "")
    assert git("status", "--porcelain", cwd=folder) == before
    return {node["content"] for node in shown.json["nodes"]}


def assert_consistent(ctx: Ctx) -> None:
    assert git("status", "--porcelain") == ""
    for words in (["debug", "verify"], ["status"], ["log"], ["doctor"]):
        done = ctx(*words)
        assert "error" not in done.err, done
        assert done.code == 0 or words == ["doctor"], done


def test_a_rebase_keeps_memory(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "One.")
    keep(ctx, "Two.")
    git("switch", "-q", "main")
    keep(ctx, "Main.")
    git("switch", "-q", "feature")
    git("rebase", "-q", "main")
    assert_consistent(ctx)
    assert facts(ctx) == {"Base.", "One.", "Two.", "Main."}
    keep(ctx, "After.")
    assert len(os.listdir(".ctx/heads")) == 1
    assert facts(ctx) == {"Base.", "One.", "Two.", "Main.", "After."}


def test_a_cherry_pick_takes_memory_along(based: Path, ctx: Ctx) -> None:
    """The commit before it stays on its branch; the history ends there without an error."""
    git("switch", "-qc", "feature")
    keep(ctx, "One.")
    keep(ctx, "Two.")
    git("switch", "-q", "main")
    keep(ctx, "Main.")
    git("cherry-pick", "feature")
    assert_consistent(ctx)
    assert facts(ctx) == {"Base.", "Two.", "Main."}
    assert ctx("debug", "index").code == 0
    assert ctx("gc", "--keep-days", "0").code == 0
    assert ctx("debug", "verify").code == 0
    # What was picked is not there twice once the rest comes.
    git("merge", "-q", "--no-edit", "feature")
    assert_consistent(ctx)
    assert facts(ctx) == {"Base.", "One.", "Two.", "Main."}


def test_a_squash_merge_keeps_memory(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "One.")
    keep(ctx, "Two.")
    git("switch", "-q", "main")
    keep(ctx, "Main.")
    git("merge", "-q", "--squash", "feature")
    git("commit", "-qm", "Squashed")
    assert_consistent(ctx)
    assert facts(ctx) == {"Base.", "One.", "Two.", "Main."}


def test_a_revert_reverts_memory(based: Path, ctx: Ctx) -> None:
    keep(ctx, "One.")
    git("revert", "--no-edit", "HEAD")
    assert_consistent(ctx)
    assert facts(ctx) == {"Base."}
    keep(ctx, "Two.")
    assert facts(ctx) == {"Base.", "Two."}
    git("revert", "--no-edit", "HEAD~1")
    assert_consistent(ctx)
    assert facts(ctx) == {"Base.", "One.", "Two."}


def test_a_stash_contains_memory(based: Path, ctx: Ctx) -> None:
    stage(ctx, "Committed.")
    assert ctx("commit", "-m", "Committed").code == 0
    stage(ctx, "Staged.")
    git("stash", "-qu")
    # What is staged began in what is in the stash now: it waits for it.
    assert facts(ctx) == {"Base."}
    stage(ctx, "Meanwhile.")
    assert facts(ctx) == {"Base.", "Meanwhile."}
    assert ctx("commit", "-m", "Meanwhile").code == 0
    git("add", "-A")
    git("commit", "-qm", "Meanwhile")
    git("stash", "pop", "-q")
    assert facts(ctx) == {"Base.", "Committed.", "Staged.", "Meanwhile."}
    assert ctx("commit", "-m", "All").code == 0
    git("add", "-A")
    git("commit", "-qm", "All")
    assert facts(ctx) == {"Base.", "Committed.", "Staged.", "Meanwhile."}
    assert_consistent(ctx)


def test_git_clean_does_not_remove_staged_nodes(based: Path, ctx: Ctx) -> None:
    stage(ctx, "Staged.")
    assert ctx("add", "task", "Ship it", "--body", "All of it.").code == 0
    git("clean", "-qfdx")
    git("checkout", "-q", ".")
    there = facts(ctx)
    assert {"Base.", "Staged."} < there
    assert any("Ship it" in each for each in there)
    assert ctx("commit", "-m", "Survived").code == 0
    assert facts(ctx) == there


def test_working_trees_have_separate_memory(based: Path, ctx: Ctx, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", str(linked), "-b", "linked")
    stage(ctx, "Here.")
    assert ctx("add", "--type", "fact", "There.", "-C", str(linked)).code == 0
    assert facts(ctx) == {"Base.", "Here."}
    assert facts(ctx, linked) == {"Base.", "There."}
    assert ctx("commit", "-m", "There", "-C", str(linked)).code == 0
    git("add", "-A", cwd=linked)
    git("commit", "-qm", "There", cwd=linked)
    assert facts(ctx) == {"Base.", "Here."}
    git("merge", "-q", "linked")
    # What is staged here began in what the other worktree has gone on from.
    assert facts(ctx) == {"Base.", "Here.", "There."}
    git("worktree", "remove", "--force", str(linked))
    assert facts(ctx) == {"Base.", "Here.", "There."}


def test_a_shallow_clone_has_the_whole_memory(based: Path, ctx: Ctx, tmp_path: Path) -> None:
    for text in ("One.", "Two.", "Three."):
        keep(ctx, text)
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth", "1", f"file://{based}", str(clone))
    assert ctx("-C", str(clone), "trust", "--yes").code == 0
    assert facts(ctx, clone) == {"Base.", "One.", "Two.", "Three."}
    assert ctx("add", "--type", "fact", "Four.", "-C", str(clone)).code == 0
    assert ctx("commit", "-m", "Four", "-C", str(clone)).code == 0
    assert facts(ctx, clone) == {"Base.", "One.", "Two.", "Three.", "Four."}


def test_memory_follows_the_branch(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    keep(ctx, "Feature.")
    stage(ctx, "Staged on feature.")
    on_feature = {"Base.", "Feature.", "Staged on feature."}
    for _ in range(2):
        git("switch", "-q", "main")
        assert facts(ctx) == {"Base."}
        git("switch", "-q", "feature")
        assert facts(ctx) == on_feature
    git("switch", "-q", "main")
    stage(ctx, "Staged on main.")
    assert facts(ctx) == {"Base.", "Staged on main."}
    assert ctx("commit", "-m", "Main").code == 0
    git("add", "-A")
    git("commit", "-qm", "Main")
    git("switch", "-q", "feature")
    assert facts(ctx) == on_feature
    assert ctx("commit", "-m", "Feature").code == 0
    git("add", "-A")
    git("commit", "-qm", "Feature")
    git("switch", "-q", "main")
    assert facts(ctx) == {"Base.", "Staged on main."}
    git("merge", "-q", "--no-edit", "feature")
    assert facts(ctx) == on_feature | {"Staged on main."}
    assert_consistent(ctx)


def test_a_document_belongs_to_its_branch(based: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "feature")
    made = ctx("add", "task", "Ship it", "--body", "All of it.", "--format", "json").json
    assert ctx("commit", "-m", "Task").code == 0
    git("add", "-A")
    git("commit", "-qm", "Task")
    Path(made["path"]).write_text(Path(made["path"]).read_text().replace("All", "Half"))
    git("commit", "-qam", "Edit")
    shown = ctx("show", made["node"]["id"], "--format", "json").json
    assert "Half of it." in shown["node"]["content"]
    git("switch", "-q", "main")
    assert facts(ctx) == {"Base."}
    git("merge", "-q", "feature")
    shown = ctx("show", made["node"]["id"], "--format", "json").json
    assert "Half of it." in shown["node"]["content"]
    assert_consistent(ctx)


def test_two_branches_can_use_the_same_document_number(based: Path, ctx: Ctx) -> None:
    for branch in ("one", "two"):
        git("switch", "-qc", branch, "main")
        assert ctx("add", "task", "Ship it", "--body", f"On {branch}.").code == 0
        assert ctx("commit", "-m", branch).code == 0
        git("add", "-A")
        git("commit", "-qm", branch)
    git("merge", "-q", "--no-edit", "one")
    assert_consistent(ctx)
    tasks = [each for each in facts(ctx) if each.startswith("Ship it")]
    assert len(tasks) == 2
