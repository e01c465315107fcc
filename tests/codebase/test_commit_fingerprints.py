"""Commits get fingerprints of their meaning when the history is read."""

from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.code import index_file
from ctx.code.history import commit_meanings
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.errors import IndexCorrupt
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.search import embedders
from ctx.workspace import Environment
from tests.conftest import git


@pytest.fixture
def codebase(repo: Path, surroundings: Path) -> Codebase:
    for number in range(3):
        commit(repo, f"Change {number}")
    store = UserStore(str(surroundings / ".ctx"))
    return indexing.codebase_at(Environment(str(repo), store, {}, (), CLI_SESSION))


def commit(repo: Path, subject: str) -> None:
    (repo / "net.py").write_text(f"def connect():\n    return {subject!r}\n")
    git("add", "-A")
    git("commit", "-qm", subject)


def fingerprints(codebase: Codebase) -> dict[str, bytes]:
    with closing(index_file.open_for_writing(codebase.place.database)) as connection:
        subjects = dict(connection.execute("SELECT id, subject FROM commits"))
        by_commit = commit_meanings.all_fingerprints(connection)
    return {subjects[id]: bits for id, bits in by_commit.items()}


def test_new_commits_get_fingerprints(repo: Path, codebase: Codebase) -> None:
    indexing.update(codebase, clock.no_tick)
    before = fingerprints(codebase)
    assert {"Change 0", "Change 1", "Change 2"} <= before.keys()
    assert {len(bits) for bits in before.values()} == {32}
    commit(repo, "Add a timeout")
    indexing.update(codebase, clock.no_tick)
    after = fingerprints(codebase)
    assert after.keys() - before.keys() == {"Add a timeout"}


def test_many_commits_get_the_same_fingerprints_as_few(
    codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexing.update(codebase, clock.no_tick)
    one_by_one = fingerprints(codebase)
    monkeypatch.setattr(indexing, "_FEW", 0)
    indexing.rebuild(codebase, clock.no_tick)
    assert fingerprints(codebase) == one_by_one


def test_the_history_is_read_without_the_table(
    codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> None:
        raise IndexCorrupt("The table is damaged.")

    monkeypatch.setattr(embedders, "default", damaged)
    indexing.update(codebase, clock.no_tick)
    assert fingerprints(codebase) == {}
    with closing(index_file.open_for_writing(codebase.place.database)) as connection:
        assert connection.execute("SELECT count(*) FROM commits").fetchone()[0] >= 3
