"""`ctx install --git`: memory is part of the same git commit as the code, and never blocks it."""

import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.cli import git_hook
from tests.conftest import Ctx, git


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with this ctx, and nothing else of that name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    put(folder / "ctx", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m ctx "$@"\n')
    return folder


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def put(path: Path, text: str | bytes, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    """A project whose store is in git, with the hook."""
    assert ctx("init").code == 0
    for name in ("a.txt", "sub dir/b.txt"):
        put(repo / name, "one\n", 0o644)
    git("add", "-A")
    git("commit", "-qm", "One")
    assert ctx("install", "--git").code == 0
    return repo


def stage(ctx: Ctx, folder: Path, text: str) -> None:
    """Stage work that is not committed to memory yet."""
    put(folder / "staged.txt", text, 0o644)
    assert ctx("-C", str(folder), "add", "file", "staged.txt").code == 0
    (folder / "staged.txt").unlink()


def new_heads(folder: Path) -> int:
    """The number of memory commits in the last git commit."""
    words = ("--no-renames", "--diff-filter=A", "--name-only", "HEAD~1", "HEAD", "--", ".ctx/heads")
    return len(git("diff", *words, cwd=folder).splitlines())


def is_clean(folder: Path) -> bool:
    return git("status", "--porcelain", cwd=folder) == ""


def git_stderr(*words: str, cwd: Path | None = None) -> str:
    """The messages of a git command that must succeed."""
    done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


# The commit


def test_one_git_commit_contains_code_and_memory(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage(ctx, project, "two\n")
    with monkeypatch.context() as patch:
        patch.setenv("CTX_OFF", "1")
        git("commit", "-qm", "Switched off", "--allow-empty")
    assert new_heads(project) == 0
    (project / "a.txt").write_text("two\n")
    git("add", "a.txt")
    git("commit", "-qm", "Two")
    assert "a.txt" in git("show", "--name-only", "--format=")
    assert new_heads(project) == 1
    assert is_clean(project)
    assert ctx("debug", "verify").code == 0
    (project / "a.txt").write_text("three\n")
    git("commit", "-qam", "Nothing staged for memory")
    assert new_heads(project) == 0


def test_a_secret_in_a_narrative_file_is_not_committed(project: Path, ctx: Ctx) -> None:
    stage(ctx, project, "two\n")
    put(project / ".ctx/narrative/n.md", "# N\n\npassword=Tr0ub4dor-and-3-horses\n", 0o644)
    for number in range(2):
        (project / "a.txt").write_text(f"{number}\n")
        told = git_stderr("commit", "-qam", "Code")
        assert "contains a secret" in told
        assert "without memory" in told
        assert ".ctx/" not in git("show", "--name-only", "--format=")
    (project / ".ctx/narrative/n.md").write_text("# N\n")
    (project / "a.txt").write_text("done\n")
    git("commit", "-qam", "Code and memory")
    assert ".ctx/narrative/n.md" in git("show", "--name-only", "--format=")
    assert is_clean(project)


@pytest.mark.parametrize(
    "words",
    [
        ["-C", "sub dir", "commit", "-qam", "All"],
        ["-C", "sub dir", "commit", "-qm", "Some", "../a.txt"],
        ["commit", "-qm", "Some", "--include", "a.txt"],
        ["commit", "-q", "--amend", "-m", "Again", "a.txt"],
        ["--literal-pathspecs", "commit", "-qm", "Some", "a.txt"],
        ["--icase-pathspecs", "commit", "-qm", "Some", "A.TXT"],
    ],
    ids=" ".join,
)
def test_every_form_of_git_commit_includes_memory(
    project: Path, ctx: Ctx, words: list[str]
) -> None:
    git("commit", "-qm", "Before", "--allow-empty", "--no-verify")
    stage(ctx, project, "two\n")
    (project / "a.txt").write_text("two\n")
    (project / "sub dir" / "b.txt").write_text("two\n")
    put(project / "new.txt", "new\n", 0o644)
    git("add", "new.txt")
    git(*words)
    assert new_heads(project) == 1
    # What stays in the index and in the working tree is what was not to be committed.
    changes = git("status", "--porcelain").splitlines()
    assert not [line for line in changes if ".ctx" in line]
    alone = words[-1].lower().endswith("a.txt")
    assert ("A  new.txt" in changes) == (alone and "--include" not in words)
    assert (' M "sub dir/b.txt"' in changes) == alone


def test_memory_without_code_needs_a_second_git_commit(project: Path, ctx: Ctx) -> None:
    """git decides that there is nothing to commit before it runs the hook."""
    stage(ctx, project, "two\n")
    done = subprocess.run(["git", "commit", "-qm", "x"], capture_output=True, check=False)
    assert done.returncode == 1
    git("commit", "-qm", "Only what is remembered")
    assert new_heads(project) == 1
    assert is_clean(project)


def test_the_hook_works_in_a_clone_and_a_working_tree(
    project: Path, ctx: Ctx, tmp_path: Path
) -> None:
    linked, clone = tmp_path / "linked tree", tmp_path / "a clone"
    git("worktree", "add", "-q", str(linked), "-b", "linked")
    git("clone", "-q", str(project), str(clone))
    # Hooks do not come with a clone; working trees share theirs.
    assert not (clone / ".git" / "hooks" / "pre-commit").exists()
    assert ctx("-C", str(clone), "install", "--git").code == 0
    assert ctx("-C", str(clone), "trust", "--yes").code == 0
    for folder in (linked, clone):
        stage(ctx, folder, "two\n")
        (folder / "a.txt").write_text("two\n")
        git("commit", "-qm", "Two", "a.txt", cwd=folder)
        assert new_heads(folder) == 1
        assert is_clean(folder)
    assert is_clean(project)


def test_the_hook_works_for_a_store_in_a_sub_folder(project: Path, ctx: Ctx) -> None:
    inner = project / "sub dir" / "it's [here]"
    inner.mkdir()
    assert ctx("init", str(inner)).code == 0
    git("commit", "-qm", "Inner")
    assert ctx("-C", str(inner), "install", "--git").code == 0
    stage(ctx, inner, "inner\n")
    stage(ctx, project, "outer\n")
    git("commit", "-qm", "Both", "--allow-empty")
    changed = git("-c", "core.quotePath=false", "show", "--name-only", "--format=").splitlines()
    assert [path for path in changed if path.startswith(".ctx/heads/")]
    assert [path for path in changed if path.startswith("sub dir/it's [here]/.ctx/heads/")]

    hook = project / ".git" / "hooks" / "pre-commit"
    both = hook.read_bytes()
    assert ctx("-C", str(inner), "uninstall", "--git").code == 0
    assert ctx("-C", str(inner), "install", "--git").code == 0
    assert sorted(hook.read_bytes().splitlines()) == sorted(both.splitlines())
    assert ctx("-C", str(inner), "uninstall", "--git").code == 0
    assert hook.exists()
    assert ctx("uninstall", "--git").code == 0
    assert not hook.exists()


def test_the_hook_works_during_a_merge(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    stage(ctx, project, "theirs\n")
    (project / "a.txt").write_text("theirs\n")
    git("commit", "-qam", "Theirs")
    git("switch", "-q", "main")
    stage(ctx, project, "ours\n")
    (project / "a.txt").write_text("ours\n")
    git("commit", "-qam", "Ours")
    subprocess.run(["git", "merge", "-q", "other"], capture_output=True, check=False)
    (project / "a.txt").write_text("both\n")
    git("commit", "-qam", "Both")
    assert is_clean(project)
    assert ctx("debug", "verify").code == 0


def test_the_hook_works_during_a_cherry_pick(project: Path, ctx: Ctx) -> None:
    git("switch", "-qc", "other")
    (project / "a.txt").write_text("theirs\n")
    git("commit", "-qnam", "Theirs")
    git("switch", "-q", "main")
    (project / "a.txt").write_text("ours\n")
    git("commit", "-qnam", "Ours")
    stage(ctx, project, "two\n")
    subprocess.run(["git", "cherry-pick", "other"], capture_output=True, check=False)
    (project / "a.txt").write_text("both\n")
    git("add", "a.txt")
    git("commit", "-qm", "Picked")
    assert new_heads(project) == 1
    assert is_clean(project)


def test_the_hook_does_nothing_during_a_rebase(
    project: Path, ctx: Ctx, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = '#!/bin/sh\nsed 1s/pick/edit/ "$1" >"$1.new"\nmv "$1.new" "$1"\n'
    put(programs / "stop-at-the-first", editor)
    for text in ("two", "three"):
        (project / "a.txt").write_text(f"{text}\n")
        git("commit", "-qnam", text)
    monkeypatch.setenv("GIT_SEQUENCE_EDITOR", "stop-at-the-first")
    git("rebase", "-qi", "HEAD~2")
    stage(ctx, project, "staged\n")
    git("commit", "-q", "--amend", "-m", "Two, in other words")
    assert new_heads(project) == 0
    git("rebase", "--continue")
    git("commit", "-qm", "Now", "--allow-empty")
    assert new_heads(project) == 1


# What may be missing or broken


def test_a_commit_works_if_ctx_fails_or_is_missing(project: Path, programs: Path) -> None:
    put(programs / "ctx", "#!/bin/sh\necho 'no luck' >&2\nexit 3\n")
    (project / ".ctx" / "narrative" / "new.md").write_text("Not to be added.\n")
    (project / "a.txt").write_text("two\n")
    assert git_stderr("commit", "-qam", "Two") == (
        "no luck\nctx: `ctx commit` failed; the commit continues without memory.\n"
    )
    assert git("status", "--porcelain") == "?? .ctx/narrative/new.md\n"
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text().replace(str(Path(sys.executable).parent), "/nowhere"))
    (programs / "ctx").unlink()
    (project / "a.txt").write_text("three\n")
    assert git_stderr("commit", "-qam", "Three") == (
        "ctx: it is not on the PATH; the commit continues without memory.\n"
    )


def test_the_ctx_that_installed_it_is_found_without_a_path(
    project: Path, programs: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = programs.parent / "a place of its own"
    away.mkdir()
    monkeypatch.setattr(sys, "executable", str(away / "python"))
    (programs / "ctx").rename(away / "ctx")
    ran = ctx("install", "--git", "--format", "json")
    assert (ran.json["parts"][0]["state"], ran.err) == ("updated", "")
    stage(ctx, project, "two\n")
    git("commit", "-qm", "Two", "--allow-empty")
    assert new_heads(project) == 1
    (away / "ctx").unlink()
    assert "`ctx` is not on the PATH" in ctx("install", "--git").err


def test_a_commit_works_without_a_project_store(project: Path, programs: Path, ctx: Ctx) -> None:
    put(programs / "ctx", "#!/bin/sh\necho called >&2\n")
    git("rm", "-qr", ".ctx")
    assert git_stderr("commit", "-qm", "Gone") == ""
    put(project / ".ctx" / "config.toml", '[context]\nbudget = 3\n["repo"]\n', 0o600)
    put(project / ".ctx" / "store.db", "mine", 0o600)
    assert git_stderr("commit", "-qm", "Somebody's own", "--allow-empty") == ""
    assert git("status", "--porcelain") == "?? .ctx/\n"
    assert ctx("uninstall", "--git").code == 0
    assert not (project / ".git" / "hooks" / "pre-commit").exists()


def test_a_private_store_is_not_committed(repo: Path, ctx: Ctx) -> None:
    assert ctx("init", "--template", "private").code == 0
    assert ctx("install", "--git").code == 0
    stage(ctx, repo, "two\n")
    put(repo / "a.txt", "a\n", 0o644)
    git("add", "-A")
    git("commit", "-qm", "A")
    assert git("ls-files") == "a.txt\n"
    assert is_clean(repo)
    history = ctx("debug", "history", "--format", "json").json
    assert len(history["commits"]) == 2


def test_a_script_that_fails_still_stops_the_commit(project: Path, ctx: Ctx) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text() + "echo no >&2\nexit 1\n")
    stage(ctx, project, "two\n")
    done = subprocess.run(["git", "commit", "-qm", "x"], capture_output=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, b"no")
    hook.write_text(hook.read_text().replace("exit 1", "exit 0"))
    git("commit", "-qm", "x")
    assert new_heads(project) == 1


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nset -eu\n[ $# = 0 ]\ntouch ran\nexit 0\n",
        '#!/bin/bash -eu\n[[ "$0" == .git/hooks/pre-commit ]]\ntouch ran\n',
        "touch ran\n",
        "#!/bin/sh\n# caf\xe9\ntouch ran",
    ],
)
def test_the_hook_is_added_to_an_existing_script(repo: Path, ctx: Ctx, script: str) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    before = script.encode("latin-1")
    put(hook, before, 0o750)
    assert ctx("init").code == 0
    part = ctx("install", "--git", "--format", "json").json["parts"]
    assert part == [{"what": "git hook", "path": str(hook), "state": "added"}]
    assert stat.S_IMODE(hook.stat().st_mode) == 0o750
    git("commit", "-qm", "One", "--no-verify")
    stage(ctx, repo, "two\n")
    git("commit", "-qm", "Two", "--allow-empty")
    assert (repo / "ran").exists()
    assert new_heads(repo) == 1
    assert ctx("uninstall", "--git").code == 0
    assert hook.read_bytes() == before
    assert stat.S_IMODE(hook.stat().st_mode) == 0o750


# Putting it in, and taking it out


@given(
    st.sampled_from([b"#!/bin/sh", b"#!/usr/bin/env bash", b""]),
    st.binary(max_size=60),
    st.sampled_from([".", "a b", "it's"]),
)
def test_uninstall_restores_the_script(first: bytes, rest: bytes, inside: str) -> None:
    script = first + (b"\n" + rest if rest else b"")
    block = git_hook.block_of(inside, "")
    path = "pre-commit"
    once = git_hook.with_block(script, block)
    assert block.strip() in once
    assert git_hook.without_blocks(once, path, inside) == script
    twice = git_hook.with_block(once, git_hook.block_of("another", "/opt/ctx"))
    assert git_hook.without_blocks(twice, path, "another") == once
    assert git_hook.without_blocks(twice, path) == script


def test_install_and_uninstall_can_be_repeated(repo: Path, ctx: Ctx, surroundings: Path) -> None:
    assert ctx("init").code == 0
    hook = repo / ".git" / "hooks" / "pre-commit"
    planned = ctx("install", "--git", "--dry-run")
    assert planned.code == 0
    assert "+# >>> ctx . >>>\n" in planned.out
    assert planned.out.endswith(f"Planned changes:\n  Git hook  {hook}  written\n")
    assert not hook.exists()

    ran = ctx("install", "--git")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"  Git hook  {hook}  written\n"
    assert stat.S_IMODE(hook.stat().st_mode) == 0o755
    written = hook.read_bytes()
    assert ctx("install", "--git").out == f"  Git hook  {hook}  up to date\n"
    assert hook.read_bytes() == written
    hook.write_bytes(written.replace(b"</dev/null", b"") + b"make lint\n")
    assert ctx("install", "--git").out == f"  Git hook  {hook}  updated\n"
    assert hook.read_bytes() == written + b"make lint\n"
    hook.write_bytes(written)
    # Nothing of an agent was touched, and no store was made.
    assert not (surroundings / ".claude").exists()
    assert sorted(os.listdir(surroundings / ".ctx")) == ["given.db", "trusted.json"]

    planned = ctx("uninstall", "--git", "--dry-run")
    assert planned.out.endswith(f"Planned changes:\n  Git hook  {hook}  removed\n")
    assert hook.read_bytes() == written
    assert ctx("uninstall", "--git").out == f"  Git hook  {hook}  removed\n"
    assert not hook.exists()
    assert ctx("uninstall", "--git").out == "Nothing to remove.\n"


@pytest.mark.parametrize(
    ("script", "why", "where"),
    [
        (b"\x7fELF\0\0", "is not a shell script", "it, in its own language"),
        ("#!/bin/sh\r\necho\r\n", "is not a shell script", "it, in its own language"),
        (
            "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n",
            "is written by pre-commit",
            "an executable script {hook}.legacy",
        ),
        (
            '#!/bin/sh\nif [ "$LEFTHOOK" = "0" ]; then exit 0; fi\ncall_lefthook run\n',
            "is written by lefthook",
            "the `pre-commit` of lefthook.yml",
        ),
        ("#!/bin/sh\n# husky\n", "is written by husky", "the `pre-commit` of its configuration"),
    ],
)
def test_other_kinds_of_hooks_are_left_alone(
    repo: Path, ctx: Ctx, script: str | bytes, why: str, where: str
) -> None:
    assert ctx("init").code == 0
    hook = put(repo / ".git" / "hooks" / "pre-commit", script)
    before = hook.read_bytes()
    ran = ctx("install", "--git")
    assert ran.code == 1
    assert ran.err.startswith(f"error E027: {hook} {why}, so it was not changed.\n")
    assert "  git add .ctx\n" in ran.err
    assert ran.err.endswith(f"  Add these two lines to {where.format(hook=hook)}.\n")
    assert hook.read_bytes() == before
    assert ctx("uninstall", "--git").out == "Nothing to remove.\n"
    hook.write_bytes(before + b"\n# ctx commit --auto\n")
    assert ctx("install", "--git").out == f"  Git hook  {hook}  there already\n"


def test_a_linked_or_disabled_script_is_left_alone(repo: Path, ctx: Ctx, tmp_path: Path) -> None:
    assert ctx("init").code == 0
    hook = repo / ".git" / "hooks" / "pre-commit"
    other = put(tmp_path / "shared", "#!/bin/sh\n")
    hook.symlink_to(other)
    assert "is not a plain file, so it was not changed" in ctx("install", "--git").err
    assert other.read_text() == "#!/bin/sh\n"
    hook.unlink()
    put(hook, "#!/bin/sh\nexit 1\n", 0o644)
    assert "is not executable, so git does not run it" in ctx("install", "--git").err
    assert hook.read_text() == "#!/bin/sh\nexit 1\n"


def test_a_block_without_its_end_is_refused(project: Path, ctx: Ctx) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text().replace("# <<< ctx", "#"))
    before = hook.read_bytes()
    for command in ("install", "uninstall"):
        assert "but not its end" in ctx(command, "--git").err
    assert hook.read_bytes() == before


def test_the_configured_hooks_path_is_used(project: Path, ctx: Ctx, tmp_path: Path) -> None:
    assert ctx("uninstall", "--git").code == 0
    git("config", "core.hooksPath", "my hooks")
    ran = ctx("-C", str(project / "sub dir"), "install", "--git")
    assert (ran.code, ran.err) == (0, "")
    hook = project / "my hooks" / "pre-commit"
    # It travels: no path of this machine may be in it.
    assert str(Path(sys.executable).parent) not in hook.read_text()
    stage(ctx, project, "two\n")
    git("commit", "-qm", "Two", "--allow-empty", cwd=project / "sub dir")
    assert new_heads(project) == 1
    assert ctx("uninstall", "--git").code == 0
    assert not hook.exists()

    git("config", "core.hooksPath", str(tmp_path / "everywhere"))
    assert "core.hooksPath is outside of this repository" in ctx("install", "--git").err
    assert (tmp_path / "everywhere" / "pre-commit").exists()
    git("config", "core.hooksPath", "/dev/null")
    assert "git runs no hooks here: core.hooksPath is /dev/null." in ctx("install", "--git").err
    git("config", "core.hooksPath", ".husky/_")
    assert f"Add these two lines to {project}/.husky/pre-commit." in ctx("install", "--git").err


def test_invalid_uses_are_refused(folder: Path, ctx: Ctx) -> None:
    assert "error E012" in ctx("install", "--git").err
    assert "error E012" in ctx("uninstall", "--git").err
    assert ctx("init").code == 0
    for command in ("install", "uninstall"):
        assert "error E016" in ctx(command, "--git").err
    assert ctx("install", "--git", "--print").code == 2
    assert ctx("install", "--git", "--project").code == 2
