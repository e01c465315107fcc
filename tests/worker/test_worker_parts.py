"""The lock, the wake pipe and the log of the worker."""

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

import ctx
from ctx import clock
from ctx.hook_files import spool
from ctx.worker import process_lock, spawn, worker
from ctx.worker.event_loop import WakePipe

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def test_only_one_process_holds_the_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "home" / "worker.lock")
    assert process_lock.running_worker(path) is None
    with process_lock.hold(path, 0) as is_ours:
        assert is_ours
        owner = process_lock.running_worker(path)
        assert owner is not None
        assert (owner.pid, owner.version) == (os.getpid(), ctx.__version__)
        with process_lock.hold(path, 0) as is_also_ours:
            assert not is_also_ours
        assert process_lock.running_worker(path) == owner
    assert process_lock.running_worker(path) is None
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_lock_file_of_a_killed_worker_is_free(tmp_path: Path) -> None:
    path = tmp_path / "worker.lock"
    path.write_text("4242\n0.0.1\n1768906800123\n")
    assert process_lock.running_worker(str(path)) is None
    with process_lock.hold(str(path), 0) as is_ours:
        assert is_ours


@pytest.mark.parametrize("said", ["", "x", "12\n", "12\n0.1.0\nx\n", "\xff\n\n\n"])
def test_an_unreadable_lock_file_names_no_worker(tmp_path: Path, said: str) -> None:
    path = tmp_path / "worker.lock"
    with process_lock.hold(str(path), 0):
        path.write_text(said)
        assert process_lock.running_worker(str(path)) is None


def test_the_wake_pipe_works_while_it_is_open(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert not spool.wake(home)
    wake_pipe = WakePipe(f"{home}/{spool.WAKE}")
    assert not wake_pipe.was_written()
    assert spool.wake(home)
    assert spool.wake(home)
    assert wake_pipe.was_written()
    assert not wake_pipe.was_written()
    wake_pipe.close()
    wake_pipe.close()
    assert not spool.wake(home)
    again = WakePipe(f"{home}/{spool.WAKE}")
    assert spool.wake(home)
    again.close()
    assert stat.S_IMODE(os.stat(f"{home}/{spool.WAKE}").st_mode) == 0o600


def test_a_full_wake_pipe_still_accepts_calls(tmp_path: Path) -> None:
    wake_pipe = WakePipe(str(tmp_path / spool.WAKE))
    filling = os.open(tmp_path / spool.WAKE, os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(filling, b"x" * 4096)
    os.close(filling)
    assert spool.wake(str(tmp_path))
    assert wake_pipe.was_written()
    wake_pipe.close()


def test_a_file_in_place_of_the_wake_pipe_is_replaced_by_the_worker(tmp_path: Path) -> None:
    path = tmp_path / spool.WAKE
    path.write_text("mine")
    assert not spool.wake(str(tmp_path))
    assert path.read_text() == "mine"
    wake_pipe = WakePipe(str(path))
    assert spool.wake(str(tmp_path))
    wake_pipe.close()


def test_a_log_is_private_and_has_no_secrets(tmp_path: Path) -> None:
    path = str(tmp_path / "worker.log")
    assert worker.log_tail(path, 3) == []
    for number in range(5):
        worker.add_log_line(path, f"line\n {number}, {SECRET}")
    told = worker.log_tail(path, 2)
    assert [each.split(" ", 2)[2].partition(", ")[0] for each in told] == ["line 3", "line 4"]
    assert SECRET not in Path(path).read_text()
    assert len(worker.log_tail(path, 0)) == 5
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_size_of_a_log_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_text("old\n" * 300_000)
    worker.add_log_line(str(path), "the last of the old ones")
    worker.add_log_line(str(path), "the first of the new ones")
    assert sorted(each.name for each in tmp_path.glob("w*")) == ["worker.log", "worker.log.1"]
    assert path.read_text().endswith("the first of the new ones\n")
    assert path.read_text().count("\n") == 1
    told = worker.log_tail(str(path), 2)
    assert [each.split(" ", 2)[2] for each in told] == [
        "the last of the old ones",
        "the first of the new ones",
    ]


def test_a_log_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    worker.add_log_line(str(tmp_path / "nowhere" / "worker.log"), "nobody hears it")
    assert not (tmp_path / "nowhere").exists()


def test_a_worker_is_started_once_within_some_seconds(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert spawn._claim_start(home, clock.wall_s())
    # The present is given in whole seconds.
    os.utime(tmp_path / spawn.MARK, (now := clock.wall_s(), now + 0.999))
    assert not spawn._claim_start(home, now)
    assert not spawn._claim_start(home, now + 1)
    # Whoever made it did not come far.
    assert spawn._claim_start(home, now + 10)
