"""The history is that of HEAD, also after branch changes and interrupted refreshes.

A history that was updated step by step is compared with one that was read at once.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx.code.history import commit_queries
from ctx.code.history.history_refresh import HistorySize
from tests import effort
from tests.code.histories import FIRST, History, Made, make
from tests.conftest import git


def test_only_the_newest_commits_up_to_the_limit_are_kept(tmp_path: Path) -> None:
    commits = [Made(f"Number {n}", {"a": f"{n}"}) for n in range(10)]
    repo = make(tmp_path / "app", *commits)
    history = History(repo)
    assert history.refresh(most=4) == HistorySize(4, 4, complete=False)
    assert history.subjects("a") == ["Number 9", "Number 8", "Number 7", "Number 6"]
    make(repo, *commits, Made("Number 10", {"a": "10"}))
    assert history.refresh(most=4) == HistorySize(1, 4, complete=False)
    assert history.subjects("a") == ["Number 10", "Number 9", "Number 8", "Number 7"]
    assert sorted(history.search("number 6")) == sorted(history.subjects("a"))
    assert history.refresh(most=11) == HistorySize(7, 11, complete=True)
    assert history.refresh(most=11) == HistorySize(0, 11, complete=True)


def test_a_rename_that_was_reverted_is_removed(tmp_path: Path) -> None:
    first = [Made("Both", {"a": "same", "b": "other"}), Made("Edit", {"a": "same 2"})]
    repo = make(tmp_path / "app", *first)
    history = History(repo)
    history.refresh()
    make(repo, *first, Made("Rename", {"a": None, "c": "same 2"}))
    assert history.refresh() == HistorySize(1, 3, complete=True)
    assert history.subjects("c") == ["Rename", "Edit", "Both"]
    make(repo, *first, Made("Add", {"c": "new"}))
    assert history.refresh() == HistorySize(1, 3, complete=True)
    assert history.subjects("c") == ["Add"]
    assert history.subjects("a") == ["Edit", "Both"]


@pytest.fixture(scope="module")
def long_repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    commits = [Made(f"Number {n}", {f"f{n % 7}": f"{n}", f"g{n % 5}": f"{n}"}) for n in range(2600)]
    return make(folder, *commits)


QUERY = ["f0", "f1", "g0"], "number"


@pytest.mark.slow
def test_an_interrupted_refresh_continues_where_it_stopped(long_repo: Path, tmp_path: Path) -> None:
    history, fresh = History(long_repo, str(tmp_path / "code.db")), History(long_repo)
    fresh.refresh()

    def interrupt(done: int, _total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history.refresh(tick=interrupt)
    # The newest came first, and are all there is.
    assert history.subjects("f0", limit=1) == fresh.subjects("f0", limit=1)
    seen: list[tuple[int, int]] = []
    read = history.refresh(tick=lambda done, total: seen.append((done, total)))
    assert read == HistorySize(100, 2600, complete=True)
    assert seen == [(0, 100), (100, 100)]
    assert history.everything(*QUERY) == fresh.everything(*QUERY)


def test_an_interrupted_refresh_does_not_count_as_up_to_date(tmp_path: Path) -> None:
    commits = [Made("Old", {"a": "1"}), Made("New", {"a": "2"})]
    repo = make(tmp_path / "app", *commits)
    git("update-ref", "refs/heads/main", "HEAD~1", cwd=repo)
    history = History(repo)
    history.refresh()
    make(repo, *commits)

    def interrupt(done: int, _total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history.refresh(tick=interrupt)
    git("update-ref", "refs/heads/main", "HEAD~1", cwd=repo)
    assert history.refresh() == HistorySize(0, 1, complete=True)
    assert history.subjects("a") == ["Old"]


@pytest.mark.slow
def test_of_two_concurrent_refreshes_the_later_one_continues(
    long_repo: Path, tmp_path: Path
) -> None:
    database = str(tmp_path / "code.db")
    first, second = History(long_repo, database), History(long_repo, database)
    fresh = History(long_repo)
    fresh.refresh()
    answers: list[HistorySize] = []

    def meanwhile(done: int, _total: int) -> None:
        if done and not answers:
            answers.append(second.refresh())

    assert first.refresh(tick=meanwhile) == HistorySize(2500, 2600, complete=False)
    assert answers == [HistorySize(100, 2600, complete=True)]
    assert first.everything(*QUERY) == fresh.everything(*QUERY)
    assert first.refresh() == HistorySize(0, 2600, complete=True)


NAMES = ["a", "b", "pkg/c", "pkg/d"]
STEPS = "commit commit commit rename amend branch merge rebase back gc read".split()


@settings(
    max_examples=effort.times(8),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=14), seed=st.integers(0, 1 << 30)
)
def test_the_history_follows_head_through_any_branch_operation(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    rng = random.Random(seed)
    repo = tmp_path_factory.mktemp("any")
    try:
        make(repo, Made("Word first", dict.fromkeys(NAMES, "start\n" * 9)))
        git("reset", "-q", "--hard", cwd=repo)
        history = History(repo)
        for number, step in enumerate([*steps, "read"]):
            _take(step, number, repo, rng)
            if step == "read":
                fresh = History(repo)
                assert history.refresh()[1:] == fresh.refresh()[1:]
                assert history.everything(NAMES, "word") == fresh.everything(NAMES, "word")
                _compare_with_git(history, repo)
    finally:
        shutil.rmtree(repo)


def _take(step: str, number: int, repo: Path, rng: random.Random) -> None:
    """Perform one operation on a branch; skip it if it is not possible now."""

    def attempt(*words: str) -> bool:
        # Clocks differ between machines: a later commit may have an earlier time.
        date = f"{FIRST + 60 * number + rng.randrange(-200, 200)} +0000"
        variables = {**os.environ, "GIT_COMMITTER_DATE": date, "GIT_EDITOR": "true"}
        done = subprocess.run(
            ["git", *words], cwd=repo, env=variables, capture_output=True, check=False
        )
        return done.returncode == 0

    present = [name for name in NAMES if (repo / name).exists()]
    match step:
        case "commit" | "amend":
            for name in rng.sample(NAMES, rng.randint(1, 2)):
                (repo / name).parent.mkdir(exist_ok=True)
                (repo / name).write_text("start\n" * 9 + f"{number}\n")
            attempt("add", "-A")
            amended = ["--amend"] if step == "amend" else []
            attempt("commit", "-q", "-m", f"Word {step} {number}", *amended)
        case "rename" if present:
            attempt("mv", "-f", rng.choice(present), rng.choice(NAMES))
            attempt("commit", "-q", "-m", f"Word rename {number}")
        case "branch":
            if not attempt("checkout", "-q", rng.choice(["main", "side"])):
                attempt("checkout", "-q", "-b", "side")
        case "merge":
            if not attempt("merge", "-q", "-m", f"Word merge {number}", "side"):
                attempt("merge", "--abort")
        case "rebase":
            if not attempt("rebase", "-q", rng.choice(["side", "main"])):
                attempt("rebase", "--abort")
        case "back":
            attempt("reset", "-q", "--hard", "HEAD~1")
        case "gc":
            attempt("reflog", "expire", "--expire=now", "--all")
            attempt("prune", "--expire=now")


def _compare_with_git(history: History, repo: Path) -> None:
    """The commits and their files, as another git command lists them."""
    listed = git("log", "--format=%H", cwd=repo).split()
    found = commit_queries.search(history.connection, "word", 1000)
    assert sorted(item.commit.hash for item in found) == sorted(listed)
    asked = ("log", "-1", "--name-only", "--format=", "--find-renames")
    for hash in listed:
        shown = git(*asked, hash, cwd=repo).split()
        assert commit_queries.files_of(history.connection, hash) == sorted(shown)
