"""The worker syncs in the background, when a target is due, and delays nothing."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from ctx import clock
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.sync.folder_target import FolderTarget
from ctx.worker.sync_thread import SyncThread
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import Ctx


class BackgroundSync:
    """The thread of a worker in this process."""

    def __init__(self, home: Path) -> None:
        self.log: list[str] = []
        store = UserStore(str(home / ".ctx"))
        self._place = Environment(store.home, store, {}, (), CLI_SESSION)
        self._thread = SyncThread(self._place, self._open, self._guard, self.log.append)

    def _open(self) -> AbstractContextManager[Memory]:
        return open_memory(self._place, writing=True)

    @contextmanager
    def _guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as the worker does
            self.log.append(f"{doing}: {type(error).__name__}: {error}")

    def run(self) -> None:
        self._thread.wake()
        if self._thread._thread is not None:
            self._thread._thread.join()


@pytest.fixture
def background(surroundings: Path) -> BackgroundSync:
    return BackgroundSync(surroundings)


def test_a_target_is_synced_when_it_is_due(
    background: BackgroundSync, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    background.run()
    assert not (tmp_path / "home" / ".ctx" / "sync").exists()
    shared = tmp_path / "shared"
    ctx("add", "Fact one.")
    ctx("sync", "add", "home", str(shared), "--plain")
    announced = set(shared.iterdir())
    background.run()
    assert set(shared.iterdir()) == announced
    ctx("config", "set", "sync.every", "10m")
    background.run()
    first = set(shared.iterdir())
    assert len(first) == 2
    ctx("add", "Fact two.")
    background.run()
    assert set(shared.iterdir()) == first
    now = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now + 601_000)
    background.run()
    assert len(set(shared.iterdir())) == 3
    assert background.log == []


def test_the_interval_of_a_target_comes_first(
    background: BackgroundSync, ctx: Ctx, tmp_path: Path
) -> None:
    ctx("config", "set", "sync.every", "10m")
    ctx("add", "Fact one.")
    ctx("sync", "add", "home", str(tmp_path / "shared"), "--plain", "--every", "never")
    background.run()
    assert ctx("sync", "status", "--json").json["targets"][0]["unsent"] == 2


def test_a_problem_is_reported_once(
    background: BackgroundSync, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    ctx("sync", "add", "home", str(shared), "--plain", "--every", "1s")
    shared.rename(tmp_path / "unmounted")
    for seconds in range(3):
        now = clock.now_ms() + 2_000 * seconds
        monkeypatch.setattr(clock, "now_ms", lambda now=now: now)
        background.run()
    assert background.log == [f"sync with home: The folder {shared} does not exist."]
    (told,) = ctx("sync", "status", "--json").json["targets"]
    assert told["problem"] == f"E034: The folder {shared} does not exist."


def test_a_slow_target_delays_no_round(
    background: BackgroundSync, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx("sync", "add", "home", str(tmp_path / "shared"), "--plain", "--every", "1s")
    listing = FolderTarget.listing
    may_answer = threading.Event()
    answered: list[str] = []

    def slow(self: FolderTarget) -> object:
        may_answer.wait(300)
        answered.append("home")
        return listing(self)

    monkeypatch.setattr(FolderTarget, "listing", slow)
    for _ in range(3):
        background._thread.wake()
    assert not answered
    may_answer.set()
    background.run()
    assert answered
