"""Hooks wake, ask and start the worker, and never depend on it."""

import json
import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ctx import __version__, clock
from ctx.agents.runtime import notices
from ctx.hook_files import spool
from ctx.layout import UserStore
from ctx.worker import spawn
from ctx.worker.event_loop import WakePipe
from tests.agents.claude_code.hook_processes import (
    NOTHING,
    SESSION,
    SILENT,
    WORDS,
    Hooks,
    additional,
)
from tests.conftest import Ctx
from tests.worker.worker_processes import Workers, until

REMEMBER = '<ctx:remember type="fact">Deploys run on Mondays.</ctx:remember>'


@pytest.fixture
def hooks(surroundings: Path, repo: Path, ctx: Ctx) -> Iterator[Hooks]:
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    hooks = Hooks(surroundings / ".ctx", repo)
    (hooks.home / "first-run").touch()
    yield hooks
    hooks.close()


@pytest.fixture
def workers(hooks: Hooks) -> Iterator[Workers]:
    found = Workers(hooks.home)
    yield found
    found.close()


@contextmanager
def answering(hooks: Hooks, answer: Callable[[bytes], bytes]) -> Iterator[list[bytes]]:
    """A server in place of the worker; the value is the list of its requests."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(UserStore(str(hooks.home)).worker_socket)
        listening.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        asked.append(connection.recv(65536))
                        connection.sendall(answer(asked[-1]))

        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            # A thread that waits in `accept` is not woken by a close.
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def http(value: Any) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + json.dumps(value).encode()


def contents(ctx: Ctx) -> list[str]:
    return [node["content"] for node in ctx("list", "--type=fact", "--format=json").json["nodes"]]


def test_every_event_wakes_the_worker(hooks: Hooks) -> None:
    bell = WakePipe(str(hooks.home / spool.WAKE))
    for word in WORDS:
        assert hooks.run(word, hooks.event(word)).code == 0
        assert bell.was_written(), word
    # A full pipe is no error.
    with suppress(BlockingIOError):
        while True:
            os.write(bell.fileno(), b"!" * 4096)
    assert hooks.run("post-tool-use", hooks.event("post-tool-use")) == SILENT
    bell.close()
    assert [name.partition(".")[0] for name, _ in hooks.spooled() if name != "receipt"] == [
        *WORDS,
        "post-tool-use",
    ]


# Commands


def test_failures_that_the_worker_reports_are_shown(hooks: Hooks) -> None:
    def failed(_asked: bytes) -> bytes:
        (name,) = spool.pending_names(str(hooks.home))
        stop = {"event": spool.id_of(name), "session": SESSION, "done": 1, "failed": 2}
        return http({"stops": [stop], "waiting": 0})

    with answering(hooks, failed) as asked:
        ran = hooks.run("stop", hooks.event("stop", last_assistant_message=REMEMBER))
    assert [each.split(b"\r\n")[0] for each in asked] == [b"POST /api/apply HTTP/1.1"]
    message = "ctx: 2 of 3 commands failed; the agent is told with your next prompt"
    assert json.loads(ran.out) == {"systemMessage": message}


NONSENSE = {
    "nothing": b"",
    "no JSON": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "a list": http([]),
    "an error": b"HTTP/1.1 500 No\r\n\r\n{}",
    "deep": b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    "without what is expected": http({"text": "x"}),
    "other types": http({"text": 5, "items": 5, "tokens": [], "stops": [], "waiting": []}),
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE)
def test_an_invalid_answer_of_the_worker_is_ignored(hooks: Hooks, said: bytes) -> None:
    with answering(hooks, lambda _: said) as asked:
        assert hooks.run("prompt-submit", hooks.event("prompt-submit")) == NOTHING
    assert len(asked) == 1


def test_a_hanging_worker_does_not_block_commands(hooks: Hooks, ctx: Ctx) -> None:
    """It accepts and never answers; another process runs the commands."""
    hooks.environment["CTX_PATIENCE"] = "3"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(UserStore(str(hooks.home)).worker_socket)
        listening.listen()
        for word in WORDS:
            assert hooks.run(word, hooks.event(word)).code == 0
        hooks.run("stop", hooks.event("stop", last_assistant_message=REMEMBER))
        hooks.settle()
    assert "Deploys run on Mondays." in contents(ctx)


def test_a_socket_in_a_writable_folder_is_not_used(hooks: Hooks) -> None:
    with answering(hooks, lambda _: http({"text": "Evil.", "tokens": 1, "items": []})) as asked:
        hooks.home.chmod(0o777)
        assert hooks.run("prompt-submit", hooks.event("prompt-submit")) == NOTHING
        hooks.home.chmod(0o700)
    assert asked == []


# Prompts


def test_hints_of_the_worker_are_returned_with_a_prompt(hooks: Hooks) -> None:
    item = {
        "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "label": "Retries",
        "updated_at": "2026-01-20",
        "tokens": 7,
        "digest": "abc",
    }
    told = {"text": "Memory knows about retries.\n", "tokens": 9, "items": [item]}
    with answering(hooks, lambda _: http(told)) as asked:
        ran = hooks.run("prompt-submit", hooks.event("prompt-submit", prompt="Why retries?"))
    assert additional(ran) == "Memory knows about retries.\n"
    question = json.loads(asked[0].partition(b"\r\n\r\n")[2])
    assert question == {"folder": str(hooks.folder), "session": SESSION, "prompt": "Why retries?"}
    (receipt,) = [json.loads(said) for name, said in hooks.spooled() if name == "receipt"]
    assert (receipt["event"], receipt["session"]) == ("UserPromptSubmit", SESSION)
    assert [each[:5] for each in receipt["items"]] == [list(item.values())]


def test_the_worker_runs_commands_and_finds_hints_for_a_prompt(
    hooks: Hooks, workers: Workers, ctx: Ctx
) -> None:
    fact = "The scheduler retries every five minutes because the broker drops idle connections."
    assert ctx("add", "--type=decision", fact).code == 0
    workers.start()
    assert hooks.run("stop", hooks.event("stop", last_assistant_message=REMEMBER)) == NOTHING
    assert sorted(contents(ctx)) == ["Deploys run on Mondays.", "Money is in cents."]
    assert hooks.log() == []
    said = hooks.event("prompt-submit", prompt="Why does the scheduler retry every five minutes?")
    # The first time it has to load what it asks with.
    found = until(lambda: hooks.run("prompt-submit", said).out.decode().replace("{}\n", ""))
    assert fact in found
    until(lambda: not spool.pending_names(str(hooks.home)))
    assert hooks.run("prompt-submit", said) == NOTHING


# Starting


@pytest.fixture
def alone(hooks: Hooks, workers: Workers) -> Hooks:
    """Hooks that start a worker with a short idle time."""
    del hooks.environment["CTX_WORKER_AUTOSTART"]
    hooks.environment["CTX_WORKER_IDLE_SECONDS"] = "0.3"
    # The client is gone by then.
    hooks.environment["CLAUDE_PID"] = "99999999"
    return hooks


def test_a_hook_starts_the_worker(alone: Hooks, workers: Workers) -> None:
    alone.run("post-tool-use", alone.event("post-tool-use"))
    until(lambda: not spool.pending_names(str(alone.home)))
    until(lambda: "gone: idle" in workers.log())
    assert workers.log() == [f"started, version {__version__}", "gone: idle"]
    assert not (alone.home / spawn.MARK).exists()


def test_many_hooks_start_one_worker(alone: Hooks, workers: Workers) -> None:
    alone.environment["CTX_WORKER_IDLE_SECONDS"] = "20"

    def run(number: int) -> None:
        said = alone.event("post-tool-use", tool_use_id=f"toolu_{number}")
        assert alone.run("post-tool-use", said) == SILENT

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(16)))
    until(lambda: not spool.pending_names(str(alone.home)))
    assert len(workers.log()) == 1


def test_autostart_can_be_switched_off(alone: Hooks) -> None:
    (alone.home / "config.toml").write_text("[worker]\nautostart = false\n")
    assert alone.run("post-tool-use", alone.event("post-tool-use")) == SILENT
    alone.settle()
    assert not (alone.home / spawn.MARK).exists()
    assert len(alone.spooled()) == 1


def test_events_are_processed_by_their_own_store(
    surroundings: Path, folder: Path, ctx: Ctx, tmp_path: Path
) -> None:
    """The worker is not used for another one."""
    hooks = Hooks(surroundings / ".ctx", folder, CTX_WORKER_AUTOSTART="0")
    other = str(tmp_path / "other.db")
    hooks.run("post-tool-use", hooks.event("post-tool-use", session_id="mine"))
    hooks.environment["CTX_DB"] = other
    bell = WakePipe(str(hooks.home / spool.WAKE))
    told = {"session_id": "other", "last_assistant_message": REMEMBER}
    for word in ("post-tool-use", "stop", "prompt-submit"):
        hooks.run(word, hooks.event(word, **told))
    assert not bell.was_written()
    bell.close()
    hooks.settle()
    assert ctx("hook", "apply").code == 0
    assert ctx("--db", other, "hook", "apply").code == 0
    found = {}
    for path in (str(hooks.home / "store.db"), other):
        with closing(sqlite3.connect(path)) as connection:
            sessions = connection.execute("SELECT DISTINCT session FROM events").fetchall()
            facts = connection.execute("SELECT content FROM nodes WHERE type = 'fact'").fetchall()
            found[path] = (sessions, facts)
    assert found == {
        str(hooks.home / "store.db"): ([("mine",)], []),
        other: ([("other",)], [("Deploys run on Mondays.",)]),
    }
    assert not spool.pending_names(str(hooks.home))
    hooks.close()


def test_a_worker_is_started_without_a_session_and_folder(alone: Hooks, workers: Workers) -> None:
    """It belongs to no session, and does not keep a folder in use."""
    alone.environment |= {"CLAUDE_CODE_SESSION_ID": SESSION, "CTX_SESSION": "mine"}
    alone.environment["CTX_WORKER_IDLE_SECONDS"] = "20"
    alone.run("post-tool-use", alone.event("post-tool-use"))
    pid = until(lambda: workers.health() and workers.pid)
    if os.path.isdir("/proc"):
        told = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        names = {each.partition(b"=")[0] for each in told}
        assert names.isdisjoint({b"CLAUDE_CODE_SESSION_ID", b"CTX_SESSION", b"CLAUDE_PROJECT_DIR"})
        assert os.getsid(pid) == pid
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert os.getpriority(os.PRIO_PROCESS, pid) >= 5


# Pausing


def test_remember_commands_work_while_ctx_is_paused(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("pause").code == 0
    said = f"We decided to wait. {REMEMBER}"
    hooks.run("stop", hooks.event("stop", last_assistant_message=said))
    until(lambda: "Deploys run on Mondays." in contents(ctx))
    until(lambda: hooks.spooled() == [])
    with sqlite3.connect(hooks.home / "store.db") as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (0,)
    connection.close()


def test_events_are_not_stored_while_ctx_is_paused(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("pause").code == 0
    hooks.run("post-tool-use", hooks.event("post-tool-use"))
    hooks.run("stop", hooks.event("stop", last_assistant_message="Done."))
    hooks.run("prompt-submit", hooks.event("prompt-submit"))
    hooks.run("pre-compact", hooks.event("pre-compact"))
    ran = hooks.run("session-start", hooks.event("session-start"))
    assert "Money is in cents." in additional(ran)
    assert json.loads(ran.out)["systemMessage"].splitlines()[1:] == [
        "ctx: capture is paused here; `ctx resume` resumes it"
    ]
    # A process that a hook started may store the receipt of the context.
    hooks.settle()
    assert {name for name, _ in hooks.spooled()} <= {"receipt"}
    assert ctx("resume").code == 0
    hooks.run("post-tool-use", hooks.event("post-tool-use"))
    assert [name for name, _ in hooks.spooled() if name != "receipt"] == ["post-tool-use"]


def test_the_first_session_shows_a_notice_about_capture(hooks: Hooks) -> None:
    (hooks.home / "first-run").unlink()

    def system_message(session: str) -> str:
        ran = hooks.run("session-start", hooks.event("session-start", session_id=session))
        message: str = json.loads(ran.out)["systemMessage"]
        return message

    # Who captures nothing is told so once that changes.
    (hooks.home / "config.toml").write_text("[capture]\nenabled = false\n")
    assert system_message("none").splitlines()[1:] == []
    (hooks.home / "config.toml").unlink()
    assert system_message("first").splitlines()[1:] == [f"ctx: from now on, {notices.CAPTURED}"]
    assert system_message("second").splitlines()[1:] == []


def test_waiting_events_are_reported_at_the_start(hooks: Hooks) -> None:
    """The worker that would report it is the one that does not run."""
    old_ms = clock.now_ms() - 2 * 3_600_000
    spool.put(str(hooks.home), spool.new_id(old_ms), "stop", b"{}")
    ran = hooks.run("session-start", hooks.event("session-start"))
    assert json.loads(ran.out)["systemMessage"].splitlines()[1:] == [
        "ctx: events have been waiting for more than an hour; see `ctx doctor`"
    ]
