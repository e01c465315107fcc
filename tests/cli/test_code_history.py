"""`ctx code history`: what git's history tells about a file, and about words."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Ctx, git

COMMIT = re.compile(r"\b[0-9a-f]{12}\b")
DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")


@pytest.fixture
def shop(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number, message in enumerate(("Add the client", "Wait longer after a timeout"), 1):
        for name in ("net.py", "retry.py"):
            (repo / name).write_text(f"LIMIT = {number}\n")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-0{number}T00:00:00Z")
        git("add", "-A")
        git("commit", "-qm", message)
    (repo / "net.py").write_text("LIMIT = 3\n")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    git("commit", "-qam", "Raise the limit")
    return repo


def normalized(answer: str) -> str:
    return DAY.sub("DAY", COMMIT.sub("COMMIT", answer))


def test_the_commits_of_a_file_and_what_changed_with_it(shop: Path, ctx: Ctx) -> None:
    assert normalized(ctx("code", "history", "net.py").out) == (
        "  COMMIT  DAY  Raise the limit              1 file\n"
        "  COMMIT  DAY  Wait longer after a timeout  2 files\n"
        "  COMMIT  DAY  Add the client               2 files\n"
        "Changed together with\n"
        "  retry.py  2 times  67 %\n"
    )


def test_commits_that_speak_of_something(shop: Path, ctx: Ctx) -> None:
    assert normalized(ctx("code", "history", "--search", "timeouts").out) == (
        "  COMMIT  DAY  Wait longer after a timeout  2 files\n"
    )
    assert ctx("code", "history", "--search", "unheard").out == "No commit mentions unheard.\n"


def test_what_is_committed_later_is_there(shop: Path, ctx: Ctx) -> None:
    ctx("code", "history", "net.py")
    (shop / "new.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "Begin something new")
    found = json.loads(ctx("code", "history", "new.py", "--format", "json").out)
    assert [each["subject"] for each in found["commits"]] == ["Begin something new"]
    assert (found["read"], found["complete"]) == (4, True)


def test_a_file_that_git_never_had(shop: Path, ctx: Ctx) -> None:
    failed = ctx("code", "history", "other.py")
    assert (failed.code, failed.out) == (1, "")
    assert ("E015: 'other.py' does not exist, and no commit has changed such a file.") in failed.err
    (shop / "other.py").write_text("")
    assert ctx("code", "history", "other.py").out == "No commit touched other.py yet.\n"


def test_a_file_that_is_gone(shop: Path, ctx: Ctx) -> None:
    git("rm", "-q", "retry.py")
    git("commit", "-qm", "Do without")
    assert "Do without" in ctx("code", "history", "retry.py").out


def test_a_folder_and_paths_from_inside_of_it(
    shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "part").mkdir()
    for name in ("a.py", "b.py"):
        (shop / "part" / name).write_text("X = 1\n")
        git("add", "-A")
        git("commit", "-qm", f"Write {name}")

    def subjects(path: str) -> list[str]:
        found = ctx("code", "history", path, "--format", "json").json
        return sorted(each["subject"] for each in found["commits"])

    both = ["Write a.py", "Write b.py"]
    assert subjects("part") == subjects("part/") == both
    assert len(subjects(".")) == 5
    monkeypatch.chdir(shop / "part")
    for path in ("a.py", "part/a.py", f"{shop}/part/a.py"):
        assert subjects(path) == ["Write a.py"], path


def test_what_changed_with_it_is_in_the_order_that_is_shown(shop: Path, ctx: Ctx) -> None:
    # One commit of two files ties them closer than three of many, and yet they were fewer.
    for number in range(3):
        for name in ("x.py", "often.py", *(f"many{number}.{each}" for each in range(20))):
            (shop / name).write_text(f"X = {number}\n")
        git("add", "-A")
        git("commit", "-qm", f"All of it {number}")
    for name in ("x.py", "once.py"):
        (shop / name).write_text("Y = 1\n")
    git("add", "-A")
    git("commit", "-qm", "Two")
    found = ctx("code", "history", "x.py", "--limit", "3", "--format", "json").json
    times = [each["times"] for each in found["together"]]
    assert "once.py" in [each["path"] for each in found["together"]]
    assert times == sorted(times, reverse=True)


def test_all_of_them(shop: Path, ctx: Ctx) -> None:
    assert (
        len(ctx("code", "history", "net.py", "--limit", "0", "--format", "json").json["commits"])
        == 3
    )


def test_neither_a_file_nor_words(shop: Path, ctx: Ctx) -> None:
    failed = ctx("code", "history")
    assert "E011: Name a file, or words to look for." in failed.err


def test_a_file_outside(shop: Path, ctx: Ctx) -> None:
    assert "is outside of" in ctx("code", "history", "../x.py").err


def test_outside_of_git(tmp_path: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert "is not in a git repository" in ctx("code", "history", "a.py").err
