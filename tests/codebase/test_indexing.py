"""The index of a codebase: refreshed, used as it is, scanned, or built by another process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ctx import clock, locks
from ctx.code import index_file, lookup
from ctx.code.history import commit_meanings
from ctx.codebase import background_refresh, freshness, indexing
from ctx.codebase.indexing import Codebase
from ctx.errors import IndexCorrupt
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.search import embedders
from ctx.workspace import Environment
from tests.conftest import git
from tests.files import write


@pytest.fixture
def codebase(repo: Path, surroundings: Path) -> Codebase:
    pay = "def pay(amount):\n    return confirm(amount)\n\n\ndef confirm(amount): ...\n"
    write(repo, {"net.py": "def connect():\n    return 1\n", "pay.py": pay})
    commit("Connections")
    store = UserStore(str(surroundings / ".ctx"))
    return indexing.codebase_at(Environment(str(repo), store, {}, (), CLI_SESSION))


def commit(subject: str) -> None:
    git("add", "-A")
    git("commit", "-qm", subject)


def without_a_place(codebase: Codebase) -> Codebase:
    """The same code, with an index that cannot be written."""
    place = codebase.place
    below_a_file = os.path.join(place.root, "pay.py", "index", "code.db")
    return codebase._replace(place=place._replace(database=below_a_file))


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
        assert (first.state.state, names(first)) == ("fresh", ["confirm", "connect", "pay"])
        assert (first.state.files, first.state.history) == (2, 1)
        assert first.root == str(repo)
    (repo / "net.py").write_text("def reconnect():\n    return 1\n")
    with freshness.open_now(codebase, "connect") as second:
        assert (second.state.state, names(second)) == ("fresh", ["confirm", "pay", "reconnect"])


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
        assert (found.state.state, names(found)) == ("as it was", ["confirm", "connect", "pay"])
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
        assert (second.state.state, names(second)) == ("as it was", ["confirm", "connect", "pay"])
        assert (second.state.files, second.state.history) == (2, 1)
    (repo / "net.py").write_text("def reconnect():\n    return 1\n")
    with freshness.open_now(codebase, "connect") as third:
        # It is young: nobody looks.
        assert names(third) == ["confirm", "connect", "pay"]
    background_refresh._reap()
    assert not background_refresh._started
    monkeypatch.setattr(freshness, "_FRESH_MS", 0)
    with freshness.open_now(codebase, "connect") as fourth:
        assert names(fourth) == ["confirm", "connect", "pay"]
    large()
    with freshness.open_now(codebase, "connect") as fifth:
        assert names(fifth) == ["confirm", "pay", "reconnect"]


def test_without_a_writable_place_the_files_are_scanned(codebase: Codebase) -> None:
    assert background_refresh.start(without_a_place(codebase)) is None
    with freshness.open_now(without_a_place(codebase), "connect") as found:
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


def exit_code(process: int) -> int:
    """Wait for a child process and return its exit code."""
    try:
        _, status = os.waitpid(process, 0)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        raise
    return os.waitstatus_to_exitcode(status)


def test_the_index_is_built_by_a_separate_process(codebase: Codebase) -> None:
    process = background_refresh.start(codebase)
    assert process is not None
    # Neither the terminal nor the end of whoever asked concerns it.
    assert os.getsid(process) == process != os.getsid(0)
    # There is one of them.
    assert background_refresh.start(codebase) is None
    assert exit_code(process) == 0
    with indexing.open_unrefreshed(codebase) as opened:
        [pay] = opened.code.named("pay.pay")
        assert [edge.label for edge in opened.code.edges_from([pay.id])] == ["CALLS"]
        commits = opened.code.connection.execute("SELECT subject FROM commits").fetchall()
        assert commits == [("Connections",)]
    assert not locks.is_held(codebase.place.lock)


def test_a_second_refresh_is_not_started(codebase: Codebase) -> None:
    with locks.hold(codebase.place.lock, "a test", 1):
        assert background_refresh.start(codebase) is None
        # Also where both began at once: the later one goes away without a word.
        start = "import sys; from ctx.codebase.background_refresh import run; run(sys.argv[1])"
        words = [sys.executable, "-c", start, background_refresh._encode(codebase)]
        done = subprocess.run(words, capture_output=True, timeout=300, check=True)
        assert (done.stdout, done.stderr) == (b"", b"")
    assert lookup.open_index(codebase.place.database, codebase.place.root) is None


def test_the_arguments_of_the_process_survive_encoding(codebase: Codebase) -> None:
    strange = codebase._replace(
        place=codebase.place._replace(root="/a\udcff b\n'"), ignore_globs=("*.x", "ü"), folder=""
    )
    assert background_refresh._decode(background_refresh._encode(strange)) == strange


def fingerprints(codebase: Codebase) -> dict[str, bytes]:
    with closing(index_file.open_for_writing(codebase.place.database)) as connection:
        subjects = dict(connection.execute("SELECT id, subject FROM commits"))
        by_commit = commit_meanings.all_fingerprints(connection)
    return {subjects[id]: bits for id, bits in by_commit.items()}


def test_new_commits_get_fingerprints(
    repo: Path, codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexing.update(codebase, clock.no_tick)
    before = fingerprints(codebase)
    assert before.keys() == {"Connections"}
    write(repo, {"net.py": "TIMEOUT = 1\n"})
    commit("Add a timeout")
    indexing.update(codebase, clock.no_tick)
    after = fingerprints(codebase)
    assert after.keys() - before.keys() == {"Add a timeout"}
    assert {len(bits) for bits in after.values()} == {32}
    # Many commits get the same as few.
    monkeypatch.setattr(indexing, "_FEW", 0)
    indexing.rebuild(codebase, clock.no_tick)
    assert fingerprints(codebase) == after


def test_the_history_is_read_without_the_table(
    codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> None:
        raise IndexCorrupt("The table is damaged.")

    monkeypatch.setattr(embedders, "default", damaged)
    indexing.update(codebase, clock.no_tick)
    assert fingerprints(codebase) == {}
    with closing(index_file.open_for_writing(codebase.place.database)) as connection:
        assert connection.execute("SELECT count(*) FROM commits").fetchone()[0] == 1
