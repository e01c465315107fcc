"""The index for a question: refreshed if small, used as it is if large, scanned if missing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctx import clock, locks
from ctx.codebase import background_refresh, freshness, indexing
from ctx.codebase.indexing import Codebase
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.workspace import Environment
from tests.conftest import git


@pytest.fixture
def codebase(repo: Path, surroundings: Path) -> Codebase:
    (repo / "net.py").write_text("def connect():\n    return 1\n")
    (repo / "pay.py").write_text("def pay():\n    return 2\n")
    git("add", "-A")
    git("commit", "-qm", "Connections")
    store = UserStore(str(surroundings / ".ctx"))
    return indexing.codebase_at(Environment(str(repo), store, {}, (), CLI_SESSION))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Treat two files as a large codebase; the value waits for background refreshes."""
    monkeypatch.setattr(freshness, "FEW_FILES", 1)

    yield background_refresh.wait
    background_refresh.wait()


def names(at_hand: freshness.AvailableCode) -> list[str]:
    assert at_hand.code is not None
    found = at_hand.code.connection.execute(
        "SELECT name FROM items WHERE parent NOT NULL ORDER BY name"
    )
    return [name for (name,) in found]


def test_a_small_index_is_refreshed(codebase: Codebase, repo: Path) -> None:
    with freshness.open_now(codebase, "connect") as first:
        assert (first.state.state, names(first)) == ("fresh", ["connect", "pay"])
        assert (first.state.files, first.state.history) == (2, 1)
        assert first.root == str(repo)
    (repo / "net.py").write_text("def reconnect():\n    return 1\n")
    with freshness.open_now(codebase, "connect") as second:
        assert (second.state.state, names(second)) == ("fresh", ["pay", "reconnect"])


def test_a_running_refresh_is_not_waited_for(
    codebase: Codebase, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "_WAIT_SECONDS", 0.0)
    indexing.refresh(codebase)
    (repo / "net.py").write_text("def reconnect():\n    return 1\n")
    with (
        locks.hold(codebase.place.lock, "test", 0),
        freshness.open_now(codebase, "connect") as found,
    ):
        assert (found.state.state, names(found)) == ("as it was", ["connect", "pay"])
        assert found.state.refreshed_at is not None


@pytest.mark.slow
def test_a_large_codebase_is_scanned_first_and_then_used_without_a_refresh(
    codebase: Codebase, repo: Path, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with freshness.open_now(codebase, "How do we connect?") as first:
        assert first.state.state == "scanned"
        assert "connect" in names(first)
    large()
    with freshness.open_now(codebase, "connect") as second:
        assert (second.state.state, names(second)) == ("as it was", ["connect", "pay"])
        assert (second.state.files, second.state.history) == (2, 1)
    (repo / "net.py").write_text("def reconnect():\n    return 1\n")
    with freshness.open_now(codebase, "connect") as third:
        # It is young: nobody looks.
        assert names(third) == ["connect", "pay"]
    background_refresh._reap()
    assert not background_refresh._started
    monkeypatch.setattr(freshness, "_FRESH_MS", 0)
    with freshness.open_now(codebase, "connect") as fourth:
        assert names(fourth) == ["connect", "pay"]
    large()
    with freshness.open_now(codebase, "connect") as fifth:
        assert names(fifth) == ["pay", "reconnect"]


def test_without_a_writable_place_the_files_are_scanned(codebase: Codebase, repo: Path) -> None:
    beneath_a_file = codebase.place._replace(database=str(repo / "pay.py" / "index" / "code.db"))
    with freshness.open_now(codebase._replace(place=beneath_a_file), "connect") as found:
        assert (found.state.state, found.state.refreshed_at) == ("not writable", None)
        assert "connect" in names(found)


def test_recently_edited_files_are_listed_unless_they_are_many(
    codebase: Codebase, repo: Path
) -> None:
    now = clock.now_ms()
    with freshness.open_now(codebase, "x") as found:
        assert found.code is not None
        assert sorted(freshness.recently_edited(found.code, now)) == ["net.py", "pay.py"]
        assert freshness.recently_edited(found.code, now + 86_400_000) == []
    for number in range(30):
        (repo / f"made{number}.py").write_text("")
    with freshness.open_now(codebase, "x") as found:
        assert found.code is not None
        assert freshness.recently_edited(found.code, now) == []
