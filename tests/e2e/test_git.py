"""Memory in git: branches merge without conflicts, and nothing is lost."""

import os
import shutil
import time
from pathlib import Path

import pytest

from ctx import clock
from ctx.context import project_store_context
from ctx.layout import project_at
from ctx.objects import trees
from ctx.objects.repository import Repository
from ctx.objects.verify import verify
from tests.conftest import Ctx, git
from tests.e2e.conftest import messages


def repository(folder: Path) -> Repository:
    return Repository(project_at(str(folder)))


def paths(folder: Path) -> dict[str, str]:
    store = repository(folder)
    found = trees.combined_paths(store.objects, store.current())
    return {path: store.objects.read(blob).payload.decode() for path, blob in found.items()}


def remember(ctx: Ctx, name: str, text: str, message: str) -> None:
    """Commit a file to memory, and then everything to git."""
    Path(name).write_text(text)
    assert ctx("add", "file", name, "-m", message).code == 0
    git("add", "-A")
    git("commit", "-qm", message)


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    remember(ctx, "base.txt", "base\n", "Base")
    return repo


def test_two_branches_that_both_commit_merge_cleanly(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    for number in range(2):
        remember(ctx, f"other{number}.txt", f"{number}\n", f"Other {number}")
    git("switch", "-q", "main")
    for number in range(2):
        remember(ctx, f"main{number}.txt", f"{number}\n", f"Main {number}")
    assert ctx("commit", "--amend", "-m", "Main 1, amended").code == 0
    git("add", "-A")
    git("commit", "-qm", "Amend")

    git("merge", "-q", "--no-edit", "other")
    assert git("status", "--porcelain") == ""
    assert len(repository(project).current()) == 2
    assert ctx("debug", "verify").code == 0
    expected = {"Base", "Main 0", "Main 1, amended", "Other 0", "Other 1"}
    assert messages(project) == expected
    names = {"base.txt", "main0.txt", "main1.txt", "other0.txt", "other1.txt"}
    assert set(paths(project)) == names

    assert "joins 2 heads" in ctx("commit", "-m", "Join").out
    assert ctx("commit", "-m", "Again", "--format", "json").json["commit"] is None
    (head,) = repository(project).current()
    assert len(head[1].parents) == 2
    remember(ctx, "after.txt", "after\n", "After")
    assert set(paths(project)) == {*names, "after.txt"}
    git("merge", "-q", "other")
    assert len(repository(project).current()) == 1


def test_the_later_of_two_versions_wins(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    remember(ctx, "base.txt", "from the other branch\n", "Other")
    git("switch", "-q", "main")
    time.sleep(1.1)  # Commits are stamped in seconds.
    Path("base.txt").write_text("from main, later\n")
    assert ctx("add", "file", "base.txt", "-m", "Main").code == 0
    git("add", "-A", ".ctx")
    git("commit", "-qm", "Main")
    git("checkout", "-q", "--", "base.txt")
    git("merge", "-q", "--no-edit", "other")
    assert paths(project)["base.txt"] == "from main, later\n"
    remember(ctx, "x.txt", "x\n", "Join")
    assert paths(project)["base.txt"] == "from main, later\n"


def test_a_missing_parent_is_a_boundary(project: Path, ctx: Ctx, tmp_path: Path) -> None:
    remember(ctx, "one.txt", "1\n", "One")
    store = repository(project)
    (head,) = store.current()
    parent = head[1].parents[0]
    os.unlink(Path(store.objects.folder) / parent[:2] / parent)
    shown = ctx("debug", "verify")
    assert shown.code == 0
    assert "History ends before 1 object" in shown.out
    assert "history ends here" in ctx("debug", "history").out
    remember(ctx, "two.txt", "2\n", "Two")
    assert {"one.txt", "two.txt", "base.txt"} <= set(paths(project))
    assert ctx("gc", "--keep-days", "0").code == 0
    assert not verify(repository(project)).damages


LONG_AGO = "2020-01-01T00:00:00Z"


@pytest.fixture
def old_project(repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a tracked object that no head has used for years."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", LONG_AGO)
    assert ctx("init").code == 0
    remember(ctx, "base.txt", "base\n", "Base")
    Path("once.txt").write_text("said once\n")
    assert ctx("add", "file", "once.txt", "-m", "Once").code == 0
    git("add", "-A", ".ctx")
    git("commit", "-qm", "Once")
    # Go back to the state before, but leave the objects: what an amended commit leaves too.
    words = ("--no-renames", "--name-only", "--diff-filter=A", "HEAD~1", ".ctx/heads")
    git("rm", "-q", "-f", git("diff", *words).strip())
    git("checkout", "-q", "HEAD~1", "--", ".ctx/heads")
    git("commit", "-qm", "Back")
    os.unlink("once.txt")
    assert "once.txt" not in paths(repo)
    # The last commit made here must not keep it alive either.
    shutil.rmtree(".git/ctx/main")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_DATE")
    return repo


def test_only_gc_tracked_deletes_long_unused_objects(old_project: Path, ctx: Ctx) -> None:
    answer = ctx("gc", "--keep-days", "0", "--format", "json").json
    assert answer["deleted"] == []
    assert answer["held_by_git"] > 0
    assert ctx("gc", "--tracked").code == 1
    assert git("status", "--porcelain") == ""
    answer = ctx("gc", "--tracked", "--yes", "--format", "json").json
    assert all(item["tracked"] for item in answer["deleted"])
    assert len(answer["deleted"]) >= 3
    assert ctx("debug", "verify").code == 0
    assert set(paths(old_project)) == {"base.txt"}


def test_gc_tracked_keeps_objects_of_other_branches_and_those_recently_used(
    old_project: Path, ctx: Ctx
) -> None:
    git("branch", "other", "HEAD~1")
    assert ctx("gc", "--tracked", "--yes", "--format", "json").json["deleted"] == []
    git("branch", "-D", "other")
    git("revert", "--no-edit", "HEAD")
    git("revert", "--no-edit", "HEAD")
    assert ctx("gc", "--tracked", "--yes", "--format", "json").json["deleted"] == []


def test_an_object_collected_on_one_branch_can_be_used_on_another(
    old_project: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone" / "app"
    git("clone", "-q", str(old_project), str(clone))
    assert ctx("gc", "--tracked", "--yes").code == 0
    git("add", "-A", ".ctx")
    git("commit", "-qm", "Collect")

    monkeypatch.chdir(clone)
    assert ctx("trust", "--yes").code == 0
    remember(ctx, "again.txt", "said once\n", "Said again")
    git("pull", "-q", "--no-rebase", "--no-edit")
    assert paths(clone)["again.txt"] == "said once\n"
    assert ctx("debug", "verify").code == 0

    monkeypatch.chdir(old_project)
    git("pull", "-q", "--no-rebase", "--no-edit", str(clone), "main")
    assert paths(old_project)["again.txt"] == "said once\n"
    assert ctx("debug", "verify").code == 0


def test_two_branches_that_create_a_store_merge(repo: Path, ctx: Ctx) -> None:
    (repo / "x").write_text("x")
    git("add", "x")
    git("commit", "-qm", "x")
    git("switch", "-qc", "other")
    assert ctx("init").code == 0
    remember(ctx, "o.txt", "o\n", "Other")
    git("switch", "-q", "main")
    assert ctx("init").code == 0
    remember(ctx, "m.txt", "m\n", "Main")
    git("merge", "-q", "--no-edit", "other")
    assert set(paths(repo)) == {"o.txt", "m.txt"}
    assert ctx("debug", "verify").code == 0


def test_staged_work_follows_when_the_project_becomes_a_checkout(folder: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (folder / "a.txt").write_text("a\n")
    assert ctx("add", "file", "a.txt", "--session", "s").code == 0
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "All")
    assert ctx("gc").code == 0
    git("clean", "-qfdx")
    assert ctx("commit", "-m", "Kept", "--session", "s", "--format", "json").json["files"] == [
        "a.txt"
    ]
    assert ctx("debug", "verify").code == 0


@pytest.mark.parametrize("top", [".", ".."], ids=["here", "above"])
def test_a_store_stays_trusted_when_the_project_becomes_a_checkout(
    folder: Path, ctx: Ctx, surroundings: Path, top: str
) -> None:
    home = str(surroundings / ".ctx")

    def texts() -> list[str]:
        shown = ctx("list", "--project", "--format", "json")
        assert (shown.code, shown.err) == (0, "")
        return sorted(node["content"] for node in shown.json["nodes"])

    assert ctx("init").code == 0
    assert ctx("add", "Staged before git").code == 0
    git("init", "-q", "-b", "main", top)
    # A hook trusts it too, and has the index built.
    state = project_store_context.read(home, project_at(str(folder)))
    assert (state.is_current, state.notice) == (False, project_store_context.MISSING)
    assert texts() == ["Staged before git"]
    assert ctx("add", "Staged after git").code == 0
    assert texts() == ["Staged after git", "Staged before git"]
    # What belongs to this machine is where git does not touch it.
    git("clean", "-qfdX")
    assert texts() == ["Staged after git", "Staged before git"]
    state = project_store_context.read(home, project_at(str(folder)))
    assert (state.is_current, state.notice) == (True, "")
    assert state.connection
    state.connection.close()


def test_staged_work_stays_with_its_branch(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    remember(ctx, "other.txt", "other\n", "Other")
    Path("staged.txt").write_text("staged\n")
    assert ctx("add", "file", "staged.txt").code == 0
    git("switch", "-q", "main")
    nothing = ctx("commit", "-m", "Here?")
    assert nothing.out.startswith("Nothing to commit")
    assert "Other sessions with staged work: cli-" in nothing.out
    Path("here.txt").write_text("here\n")
    assert ctx("add", "file", "here.txt", "-m", "Here").code == 0
    assert "staged.txt" not in paths(project)
    git("add", "-A", ".ctx")
    git("commit", "-qm", "Here")
    git("switch", "-q", "other")
    (parked,) = [
        item["name"]
        for item in ctx("debug", "refs", "--format", "json").json["pointers"]
        if item["kind"] == "session"
    ]
    made = ctx("commit", "-m", "There", "--session", parked, "--format", "json").json
    assert made["files"] == ["staged.txt"]


def test_staged_work_that_is_set_aside_is_reported(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    remember(ctx, "other.txt", "other\n", "Other")
    Path("s.txt").write_text("s\n")
    assert ctx("add", "file", "s.txt").code == 0
    git("switch", "-q", "main")
    git("branch", "-qD", "other")
    ran = ctx("add", "file", "s.txt")
    assert ran.code == 0
    assert "Work staged on another branch is now in session cli-" in ran.err
    assert ctx("commit", "-m", "S").code == 0


def test_staged_work_survives_an_amend_of_its_base(project: Path, ctx: Ctx) -> None:
    Path("s.txt").write_text("s\n")
    assert ctx("add", "file", "s.txt", "--session", "s").code == 0
    assert ctx("commit", "--amend", "-m", "Base, amended").code == 0
    assert ctx("commit", "--amend", "-m", "Base, amended twice").code == 0
    assert ctx("gc", "--keep-days", "0").code == 0
    assert ctx("commit", "-m", "S", "--session", "s").code == 0
    assert messages(project) == {"Base, amended twice", "S"}


def test_the_store_is_tracked_despite_ignore_patterns(repo: Path, ctx: Ctx) -> None:
    (repo / ".gitignore").write_text("objects/\nlog/\nheads\n*.md\n*.toml\n")
    assert ctx("init").code == 0
    remember(ctx, "a.txt", "a\n", "A")
    clone = repo.parent / "clone" / "app"
    git("clone", "-q", str(repo), str(clone))
    assert paths(clone) == {"a.txt": "a\n"}
    assert (clone / ".ctx" / "narrative" / "README.md").exists()


def test_private_works_in_any_folder(repo: Path, ctx: Ctx) -> None:
    (repo / ".git" / "info" / "exclude").write_bytes(b"# caf\xe9")
    for name in ("pkg[1]", "a*b", "back\\slash", "sp ace"):
        (repo / name).mkdir()
        assert ctx("init", name, "--template", "private").code == 0
        assert git("status", "--porcelain") == ""


def test_what_git_does_with_a_store_gives_a_warning(repo: Path, ctx: Ctx) -> None:
    (repo / ".gitignore").write_text(".ctx/\n")
    made = ctx("init")
    assert (made.code, "warning: `git add` failed" in made.err) == (0, True)
    git("add", "-f", ".ctx")
    made = ctx("init", "--force", "--yes", "--template", "private")
    assert (made.code, "git already tracks .ctx" in made.err) == (0, True)


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", LONG_AGO)


def amend(ctx: Ctx) -> None:
    Path("a.txt").write_text("two\n")
    ctx("add", "file", "a.txt")
    assert ctx("commit", "--amend", "-m", "A2").code == 0
    git("add", "-A")
    git("commit", "-qm", "A2")


def collect(ctx: Ctx) -> None:
    assert ctx("gc", "--tracked", "--keep-days", "0", "--yes").code == 0
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", "Collect")


def test_gc_tracked_considers_commits_inside_a_merge(repo: Path, ctx: Ctx, long_ago: None) -> None:
    assert ctx("init").code == 0
    remember(ctx, "a.txt", "one\n", "A")
    git("switch", "-qc", "side")
    remember(ctx, "s.txt", "s\n", "S")
    git("switch", "-q", "main")
    amend(ctx)
    git("switch", "-q", "side")
    git("merge", "-q", "--no-commit", "--no-ff", "main")
    remember(ctx, "j.txt", "j\n", "J")
    remember(ctx, "k.txt", "k\n", "K")
    git("switch", "-q", "main")
    collect(ctx)
    git("switch", "-q", "side")
    git("merge", "-q", "--no-edit", "main")
    assert ctx("debug", "verify").code == 0


def test_gc_tracked_considers_other_working_trees(
    repo: Path, ctx: Ctx, tmp_path: Path, long_ago: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("init").code == 0
    remember(ctx, "a.txt", "one\n", "A1")
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", "--detach", str(linked))
    monkeypatch.chdir(linked)
    remember(ctx, "l.txt", "l\n", "L")
    monkeypatch.chdir(repo)
    amend(ctx)
    collect(ctx)
    monkeypatch.chdir(linked)
    git("merge", "-q", "--no-edit", "main")
    assert ctx("debug", "verify").code == 0


def test_gc_tracked_works_on_a_branch_without_a_commit(project: Path, ctx: Ctx) -> None:
    git("switch", "-q", "--orphan", "fresh")
    assert ctx("init").code == 0
    assert ctx("gc", "--tracked", "--yes").code == 0


def test_verify_reports_no_damage_after_a_reset_and_a_deleted_branch(
    project: Path, ctx: Ctx
) -> None:
    remember(ctx, "x.txt", "x\n", "X")
    git("reset", "-q", "--hard", "HEAD~1")
    assert ctx("debug", "verify").code == 0
    assert "not in the current checkout" in ctx("debug", "refs").out
    git("switch", "-qc", "other")
    remember(ctx, "y.txt", "y\n", "Y")
    git("switch", "-q", "main")
    git("branch", "-qD", "other")
    assert ctx("debug", "verify").code == 0


def test_staged_work_survives_a_temporarily_missing_git_folder(project: Path, ctx: Ctx) -> None:
    Path("one.txt").write_text("1\n")
    assert ctx("add", "file", "one.txt").code == 0
    away = project.parent / "away"
    (project / ".git").rename(away)
    Path("two.txt").write_text("2\n")
    # The mark of trust is in it.
    assert ctx("add", "file", "two.txt").code == 1
    away.rename(project / ".git")
    assert ctx("gc", "--keep-days", "0", "--aggressive").code == 0
    assert ctx("commit", "-m", "One", "--format", "json").json["files"] == ["one.txt"]


def test_a_commit_leaves_the_git_index_unchanged(project: Path, ctx: Ctx) -> None:
    index = project / ".git" / "index"
    os.utime(project / "base.txt")
    before = index.read_bytes()
    Path("x.txt").write_text("x\n")
    assert ctx("add", "file", "x.txt", "-m", "X").code == 0
    assert index.read_bytes() == before
    assert "to add to git" in ctx("commit", "--amend", "-m", "Y").err


def test_an_edit_within_one_second_wins_over_its_base(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now)
    for number in range(3):
        remember(ctx, "f.txt", f"base {number}\n", f"Base {number}")
        git("switch", "-qc", f"b{number}")
        remember(ctx, "f.txt", f"edit {number}\n", f"Edit {number}")
        git("switch", "-q", "main")
        remember(ctx, "g.txt", f"{number}\n", f"Other {number}")
        git("merge", "-q", "--no-edit", f"b{number}")
        assert paths(project)["f.txt"] == f"edit {number}\n"
        assert ctx("commit", "-m", f"Join {number}").code == 0
        git("add", "-A")
        git("commit", "-qm", f"Join {number}")


def test_a_file_and_a_folder_of_the_same_name_merge(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    Path("x").mkdir()
    Path("x/y").write_text("y\n")
    assert ctx("add", "file", "x/y", "-m", "Folder").code == 0
    Path("x/y").unlink()
    Path("x").rmdir()
    git("add", "-A", ".ctx")
    git("commit", "-qm", "Folder")
    git("switch", "-q", "main")
    remember(ctx, "x", "x\n", "File")
    git("merge", "-q", "--no-edit", "other")
    assert set(paths(project)) == {"base.txt", "x/y"}
    assert ctx("add", "file", "x", "-m", "File again").code == 0
    assert paths(project) == {"base.txt": "base\n", "x": "x\n"}


def test_gc_stops_at_a_missing_head_in_a_history_with_gaps(project: Path, ctx: Ctx) -> None:
    remember(ctx, "one.txt", "1\n", "One")
    git("switch", "-qc", "other")
    remember(ctx, "two.txt", "2\n", "Two")
    git("switch", "-q", "main")
    remember(ctx, "three.txt", "3\n", "Three")
    git("merge", "-q", "--no-edit", "other")
    store = repository(project)
    first, second = store.current()
    for id in (first.commit.parents[0], second.id):
        os.unlink(Path(store.objects.folder) / id[:2] / id)
    ran = ctx("gc", "--keep-days", "0")
    assert ran.code == 1
    assert "error E001" in ran.err
