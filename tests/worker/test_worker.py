"""A worker from its start to its end."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import ctx as package
from ctx import clock
from ctx.hook_files import live, spool
from ctx.operations import worker_round
from tests.agents.claude_code.hook_processes import SESSION, USUAL, sample
from tests.conftest import Ctx
from tests.page.served import visitor
from tests.page.visits import base_of
from tests.worker.worker_processes import Workers, children, is_running, quickly, until


def report(home: Path, word: str = "post-tool-use", *, wakes: bool = True, **changed: str) -> None:
    """Write an event to the spool, as a hook does."""
    told = {"session_id": SESSION, "cwd": str(home.parent), **changed}
    spool.put(str(home), spool.new_id(clock.now_ms()), word, sample(USUAL[word], **told))
    if wakes:
        assert spool.wake(str(home))


def events(workers: Workers) -> int:
    """How many are stored."""
    with closing(sqlite3.connect(workers.store.database)) as store:
        (number,) = store.execute("SELECT count(*) FROM events").fetchone()
    return int(number)


def test_a_worker_from_its_start_to_its_end(workers: Workers) -> None:
    """It empties the spool, answers requests, captures new events, and stops on request."""
    report(workers.home, wakes=False)
    process = workers.start()
    assert workers.pid == process.pid
    until(lambda: events(workers) == 1)
    report(workers.home, "stop")
    until(lambda: events(workers) == 2)
    mode = os.stat(workers.store.worker_socket).st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)

    other = workers.spawn()
    told = other.communicate(timeout=300)[0].decode()
    assert other.returncode == 0
    assert told.startswith(
        f"Already running as process {process.pid}.\nrunning (pid {process.pid}, "
    )
    assert workers.pid == process.pid

    assert workers.get("/api/health")["status"] == "ok"
    assert workers.ask("GET", "/api/nowhere")[0] == 404
    assert workers.ask("DELETE", "/api/health")[0] == 405
    assert workers.ask("POST", "/api/wake") == (200, {"status": "ok"})

    with ExitStack() as stack:
        # The worker's round may be at it still.
        until(lambda: stack.enter_context(worker_round.hold_sessions(str(workers.home))))
        report(workers.home, tool_use_id="toolu_late")
        until(lambda: not spool.pending_names(str(workers.home)))
    until(lambda: "new" not in statuses(workers))

    spool.put(str(workers.home), spool.new_id(clock.now_ms()), "stop", b"[]")
    assert spool.wake(str(workers.home))
    until(lambda: workers.get("/api/health")["failed"] == 1)
    refused = "was not stored: ctx does not know this event."
    until(lambda: refused in workers.log()[-1])

    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    assert not spool.wake(str(workers.home))
    assert not os.path.exists(workers.store.worker_socket)
    log = workers.log()
    assert (log[0], log[-1]) == (f"started, version {package.__version__}", "gone: stopped")


def test_a_worker_after_a_killed_one_ends_when_it_is_idle(workers: Workers) -> None:
    first = workers.start()
    first.kill()
    first.wait()
    assert os.path.exists(workers.store.worker_socket)
    assert not spool.wake(str(workers.home))
    workers.environment.update(quickly())
    live.begin(str(workers.home), SESSION, str(os.getpid()), str(workers.home))
    process = workers.start()
    # An ended session does not keep the worker, and an event without a wake call is not lost.
    live.remove(str(workers.home), SESSION)
    report(workers.home, wakes=False)
    assert process.wait(300) == 0
    assert workers.log()[-1] == "gone: idle"
    assert (spool.pending_names(str(workers.home)), events(workers)) == ([], 1)


def test_a_worker_stays_while_a_client_runs_or_a_page_is_open(workers: Workers) -> None:
    workers.environment.update(quickly())
    with ExitStack() as stack:
        client = stack.enter_context(subprocess.Popen(["sleep", "60"]))
        live.begin(str(workers.home), SESSION, str(client.pid), str(workers.home))
        process = workers.start()
        # Far longer than it stays without one.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        assert workers.get("/api/health")["live"] == 1
        folder = json.dumps({"folder": str(workers.home.parent)}).encode()
        address = workers.ask("POST", "/api/page", folder)[1]["address"]
        client_of_page = stack.enter_context(visitor(address))
        live_path = f"{base_of(client_of_page)}/live"
        with client_of_page.stream("GET", live_path, timeout=600) as stream:
            received = stream.iter_raw()
            assert next(received) == b": listening\n\n"
            client.kill()
            client.wait()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2)
    assert process.wait(300) == 0
    assert workers.log()[-1] == "gone: idle"


def test_an_error_is_a_line_in_the_log(workers: Workers, ctx: Ctx) -> None:
    assert ctx("status").code == 0
    damaged = Path(workers.store.database)
    whole = damaged.read_bytes()
    damaged.write_bytes(b"This is no database." * 1000)
    process = workers.spawn()
    report_later = until(lambda: workers.log()[2:])
    assert "is not a database" in report_later[0]
    assert process.poll() is None
    damaged.write_bytes(whole)
    report(workers.home)
    until(lambda: spool.pending_names(str(workers.home)) == [])
    assert events(workers) == 1


def test_a_home_with_a_long_path_works(surroundings: Path, tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 30) / ".ctx"
    home.mkdir(0o700, parents=True)
    workers = Workers(home)
    try:
        assert len(workers.store.worker_socket) < 100
        workers.start()
        assert stat.S_IMODE(os.stat(os.path.dirname(workers.store.worker_socket)).st_mode) == 0o700
    finally:
        workers.close()
        Path(workers.store.worker_socket).unlink(missing_ok=True)


def test_a_worker_can_be_stopped_while_it_works(workers: Workers) -> None:
    for number in range(150):
        report(workers.home, wakes=False, tool_use_id=f"toolu_{number}")
    process = workers.spawn()
    until(lambda: workers.pid == process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    workers.start()
    until(lambda: workers.get("/api/health")["new"] == 0)
    with closing(sqlite3.connect(workers.store.database)) as store:
        number, attempts = store.execute("SELECT count(*), max(attempts) FROM events").fetchone()
    assert number == 150
    assert attempts <= 2


def test_a_removed_home_is_not_created_again(workers: Workers) -> None:
    process = workers.start()
    until(lambda: workers.get("/api/health")["rounds"])
    shutil.rmtree(workers.home)
    assert process.wait(300) == 0
    assert not workers.home.exists()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the installation that a test can change."""
    source = Path(package.__file__).parent
    target = tmp_path / "install" / "ctx"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc.*", "*.npy"))
    return target.parent


def test_a_newer_install_takes_over(workers: Workers, copied: Path) -> None:
    run = (
        "import sys; sys.path.insert(0, sys.argv.pop(1));"
        " from ctx.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-P", "-c", run, str(copied), "worker", "run", "--detached"]
    with subprocess.Popen(["sleep", "60"]) as client:
        live.begin(str(workers.home), SESSION, str(client.pid), str(workers.home))
        with subprocess.Popen(words, env=workers.environment) as process:
            try:
                until(lambda: workers.health())
                begin = copied / "ctx" / "__init__.py"
                begin.write_text(begin.read_text().replace(package.__version__, "99.0.0"))
                report(workers.home)
                until(lambda: (workers.health() or {}).get("version") == "99.0.0")
                # The same process, with the new code.
                assert workers.pid == process.pid
                assert events(workers) == 1
                assert "gone: replaced" in workers.log()
                begin.unlink()
                report(workers.home)
                until(lambda: workers.log()[-1] == "gone: replaced")
                assert process.wait(300) == 0
            finally:
                process.kill()
                client.kill()


def test_a_worker_with_too_much_memory_is_replaced(workers: Workers) -> None:
    run = (
        "from ctx.worker import run; from ctx.workspace import Environment, open_memory;"
        " from ctx.layout import UserStore; from ctx.ids import CLI_SESSION; import sys;"
        " from ctx.agents.known_hosts import HOSTS; home = UserStore(sys.argv[1]);"
        " place = Environment(home.home, home, {}, (), CLI_SESSION, load_hosts=lambda: HOSTS);"
        " print(run.run(place, lambda: open_memory(place, writing=True),"
        " run.WorkerLimits(60, 1, young_s=0), {}))"
    )
    workers.home.mkdir(mode=0o700)
    report(workers.home, wakes=False)
    told = subprocess.run(
        [sys.executable, "-c", run, str(workers.home)], capture_output=True, timeout=300, check=True
    )
    assert told.stdout == b"large\n"
    assert workers.log()[-1] == "gone: large"


def test_a_worker_keeps_no_files_of_its_starter_open(workers: Workers, tmp_path: Path) -> None:
    """A client that waits for the output of a hook must not wait for the worker."""
    workers.environment.update(quickly(CTX_WORKER_IDLE_SECONDS="20"))
    read, write = os.pipe()
    process = workers.spawn("--detached", pass_fds=(write,))
    os.close(write)
    until(lambda: workers.health())
    assert os.read(read, 1) == b""
    os.close(read)
    if os.path.isdir("/proc"):
        assert os.readlink(f"/proc/{process.pid}/cwd") == "/"
    assert is_running(process.pid)


def test_the_child_processes_of_a_worker_end_with_it(
    workers: Workers, repo: Path, ctx: Ctx
) -> None:
    """A process that refreshes the code index ends with its worker."""
    (repo / "a.py").write_text("def first() -> int:\n    return 1\n")
    assert ctx("code", "index").code == 0
    live.begin(str(workers.home), SESSION, str(os.getpid()), str(repo))
    process = workers.start()
    # After a wake-up the worker only captures. It refreshes code when it finds events by itself.
    report(workers.home, cwd=str(repo), wakes=False)
    started = until(lambda: children(process.pid))
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    until(lambda: not any(map(is_running, started)))


def statuses(workers: Workers) -> set[str]:
    with closing(sqlite3.connect(workers.store.database)) as connection:
        return {row[0] for row in connection.execute("SELECT status FROM events")}
