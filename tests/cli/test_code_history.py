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


def told(answer: str) -> str:
    return DAY.sub("DAY", COMMIT.sub("COMMIT", answer))


def test_the_commits_of_a_file_and_what_changed_with_it(shop: Path, ctx: Ctx) -> None:
    assert told(ctx("code", "history", "net.py").out) == (
        "  COMMIT  DAY  Raise the limit              1 file\n"
        "  COMMIT  DAY  Wait longer after a timeout  2 files\n"
        "  COMMIT  DAY  Add the client               2 files\n"
        "Changed together with\n"
        "  retry.py  2 times  67 %\n"
    )


def test_commits_that_speak_of_something(shop: Path, ctx: Ctx) -> None:
    assert told(ctx("code", "history", "--search", "timeouts").out) == (
        "  COMMIT  DAY  Wait longer after a timeout  2 files\n"
    )
    assert ctx("code", "history", "--search", "unheard").out == "No commit speaks of unheard.\n"


def test_what_is_committed_later_is_there(shop: Path, ctx: Ctx) -> None:
    ctx("code", "history", "net.py")
    (shop / "new.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "Begin something new")
    found = json.loads(ctx("code", "history", "new.py", "--format", "json").out)
    assert [each["subject"] for each in found["commits"]] == ["Begin something new"]
    assert (found["read"], found["complete"]) == (4, True)


def test_a_file_that_git_never_had(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "history", "other.py").out == "No commit touched other.py.\n"


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
