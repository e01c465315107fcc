"""The indexed history of a project, for any content and place of its repository."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctx import layout
from ctx.code.history import commit_queries
from ctx.code.history.commit_queries import CoChange
from ctx.code.history.history_refresh import LONGEST_MESSAGE, HistorySize, refresh
from tests import secrets_generator
from tests.code.histories import FIRST, History, Made, make
from tests.conftest import git

# --- questions ----------------------------------------------------------------


def test_a_file_has_its_commits_and_a_commit_its_files(tmp_path: Path) -> None:
    make(
        tmp_path / "app",
        Made("First\n\nWhy it was made.", {"a.py": "1", "docs/b.md": "2"}),
        Made("Second", {"a.py": "3"}),
        Made("Third", {"docs/b.md": None, ".ctx/config.toml": "x", "docs/.ctx/y": "y"}),
    )
    history = History(tmp_path / "app")
    assert history.refresh() == HistorySize(3, 3, complete=True)
    assert history.subjects("a.py") == ["Second", "First"]
    assert history.subjects("docs/b.md", limit=1) == ["Third"]
    assert history.subjects("nothing.py") == []
    third, first = commit_queries.commits_of(history.connection, "docs/b.md", 5)
    assert (first.subject, first.body, first.time) == ("First", "Why it was made.", FIRST + 60)
    assert commit_queries.files_of(history.connection, first.hash) == ["a.py", "docs/b.md"]
    assert commit_queries.files_of(history.connection, third.hash) == ["docs/b.md"]
    assert commit_queries.files_of(history.connection, "ab" * 20) == []


def test_history_follows_a_renamed_file(tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(40))
    make(
        tmp_path / "app",
        Made("Born as one", {"one.py": lines, "test.py": "1"}),
        Made("Renamed and edited", {"one.py": None, "two.py": lines + "more\n"}),
        Made("Another one", {"one.py": "something else", "other.py": "2"}),
        Made("Moved", {"two.py": None, "pkg/three.py": lines + "more\n"}),
        Made("Edited", {"pkg/three.py": lines + "most\n", "test.py": "2"}),
    )
    history = History(tmp_path / "app")
    history.refresh()
    two = ["Moved", "Renamed and edited", "Born as one"]
    assert history.subjects("pkg/three.py") == ["Edited", *two]
    assert history.subjects("two.py") == two
    # The name was used again: what happened to the second file is not the first one's.
    assert history.subjects("one.py") == ["Another one", "Renamed and edited", "Born as one"]
    assert history.together("pkg/three.py") == [CoChange("test.py", 2, 2 / 4)]
    assert history.together("test.py") == [CoChange("pkg/three.py", 2, 1.0)]
    assert history.together("two.py") == [CoChange("test.py", 1, 1 / 3)]


def test_a_file_can_be_renamed_back_and_forth(tmp_path: Path) -> None:
    commits = [
        Made(f"{was} to {name}", {was: None, name: "same"}, time=FIRST)
        for was, name in [("x", "a"), ("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")]
    ]
    make(tmp_path / "app", *commits)
    history = History(tmp_path / "app")
    history.refresh()
    assert sorted(history.subjects("a")) == ["a to b", "a to b", "b to a", "b to a", "x to a"]
    # Within one second nobody can tell what became of which.
    assert {found.path for found in history.together("a")} <= {"a", "b"}


def test_files_that_change_together_are_found(tmp_path: Path) -> None:
    crowd: dict[str | bytes, str | None] = {f"many/{number}": "1" for number in range(40)}
    make(
        tmp_path / "app",
        Made("Import", {"a": "1", "b": "1", "c": "1", **crowd}),
        Made("Pair", {"a": "2", "b": "2"}),
        Made("Pair again", {"a": "3", "b": "3"}),
        Made("Three", {"a": "4", "b": "4", "c": "4"}),
        Made("Alone", {"a": "5"}),
        Made("Side", {"c": "6"}, parents=(4,)),
        Made("Merge", {"a": "7", "c": "7"}, parents=(5, 6)),
    )
    history = History(tmp_path / "app")
    history.refresh()
    assert history.together("a") == [CoChange("b", 3, 3 / 4), CoChange("c", 1, 1 / 4)]
    assert history.together("a", limit=1) == [CoChange("b", 3, 3 / 4)]
    # The one that changes less often says more.
    assert history.together("c") == [CoChange("b", 1, 1 / 2), CoChange("a", 1, 1 / 2)]
    assert history.together("many/1") == []
    assert history.search("merge") == ["Merge"]
    (merge,) = commit_queries.search(history.connection, "merge", 1)
    assert commit_queries.files_of(history.connection, merge.commit.hash) == []


def test_messages_are_found_by_their_words(tmp_path: Path) -> None:
    make(
        tmp_path / "app",
        Made("Fix the retries of refresh_token", {"a": "1"}),
        Made("Tidy up\n\nThe retry loop was hard to read.", {"a": "2"}),
        Made("更新令牌的处理", {"a": "3"}),
        Made("हिन्दी में संदेश", {"a": "4"}),
        Made("Retry", {"a": "5"}),
    )
    history = History(tmp_path / "app")
    history.refresh()
    # The subject counts for more than the body, then the newer one comes first.
    assert history.search("retry") == ["Retry", "Fix the retries of refresh_token", "Tidy up"]
    assert history.search("retry", limit=1) == ["Retry"]
    assert history.search("refreshToken retries")[0] == "Fix the retries of refresh_token"
    assert history.search("令牌") == ["更新令牌的处理"]
    assert history.search("हिन्दी") == ["हिन्दी में संदेश"]
    assert history.search('nowhere "AND ( NEAR *') == []
    assert history.search("") == []


# --- whatever a repository contains ---------------------------------------------


def test_a_message_is_cleaned_before_it_is_stored(tmp_path: Path) -> None:
    make(
        tmp_path / "app",
        Made("Café".encode("latin-1"), {"a": "1"}, encoding="ISO-8859-1"),
        Made(b"Broken \xff bytes", {"a": "2"}),
        Made("Red \x1b[31malert\x07\r\n\r\nbody\r\n", {"a": "3"}),
        Made("Long " + "word " * 200_000, {"a": "4"}),
        Made("People\n\nText.\n\nCo-authored-by: P <p@example.org>\nReviewed-by: Q", {"a": "5"}),
        Made("", {"a": "6"}),
    )
    history = History(tmp_path / "app")
    assert history.refresh() == HistorySize(6, 6, complete=True)
    empty, people, long, red, broken, cafe = commit_queries.commits_of(history.connection, "a", 9)
    assert (empty.subject, empty.body) == ("", "")
    assert (people.subject, people.body) == ("People", "Text.")
    assert len(long.subject) <= LONGEST_MESSAGE
    assert (red.subject, red.body) == ("Red [31malert", "body")
    assert broken.subject == "Broken \ufffd bytes"
    assert cafe.subject == "Café"


def test_secrets_in_messages_are_redacted(tmp_path: Path) -> None:
    samples = [s for s in secrets_generator.samples(6, 1) if "\0" not in s.text]
    commits = [Made(f"Commit\n\n{sample.text}", {"a": sample.secret}) for sample in samples]
    make(tmp_path / "app", *[Made(f"Calm {n}", {"a": f"{n}"}) for n in range(50)], *commits)
    database = tmp_path / "code.db"
    history = History(tmp_path / "app", str(database))
    history.refresh()
    found = commit_queries.commits_of(history.connection, "a", 1000)
    assert len(found) == 50 + len(samples)
    kept = "\n".join(f"{commit.subject}\n{commit.body}" for commit in found)
    assert [sample.kind for sample in samples if sample.secret in kept] == []
    assert "Calm 49" in kept


def test_unusual_file_names_are_read(tmp_path: Path) -> None:
    names: list[str | bytes] = ["é.py", "a b", 'q"uote', "-dash", ":(top)x", "M", "R100", "a" * 200]
    left_out: list[str | bytes] = ["new\nline", b"latin-\xe9", "tab\tname", "\x01"]
    deadly = "f" * 40
    make(
        tmp_path / "app",
        Made("Odd", {name: str(number) for number, name in enumerate([*names, *left_out, deadly])}),
        Made("Next", {"a b": "other", "new\nline": None, "fine": "10"}),
    )
    history = History(tmp_path / "app")
    history.refresh()
    (odd,) = commit_queries.search(history.connection, "odd", 9)
    assert commit_queries.files_of(history.connection, odd.commit.hash) == sorted(
        [*map(str, names), deadly]
    )
    assert history.subjects("a b") == ["Next", "Odd"]
    assert history.subjects("new\nline") == []
    assert history.subjects("latin-\udce9") == []


HOSTILE = """
[diff]
    external = touch {mark}
    renames = false
    noprefix = true
    relative = true
    orderFile = /nonexistent
[diff "evil"]
    command = touch {mark}
    textconv = touch {mark}
[log]
    showSignature = true
    date = human
    diffMerges = separate
[gpg]
    program = touch {mark}
[core]
    pager = touch {mark}
    fsmonitor = touch {mark}
    quotePath = true
    attributesFile = {attributes}
[format]
    pretty = oneline
[i18n]
    logOutputEncoding = ISO-8859-1
"""


def test_git_settings_of_the_user_have_no_effect(tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(40))
    repo = make(
        tmp_path / "app",
        Made("Zuerst schön", {"é": lines, "x": "1"}),
        Made("Renamed", {"é": None, "sub/ü": lines + "2", "x": "2"}),
        Made("Side", {"y": "1"}, parents=(1,)),
        Made("Merge", {}, parents=(2, 3)),
    )
    calm, hostile = History(repo), History(repo)
    calm.refresh()
    mark, attributes = tmp_path / "mark", tmp_path / "attributes"
    attributes.write_text("* diff=evil\n")
    with open(repo / ".git" / "config", "a") as config:
        config.write(HOSTILE.format(mark=mark, attributes=attributes))
    hostile.refresh()
    asked = ["é", "sub/ü", "x", "y"], "schön renamed side merge"
    assert hostile.everything(*asked) == calm.everything(*asked)
    assert calm.subjects("sub/ü") == ["Renamed", "Zuerst schön"]
    assert not mark.exists()


# --- where a project may lie -----------------------------------------------------


def test_outside_of_git_there_is_no_history(tmp_path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert refresh(connection, layout.project_at(str(tmp_path))) is None


def test_before_the_first_commit_the_history_is_empty(repo: Path) -> None:
    history = History(repo)
    assert history.refresh() == HistorySize(0, 0, complete=True)
    assert history.refresh() == HistorySize(0, 0, complete=True)
    make(repo, Made("First", {"a": "1"}))
    assert history.refresh() == HistorySize(1, 1, complete=True)
    git("checkout", "-q", "--orphan", "other", cwd=repo)
    assert history.refresh() == HistorySize(0, 0, complete=True)
    assert history.subjects("a") == []


def test_a_project_in_a_folder_has_only_the_history_of_that_folder(tmp_path: Path) -> None:
    repo = make(
        tmp_path / "app",
        Made("Born", {"sub/a": "1", "sub/deep/b": "1", "outside": "1", "sub2/x": "1"}),
        Made("Outside", {"outside": "2"}),
        Made("Moved in", {"outside": None, "sub/inside": "2"}),
    )
    (repo / "sub").mkdir()
    history = History(repo / "sub")
    assert history.refresh() == HistorySize(3, 3, complete=True)
    assert history.refresh() == HistorySize(0, 3, complete=True)
    assert history.subjects("a") == ["Born"]
    assert history.together("a") == [CoChange("deep/b", 1, 1.0)]
    assert history.subjects("inside") == ["Moved in"]
    assert history.search("outside born") == ["Born"]
    # The same database for another folder, as after a repository was made around it.
    moved = History(repo)
    moved.connection = history.connection
    moved.refresh()
    assert moved.subjects("outside") == ["Moved in", "Outside", "Born"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems know only Unicode names")
def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = b"caf\xe9 [x] :("
    repo = make(tmp_path / "app", Made("Inside", {folder + b"/a": "1", "b": "1"}))
    os.mkdir(os.fsencode(repo) + b"/" + folder)
    history = History(repo / os.fsdecode(folder))
    assert history.refresh() == HistorySize(1, 1, complete=True)
    assert history.subjects("a") == ["Inside"]
    assert history.subjects("b") == []


def test_commits_that_git_shows_in_another_way_are_read(repo: Path) -> None:
    """A submodule is not a file, a replacement has no effect, and a message ends at a NUL."""
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib", cwd=repo)
    (repo / "a").write_text("1")
    git("add", "a", cwd=repo)
    git("commit", "-q", "-m", "With a submodule", cwd=repo)
    first = git("rev-parse", "HEAD", cwd=repo).strip()
    tree = git("rev-parse", "HEAD^{tree}", cwd=repo).strip()
    who = "P <p> 1 +0000"
    head = f"tree {tree}\nparent {first}\nauthor {who}\ncommitter {who}"
    raw = f"{head}\n\nSubject\0 hidden\n"
    command = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    made = subprocess.run(command, cwd=repo, input=raw.encode(), capture_output=True, check=True)
    git("update-ref", "refs/heads/main", made.stdout.decode().strip(), cwd=repo)
    git("replace", "--graft", "HEAD", cwd=repo)
    git("worktree", "add", "-q", "-b", "side", str(repo.parent / "side"), first, cwd=repo)
    history, side = History(repo), History(repo.parent / "side")
    assert history.refresh() == HistorySize(2, 2, complete=True)
    assert history.search("subject hidden") == ["Subject"]
    (found,) = commit_queries.commits_of(history.connection, "a", 9)
    assert commit_queries.files_of(history.connection, found.hash) == ["a"]
    assert side.refresh() == HistorySize(1, 1, complete=True)


def test_the_history_of_a_shallow_clone_is_incomplete(tmp_path: Path) -> None:
    commits = [Made(f"Number {n}", {"a": f"{n}", f"f{n}": "1"}) for n in range(6)]
    origin = make(tmp_path / "origin", *commits)
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth=2", f"file://{origin}", str(clone))
    history = History(clone)
    assert history.refresh() == HistorySize(2, 2, complete=False)
    # The commit at the edge looks as if it had made every file.
    assert history.subjects("a") == ["Number 5"]
    assert history.search("number") == ["Number 5", "Number 4"]
    for depth, total in (("--depth=4", 4), ("--depth=3", 3), ("--unshallow", 6)):
        git("fetch", "-q", depth, cwd=clone)
        fresh = History(clone)
        assert history.refresh()[1:] == fresh.refresh()[1:] == (total, total == 6)
        asked = ["a", "f0", "f3"], "number"
        assert history.everything(*asked) == fresh.everything(*asked)
    assert history.subjects("f0") == ["Number 0"]


@pytest.mark.parametrize("left_out", ["blob:none", "tree:0"])
def test_a_partial_clone_is_read_without_fetching(tmp_path: Path, left_out: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(40))
    origin = make(
        tmp_path / "origin",
        Made("First", {"a": lines, "b": lines + "b"}),
        Made("Second", {"a": None, "c": lines, "b": None, "d": lines + "x"}),
    )
    git("config", "uploadpack.allowFilter", "true", cwd=origin)
    clone = tmp_path / "clone"
    git("clone", "-q", "-n", f"--filter={left_out}", f"file://{origin}", str(clone))
    packs = sorted(os.listdir(clone / ".git/objects/pack"))
    history = History(clone)
    assert history.refresh() == HistorySize(2, 2, complete=True)
    assert history.search("first second") == ["Second", "First"]
    expected = ["Second", "First"] if left_out == "blob:none" else []
    assert history.subjects("c") == expected
    assert sorted(os.listdir(clone / ".git/objects/pack")) == packs
