"""`ctx code history`: what git's history tells about a file, and about words."""

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


def test_the_history_of_a_file(shop: Path, ctx: Ctx) -> None:
    assert normalized(ctx("code", "history", "net.py").out) == (
        "  COMMIT  DAY  Raise the limit              1 file\n"
        "  COMMIT  DAY  Wait longer after a timeout  2 files\n"
        "  COMMIT  DAY  Add the client               2 files\n"
        "Changed together with\n"
        "  retry.py  2 times  67 %\n"
    )
    assert len(subjects(ctx, "net.py", "--limit", "0")) == 3
    assert normalized(ctx("code", "history", "--search", "timeouts").out) == (
        "  COMMIT  DAY  Wait longer after a timeout  2 files\n"
    )
    assert ctx("code", "history", "--search", "unheard").out == "No commit mentions unheard.\n"
    # What is committed later is there, and a file that is gone.
    (shop / "new.py").write_text("")
    git("add", "-A")
    git("rm", "-q", "retry.py")
    git("commit", "-qm", "Begin something new")
    found = ctx("code", "history", "new.py", "--format", "json").json
    assert [each["subject"] for each in found["commits"]] == ["Begin something new"]
    assert (found["read"], found["complete"]) == (4, True)
    assert "Begin something new" in ctx("code", "history", "retry.py").out


def test_what_has_no_history(
    shop: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, code, message in (
        (
            ("other.py",),
            1,
            "E015: 'other.py' does not exist, and no commit has changed such a file.",
        ),
        ((), 2, "E011: Name a file, or words to look for."),
        (("../x.py",), 1, "is outside of"),
    ):
        failed = ctx("code", "history", *words)
        assert (failed.code, failed.out) == (code, "")
        assert message in failed.err
    (shop / "other.py").write_text("")
    assert ctx("code", "history", "other.py").out == "No commit touched other.py yet.\n"
    plain = tmp_path / "plain"
    plain.mkdir()
    monkeypatch.chdir(plain)
    assert "is not in a git repository" in ctx("code", "history", "a.py").err


def subjects(ctx: Ctx, *words: str) -> list[str]:
    found = ctx("code", "history", *words, "--format", "json").json
    return sorted(each["subject"] for each in found["commits"])


def test_a_folder_and_paths_from_inside_of_it(
    shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "part").mkdir()
    for name in ("a.py", "b.py"):
        (shop / "part" / name).write_text("X = 1\n")
        git("add", "-A")
        git("commit", "-qm", f"Write {name}")
    both = ["Write a.py", "Write b.py"]
    assert subjects(ctx, "part") == subjects(ctx, "part/") == both
    assert len(subjects(ctx, ".")) == 5
    monkeypatch.chdir(shop / "part")
    for path in ("a.py", "part/a.py", f"{shop}/part/a.py"):
        assert subjects(ctx, path) == ["Write a.py"], path


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
