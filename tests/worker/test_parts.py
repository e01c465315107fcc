"""The lock, the bell and the log, each by itself."""

import os
import stat
from pathlib import Path

import pytest

import ctx
from ctx import clock
from ctx.hook_files import spool
from ctx.worker import lock, log, starting
from ctx.worker.bell import Bell

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def test_one_holds_the_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "home" / "worker.lock")
    assert lock.owner(path) is None
    with lock.held(path, 0) as is_ours:
        assert is_ours
        owner = lock.owner(path)
        assert owner is not None
        assert (owner.pid, owner.version) == (os.getpid(), ctx.__version__)
        with lock.held(path, 0) as is_also_ours:
            assert not is_also_ours
        assert lock.owner(path) == owner
    assert lock.owner(path) is None
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_what_a_killed_worker_left_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "worker.lock"
    path.write_text("4242\n0.0.1\n1768906800123\n")
    assert lock.owner(str(path)) is None
    with lock.held(str(path), 0) as is_ours:
        assert is_ours


@pytest.mark.parametrize("said", ["", "x", "12\n", "12\n0.1.0\nx\n", "\xff\n\n\n"])
def test_a_lock_that_says_nothing(tmp_path: Path, said: str) -> None:
    path = tmp_path / "worker.lock"
    with lock.held(str(path), 0):
        path.write_text(said)
        assert lock.owner(str(path)) is None


def test_a_bell_is_heard_while_it_hangs(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert not spool.wake(home)
    bell = Bell(f"{home}/{spool.WAKE}")
    assert not bell.has_rung()
    assert spool.wake(home)
    assert spool.wake(home)
    assert bell.has_rung()
    assert not bell.has_rung()
    bell.close()
    bell.close()
    assert not spool.wake(home)
    again = Bell(f"{home}/{spool.WAKE}")
    assert spool.wake(home)
    again.close()
    assert stat.S_IMODE(os.stat(f"{home}/{spool.WAKE}").st_mode) == 0o600


def test_a_bell_that_nobody_listens_to_gets_full(tmp_path: Path) -> None:
    bell = Bell(str(tmp_path / spool.WAKE))
    for _ in range(70_000):
        assert spool.wake(str(tmp_path))
    assert bell.has_rung()
    bell.close()


def test_what_lies_in_the_place_of_a_bell(tmp_path: Path) -> None:
    path = tmp_path / spool.WAKE
    path.write_text("mine")
    assert not spool.wake(str(tmp_path))
    assert path.read_text() == "mine"
    bell = Bell(str(path))
    assert spool.wake(str(tmp_path))
    bell.close()


def test_a_log(tmp_path: Path) -> None:
    path = str(tmp_path / "worker.log")
    assert log.tail(path, 3) == []
    for number in range(5):
        log.add(path, f"line\n {number}, {SECRET}")
    told = log.tail(path, 2)
    assert [each.split(" ", 2)[2].partition(", ")[0] for each in told] == ["line 3", "line 4"]
    assert SECRET not in Path(path).read_text()
    assert len(log.tail(path, 0)) == 5
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_log_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_text("old\n" * 300_000)
    log.add(str(path), "the last of the old ones")
    log.add(str(path), "the first of the new ones")
    assert sorted(each.name for each in tmp_path.glob("w*")) == ["worker.log", "worker.log.1"]
    assert path.read_text().endswith("the first of the new ones\n")
    assert path.read_text().count("\n") == 1
    told = log.tail(str(path), 2)
    assert [each.split(" ", 2)[2] for each in told] == [
        "the last of the old ones",
        "the first of the new ones",
    ]


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    log.add(str(tmp_path / "nowhere" / "worker.log"), "nobody hears it")
    assert not (tmp_path / "nowhere").exists()


def test_a_worker_is_started_once_in_a_moment(tmp_path: Path) -> None:
    mark = str(tmp_path / starting.MARK)
    assert starting._is_first(mark, clock.now_ms() / 1000)
    assert not starting._is_first(mark, clock.now_ms() / 1000 + 1)
    # Whoever made it did not come far.
    assert starting._is_first(mark, clock.now_ms() / 1000 + 10)
