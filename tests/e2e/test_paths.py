"""Paths on the command line, and files that cannot be added."""

import os
from pathlib import Path

import pytest

from tests.conftest import Ctx, git
from tests.e2e.conftest import state


def added(ctx: Ctx, *words: str) -> list[str]:
    answer = ctx("add", "file", *words, "--format", "json").json
    return [item["path"] for item in answer["added"]]


def test_paths_outside_the_project_and_missing_ones_are_refused(project: Path, ctx: Ctx) -> None:
    (project.parent / "outside.txt").write_text("x")
    (project / "good.txt").write_text("x")
    (project / "sub").mkdir()
    (project / "link-out").symlink_to("/etc")
    before = state(project)
    outside = ("../outside.txt", "/etc/hosts", "sub/../../outside.txt", "link-out/hosts")
    for word in (*outside, "missing.txt", "no/such/folder", "*.nothing"):
        ran = ctx("add", "file", "good.txt", word)
        assert (ran.code, "error E015" in ran.err) == (1, True), word
        assert ("outside the project" in ran.err) == (word in outside), word
        assert state(project) == before


def test_the_store_itself_cannot_be_added(project: Path, ctx: Ctx) -> None:
    assert "belongs to ctx" in ctx("add", "file", ".ctx/config.toml").err
    (project / "a.txt").write_text("a")
    assert added(ctx, ".") == ["a.txt"]


def test_unsuitable_files_are_refused_with_a_reason(project: Path, ctx: Ctx) -> None:
    (project / "good.txt").write_text("good\n")
    (project / "image.bin").write_bytes(b"\x89PNG\0\0")
    (project / "large.txt").write_bytes(b"x" * 2000)
    (project / "link.txt").symlink_to("good.txt")
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "pipe")
    (project / "new\nline.txt").write_text("x")
    bad = os.fsencode(project) + b"/bad-\xff.txt"
    with open(bad, "wb") as file:
        file.write(b"x")
    key = "-----BEGIN RSA PRIVATE" + " KEY-----"
    (project / "secret.pem").write_text(f"{key}\n{'MIIEowIBAAKCAQEA' * 8}\n")
    (project / "unreadable.txt").write_text("x")
    ran = ctx("add", "file", ".", "--set", "ingestion.max_file_bytes=1000", "--format", "json")
    assert ran.code == 0
    answer = ran.json
    assert [item["path"] for item in answer["added"]] == ["good.txt", "unreadable.txt"]
    reasons = {item["path"]: item["reason"] for item in answer["refused"]}
    assert "binary" in reasons["image.bin"]
    assert "2,000 bytes" in reasons["large.txt"]
    assert "symbolic link" in reasons["link.txt"]
    assert "symbolic link" in reasons["loop"]
    assert "plain file" in reasons["pipe"]
    assert "control character" in reasons["new\nline.txt"]
    assert "secret" in reasons["secret.pem"]
    (name,) = [path for path in reasons if path.startswith("bad-")]
    assert "not UTF-8" in reasons[name]
    for named in (os.fsdecode(bad), "new\nline.txt", "loop", "pipe"):
        ran = ctx("add", "file", named)
        assert (ran.code, "Refused 1 file" in ran.out) == (1, True), named


def test_ignored_files_need_force(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "a.log").write_text("a")
    (repo / "node_modules").mkdir()
    (repo / "node_modules" / "m.js").write_text("m")
    assert added(ctx, ".") == [".gitignore"]
    named = ctx("add", "file", "a.log", "node_modules/m.js")
    assert named.code == 1
    assert ".gitignore lists it" in named.out
    assert "ignore_globs lists it" in named.out
    assert ctx("add", "file", "a.log", "node_modules/m.js", "--force").code == 0


def test_without_git_ignore_files_still_apply(project: Path, ctx: Ctx) -> None:
    (project / ".gitignore").write_text("*.log\n/build/\n")
    (project / "sub").mkdir()
    (project / "sub" / ".gitignore").write_text("!keep.log\nlocal.txt\n")
    (project / "build").mkdir()
    for name in ("a.log", "b.txt", "sub/keep.log", "sub/x.log", "sub/local.txt", "build/o.txt"):
        (project / name).write_text(name)
    assert set(added(ctx, ".")) == {".gitignore", "sub/.gitignore", "b.txt", "sub/keep.log"}


def test_a_very_deep_file_is_refused(project: Path, ctx: Ctx) -> None:
    deep = project.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "f.txt").write_text("x")
    (project / "a.txt").write_text("a")
    answer = ctx("add", "file", ".", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == ["a.txt"]
    assert "in too many nested folders" in answer["refused"][0]["reason"]


def test_links_are_refused_in_every_form(project: Path, ctx: Ctx) -> None:
    private = project.parent / "private"
    private.mkdir()
    (private / "diary.txt").write_text("dear diary")
    (project / "link").symlink_to(private)
    (project / "a.txt").write_text("a")
    for words in (["link"], ["link/"], ["link//"], ["."], ["*"], ["**"], ["**/*.txt"], ["-f", "."]):
        assert all("diary" not in path for path in added(ctx, *words)), words
    assert ctx("add", "file", "link").code == 1
    assert ctx("add", "file", "link/diary.txt").code == 1


def test_globs_skip_the_store_and_the_git_folder(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (repo / "src" / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.py", "src/c.py", "src/deep/d.py"):
        (repo / name).write_text(name)

    for number, (glob, found) in enumerate(
        {
            "*": ["a.txt", "b.py", "src/c.py", "src/deep/d.py"],
            "**": ["a.txt", "b.py", "src/c.py", "src/deep/d.py"],
            "*.py": ["b.py"],
            "**/*.py": ["b.py", "src/c.py", "src/deep/d.py"],
            "src/*.py": ["src/c.py"],
            "[ab].*": ["a.txt", "b.py"],
            "s*/deep": ["src/deep/d.py"],
        }.items()
    ):
        assert added(ctx, glob, "--session", f"s{number}") == found, glob


def test_circular_links_are_handled(project: Path, ctx: Ctx) -> None:
    (project / "a").symlink_to(".")
    (project / "b").symlink_to(".")
    (project / "x.py").write_text("x")
    assert added(ctx, "**/*.py") == ["x.py"]


def test_names_in_every_script_are_added(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    names = [
        "設計\u3000メモ.txt",
        "می\u200cخواهم.txt",
        "👨\u200d👩.txt",
        "a\u00a0b.txt",
        "-x",
        ":y",
    ]
    for name in names:
        (repo / name).write_text("x")
        (repo / ".ctx" / "narrative" / f"{name}.md").write_text("# x\n")
    assert sorted(added(ctx, ".")) == sorted(names)
    made = ctx("commit", "-m", "x", "--format", "json").json
    assert set(made["documents"]) == {*(f"{name}.md" for name in names), made["log"]}


def test_a_folder_can_become_a_file_in_one_session(project: Path, ctx: Ctx) -> None:
    (project / "a").mkdir()
    (project / "a" / "b").write_text("b")
    ctx("add", "file", "a")
    (project / "a" / "b").unlink()
    (project / "a").rmdir()
    (project / "a").write_text("a")
    ctx("add", "file", "a")
    assert ctx("commit", "-m", "Both", "--format", "json").json["files"] == ["a"]
    assert ctx("debug", "index", "path:a", "--format", "json").json["entries"]
    assert not ctx("debug", "index", "path:a/b", "--format", "json").json["entries"]


def test_a_folder_name_is_not_a_glob(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a[1]", "a1"):
        (project / name).mkdir()
        (project / name / "x.py").write_text(name)
    monkeypatch.chdir(project / "a[1]")
    assert added(ctx, "*.py") == ["a[1]/x.py"]
    assert added(ctx, "../a1/*.py") == ["a1/x.py"]


def test_force_leaves_other_repositories_alone(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (repo / "inner").mkdir()
    git("init", "-q", cwd=repo / "inner")
    (repo / "inner" / "x.txt").write_text("x")
    (repo / "a.txt").write_text("a")
    assert added(ctx, "--force", ".") == ["a.txt"]
    ran = ctx("add", "file", "inner")
    assert ran.code == 1
    assert "belongs to the git repository in inner" in ran.out


def test_invalid_patterns_are_handled(project: Path, ctx: Ctx) -> None:
    (project / "a.txt").write_text("a")
    for line in ("!", "a\\", "[", "**", "***", "\\"):
        (project / ".gitignore").write_text(f"{line}\n")
        assert ctx("add", "file", ".").code in (0, 1)
        for words in (["add", "file", f"x*{line}"], ["add", "file", "."]):
            ran = ctx("--set", f"ingestion.ignore_globs={line}", *words)
            assert ran.code in (0, 1, 2)
            assert "E000" not in ran.err
    (project / ".gitignore").unlink()
    (project / ".gitignore").mkdir()
    assert ctx("add", "file", ".").code == 0
