"""`ctx worker`"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ctx as package
from ctx.agents.host_setup import hook_trials
from ctx.hook_files import spool
from ctx.worker import spawn
from tests.conftest import Ctx
from tests.worker.worker_processes import Workers, is_running, until


@pytest.fixture
def workers(surroundings: Path) -> Iterator[Workers]:
    found = Workers(surroundings / ".ctx")
    yield found
    found.close()


def test_starting_and_stopping(workers: Workers, ctx: Ctx) -> None:
    assert ctx("worker", "logs").out == "No log yet.\n"
    ctx("pause")
    off = ctx("worker", "status")
    told = "not running; `worker.autostart` is off, so only `ctx worker start` starts it"
    assert off.out.splitlines()[0] == told
    assert "paused everywhere since " in off.out
    nobody = ctx("worker", "status", "--format=json").json
    assert (nobody["running"], nobody["pid"], nobody["memory_mb"]) == (False, None, None)
    assert [*nobody["paused"][0]] == ["why", "advice"]
    first = ctx("worker", "start", "--format=json").json
    assert (first["running"], first["changed"], first["answering"]) == (True, True, True)
    assert first["version"] == package.__version__
    assert first["socket"] == workers.store.worker_socket
    assert first["memory_mb"] < 80
    pid = first["pid"]
    second = ctx("worker", "start", "--format=json").json
    assert (second["pid"], second["changed"]) == (pid, False)
    assert ctx("worker", "run").err == f"Already running as process {pid}.\n"
    lines = ctx("worker", "status").out.splitlines()
    assert lines[0].startswith(f"running (pid {pid}, ")
    assert [line.split()[0] for line in lines[1:5]] == ["sessions", "waiting", "last", "socket"]
    # The disk was full when it began. It is asked then, and says so when there is room.
    path = Path(workers.store.worker_lock)
    os.truncate(path, 0)
    assert ctx("worker", "status", "--format=json").json["pid"] == pid
    assert spool.wake(str(workers.home))
    until(lambda: path.read_text().startswith(f"{pid}\n"))
    stopped = ctx("worker", "stop", "--format=json").json
    assert (stopped["running"], stopped["changed"]) == (False, True)
    until(lambda: not is_running(pid))
    assert ctx("worker", "stop", "--format=json").json["changed"] is False
    log = ctx("worker", "logs", "--format=json").json
    assert log["path"] == workers.store.worker_log
    assert [line.split(" ", 1)[1] for line in log["lines"]] == [
        f"{pid} started, version {package.__version__}",
        f"{pid} gone: stopped",
    ]
    assert ctx("worker", "logs", "-n", "1").out == f"{log['lines'][-1]}\n"


def test_stopping_one_that_was_only_just_started(workers: Workers, ctx: Ctx) -> None:
    workers.home.mkdir()
    pid = spawn.start_worker(str(workers.home), workers.environment, time.time())
    assert pid is not None
    stopped = ctx("worker", "stop", "--format=json").json
    assert (stopped["running"], stopped["changed"]) == (False, True)
    until(lambda: not is_running(pid))


@pytest.mark.usefixtures("impatient")
def test_one_that_hangs_is_ended(workers: Workers, ctx: Ctx) -> None:
    """It is stopped in the middle of everything, so that it hears nothing."""
    pid = ctx("worker", "start", "--format=json").json["pid"]
    os.kill(pid, 19)
    told = ctx("worker", "status", "--format=json").json
    assert (told["running"], told["answering"]) == (True, False)
    assert "running, but not responding" in ctx("worker", "status").out
    assert ctx("worker", "stop").code == 0
    until(lambda: not is_running(pid))


def test_a_store_that_cannot_be_read(workers: Workers, ctx: Ctx, surroundings: Path) -> None:
    """Whoever wants to know about the worker then is told about the worker."""
    ctx("status")
    store = surroundings / ".ctx" / "store.db"
    for path in store.parent.glob("store.db*"):
        path.write_text("Dear diary,\n" * 1000)
    began = ctx("worker", "start", "--format=json")
    assert (began.code, began.json["answering"]) == (0, True)
    told = ctx("worker", "status")
    assert (told.code, told.out.startswith(f"running (pid {began.json['pid']}")) == (0, True)
    assert "problem" in told.out
    stopped = ctx("worker", "stop", "--format=json")
    assert (stopped.code, stopped.json["running"]) == (0, False)


@pytest.mark.slow
def test_it_goes_when_ctx_is_taken_out(
    workers: Workers, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Trying the hooks takes a process for each.
    monkeypatch.setattr(hook_trials, "_trial", lambda *_: "")
    assert ctx("install").code == 0
    pid = ctx("worker", "start", "--format=json").json["pid"]
    assert ctx("uninstall", "--dry-run").code == 0
    assert is_running(pid)
    assert ctx("uninstall").code == 0
    until(lambda: not is_running(pid))


def test_something_else_in_its_place(ctx: Ctx, surroundings: Path) -> None:
    (surroundings / ".ctx").write_text("mine")
    ran = ctx("worker", "start")
    assert (ran.code, ran.err[:12]) == (1, "error E014: ")
    (surroundings / ".ctx").unlink()
    (surroundings / ".ctx" / "worker.lock").mkdir(parents=True)
    ran = ctx("worker", "run")
    assert (ran.code, "\nerror E014: " in ran.err) == (1, True)
