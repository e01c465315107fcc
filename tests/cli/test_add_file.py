from pathlib import Path

import pytest

from ctx.operations import add_file
from tests.conftest import Ctx


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return folder


def added(ctx: Ctx, *words: str) -> dict[str, str]:
    answer = ctx("add", "file", *words, "--format", "json").json
    return {item["path"]: item["state"] for item in answer["added"]}


def test_files_folders_and_globs(project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    assert added(ctx, "a.py") == {"a.py": "new"}
    assert added(ctx, "src/deep") == {"src/deep/c.py": "new"}
    assert added(ctx, "src/**/*.py") == {"src/b.py": "new"}
    assert added(ctx, ".") == {"src/d.txt": "new"}
    monkeypatch.chdir(project / "src")
    named = ("--session", "below")
    assert added(ctx, "b.py", "../a.py", *named) == {"a.py": "new", "src/b.py": "new"}
    assert added(ctx, "*.txt", *named) == {"src/d.txt": "new"}


def test_unchanged_files_are_reported_as_such(project: Path, ctx: Ctx) -> None:
    ctx("add", "file", "src")
    again = ctx("add", "file", "src", "--format", "json").json
    assert again["work_commit"] is None
    assert again["unchanged"] == ["src/b.py", "src/d.txt", "src/deep/c.py"]
    ctx("commit", "-m", "All")
    assert "3 files unchanged" in ctx("add", "file", "src").out
    (project / "src" / "b.py").write_text("other\n")
    assert added(ctx, "src") == {"src/b.py": "changed"}
    (project / "src" / "b.py").write_text("src/b.py\n")
    assert added(ctx, "src") == {"src/b.py": "changed"}
    (project / "empty").mkdir()
    ran = ctx("add", "file", "empty")
    assert ran.code == 0
    assert ran.out.startswith("No files to add")


def test_every_step_is_a_work_commit_of_its_session(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ctx("add", "file", "a.py", "--session", "s1", "--format", "json").json
    second = ctx("add", "file", "src", "--session", "s1", "--format", "json").json
    shown = ctx("debug", "cat", second["work_commit"], "--format", "json").json
    assert shown["type"] == "work_commit"
    assert shown["fields"]["parents"] == [first["work_commit"]]
    assert shown["fields"]["session_id"] == "s1"
    assert len(shown["fields"]["payload"]) == 3
    assert "Other sessions with staged work: s1" in ctx("commit", "-m", "x").out
    monkeypatch.setenv("CTX_SESSION", "from-env")
    ran = ctx("add", "file", "a.py", "--format", "markdown")
    assert "| state | path | size |\n| --- | --- | --- |\n| new | a.py | 5 B |" in ran.out
    assert "Next: ctx commit -m MESSAGE --session from-env" in ran.err
    named = ctx("add", "file", "src", "--session", "mine", "--format", "json").json
    assert named["session"] == "mine"


def test_with_a_message_it_commits(project: Path, ctx: Ctx) -> None:
    answer = ctx("add", "file", "a.py", "-m", "Now", "--format", "json").json
    assert answer["commit"]["message"] == "Now"
    assert answer["commit"]["files"] == ["a.py"]
    answer = ctx("add", "file", "src", "--commit", "--format", "json").json
    assert answer["commit"]["message"] == "Add 3 files"


def test_a_file_that_became_a_folder(project: Path, ctx: Ctx) -> None:
    ctx("add", "file", ".", "-m", "One")
    (project / "a.py").unlink()
    (project / "a.py").mkdir()
    (project / "a.py" / "x.txt").write_text("x")
    assert ctx("add", "file", ".", "-m", "Two").code == 0
    entries = ctx("debug", "index", "path:a.py/x.txt", "--format", "json").json["entries"]
    assert len(entries) == 1
    assert ctx("debug", "verify").code == 0


@pytest.mark.slow
def test_many_files(project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    many = project / "many"
    many.mkdir()
    for number in range(60):
        (many / f"{number}.txt").write_text(f"{number}\n")
    # They are written in parts.
    monkeypatch.setattr(add_file, "_MOST_PENDING", 10)
    ran = ctx("add", "file", "many", "-m", "Many")
    assert ran.code == 0
    assert "… and 40 more" in ran.out
    assert ctx("debug", "index", "--format", "json").json["entries"][0]["paths"] == 60
    assert ctx("debug", "verify").code == 0


def test_nothing_is_committed_if_a_named_file_is_refused(project: Path, ctx: Ctx) -> None:
    (project / "image.bin").write_bytes(b"\0")
    ran = ctx("add", "file", "a.py", "image.bin", "-m", "Both")
    assert ran.code == 1
    assert "Nothing committed" in ran.err
    assert "Committed" not in ran.out
    assert ctx("commit", "-m", "A", "--format", "json").json["files"] == ["a.py"]
