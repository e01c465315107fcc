"""Settings, hooks, aliases and filters of a repository never start a program."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.capture.conversations import Client
from tests.conftest import Ctx, git
from tests.e2e.command_examples import (
    OTHER_WRITES,
    READS,
    STORE_WRITES,
    filled,
    leaf,
    lines,
)
from tests.e2e.hostile_repository import HostileRepository
from tests.worker.worker_processes import until

# What the examples of other commands then work on, and what reaches further than they do.
BEFORE = """
init --force --yes
trust --yes
add file .
add code .
add command -- true
add rust .
commit --amend -m Two
code changed --since HEAD~1
log --day 2026-01-01
scrub Timeouts --yes
gc --keep-days 0 --aggressive
gc --tracked --keep-days 0
install --git
uninstall --git
"""


@pytest.fixture
def hostile(repo: Path, tmp_path: Path, ctx: Ctx) -> HostileRepository:
    made = HostileRepository(repo, tmp_path / "ran")
    (repo / "app.py").write_text("def main():\n    return 1\n")
    (repo / "other.py").write_text("import app\n")
    git("add", ".")
    git("commit", "-qm", "First")
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "One").code == 0
    assert ctx("commit", "-m", "Zero").code == 0
    git("add", ".")
    git("commit", "-qm", "A store")
    (repo / "app.py").write_text("def main():\n    return 2\n")
    made.spring()
    made.markers()
    return made


def test_the_traps_work(hostile: HostileRepository) -> None:
    """Plain git runs the traps, so that an empty folder of markers proves something.

    Some of them end git before it reaches the others, in varying order, so git is run until all
    of them have run.
    """
    expected = {
        *("core.fsmonitor.worktree", "filter.long.process", "gpg.openpgp"),
        *("filter.included.clean", "filter.worktree.clean", "filter.a.b.clean", "remote.ext"),
        *("sub.fsmonitor", "sub.filter", ".ctx_sub.filter", "hooksPath.post-index-change"),
    }

    def have_all_run() -> bool:
        for words in ("status", "add .", "log -2", "diff HEAD", "cat-file -p HEAD:app.py"):
            hostile.touch()
            hostile.drop_an_object()
            command = ["git", *words.split()]
            subprocess.run(command, cwd=hostile.top, capture_output=True, check=False, timeout=300)
        return expected <= set(os.listdir(hostile.ran))

    until(have_all_run)


def test_no_command_runs_anything(
    hostile: HostileRepository, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    a, b = (ctx("add", "--type=fact", text).out.split()[1] for text in ("Seconds.", "Minutes."))
    first = {leaf(line): line for line in reversed(lines(READS, OTHER_WRITES, STORE_WRITES))}
    ran = {}
    for line in lines(BEFORE, *reversed(first.values())):
        hostile.touch()
        done = ctx(*filled(line, a, b))
        assert "E000" not in done.err, (line, done.err)
        if found := hostile.markers():
            ran[line] = found
    assert ran == {}


def test_a_session_runs_nothing(hostile: HostileRepository, ctx: Ctx, surroundings: Path) -> None:
    assert ctx("trust", "--yes").code == 0
    conversation = Client(surroundings / ".ctx", hostile.top).talk()
    conversation.start()
    conversation.prompt()
    conversation.reply('<ctx:remember type="fact">One.</ctx:remember>')
    conversation.stop()
    assert ctx("hook", "apply").code == 0
    assert hostile.markers() == set()


def test_adding_a_store_does_not_look_into_submodules(repo: Path, ctx: Ctx, tmp_path: Path) -> None:
    inner = repo / ".ctx" / "narrative" / "sub"
    inner.mkdir(parents=True)
    git("init", "-q", cwd=inner)
    (inner / "a.txt").write_text("a\n")
    (inner / ".gitattributes").write_text("* filter=inner\n")
    git("add", ".", cwd=inner)
    git("commit", "-qm", "Inner", cwd=inner)
    git("add", ".ctx")
    git("commit", "-qm", "A submodule")
    git("config", "filter.inner.clean", f"touch {tmp_path}/ran; cat", cwd=inner)
    os.utime(inner / "a.txt", (1, 1))
    assert ctx("init").code == 0
    assert not (tmp_path / "ran").exists()
    assert ".ctx/config.toml" in git("ls-files").split()


def test_a_filter_of_the_user_still_works(
    repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git settings of the user apply, also if the repository has others of the same name."""
    settings = tmp_path / "gitconfig"
    settings.write_text('[filter "mine"]\n clean = sed s/apple/pear/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (repo / ".gitattributes").write_text("*.md filter=mine\n")
    git("config", "filter.mine.clean", f"touch {tmp_path}/ran; cat")
    (repo / ".ctx" / "narrative").mkdir(parents=True)
    (repo / ".ctx" / "narrative" / "note.md").write_text("apple\n")
    assert ctx("init").code == 0
    assert git("show", ":.ctx/narrative/note.md") == "pear\n"
    assert not (tmp_path / "ran").exists()


def test_git_options_of_the_user_override_the_repository(
    repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git -c … commit` passes its settings to the hook; a file monitor stays off."""
    given = f"'filter.mine.clean'='sed s/apple/pear/' 'core.fsmonitor'='touch {tmp_path}/ran'"
    (repo / ".gitattributes").write_text("*.md filter=mine\n")
    git("config", "filter.mine.clean", f"touch {tmp_path}/ran; cat")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", given)
    (repo / ".ctx" / "narrative").mkdir(parents=True)
    (repo / ".ctx" / "narrative" / "note.md").write_text("apple\n")
    assert ctx("init").code == 0
    assert not (tmp_path / "ran").exists()
    monkeypatch.delenv("GIT_CONFIG_PARAMETERS")
    assert git("show", ":.ctx/narrative/note.md") == "pear\n"


def test_a_name_that_cannot_be_overridden_is_refused(repo: Path, ctx: Ctx, tmp_path: Path) -> None:
    with (repo / ".git" / "config").open("a") as file:
        file.write(f'[filter "a=b"]\n clean = touch {tmp_path}/ran\n')
    (repo / ".gitattributes").write_text("* filter=a=b\n")
    assert "filter.a=b.clean" in ctx("init").err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("outer", ["folder above", "bare repository around it"])
def test_a_git_folder_that_git_refuses_is_not_replaced_by_an_outer_one(
    tmp_path: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, outer: str
) -> None:
    """If `.git` is not a repository, git searches further up and finds unchecked settings."""
    above = tmp_path / "above"
    inner = above / "inner" if outer == "folder above" else above
    inner.mkdir(parents=True)
    git("init", "-q", *([] if outer == "folder above" else ["--bare"]), cwd=above)
    (inner / ".git").mkdir(exist_ok=True)
    (inner / ".git" / "HEAD").write_text("nonsense\n")
    (inner / ".gitattributes").write_text("* filter=evil\n")
    where = ["--git-dir=." if outer != "folder above" else "--git-dir=.git"]
    git(*where, "config", "filter.evil.clean", f"touch {tmp_path}/ran; cat", cwd=above)
    git(*where, "config", "core.bare", "false", cwd=above)
    monkeypatch.chdir(inner)
    ctx("init")
    for words in (["add", "file", "."], ["commit", "-m", "x"], ["code", "index"], ["status"]):
        assert "E000" not in ctx(*words).err
    assert not (tmp_path / "ran").exists()


def test_the_working_tree_of_the_settings_is_ignored(repo: Path, ctx: Ctx, tmp_path: Path) -> None:
    """`core.worktree` and `core.bare` of a repository have no effect."""
    other = tmp_path / "other"
    (other / ".ctx").mkdir(parents=True)
    git("config", "core.worktree", str(other))
    git("config", "core.bare", "true")
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "One").code == 0
    assert ctx("commit", "-m", "One").code == 0
    git("config", "--unset", "core.worktree")
    git("config", "--unset", "core.bare")
    assert ".ctx/config.toml" in git("ls-files").split()


def test_a_git_program_in_the_repository_is_not_run(
    repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = repo / "git"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert ctx("init").code == 0
    assert not (tmp_path / "ran").exists()
