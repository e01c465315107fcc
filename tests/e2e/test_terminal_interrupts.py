"""Ctrl-C from a terminal, as a person presses it: while a command starts, waits, asks, and works
with other processes."""

import fcntl
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctx.interrupts import NOTHING_STORED
from ctx.layout import project_at
from tests import effort
from tests.conftest import Ctx
from tests.e2e.terminals import Running

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="there is no /proc to look into"
)

RUNS = effort.times(6)
"""`bench/interrupts.py` does more."""


def is_quiet(shown: str) -> bool:
    return "Traceback" not in shown and "Exception" not in shown


def interrupt_at_random(ctx: Ctx, runs: int, chance: random.Random) -> set[int]:
    """Interrupt a command repeatedly, once or twice each, and return the exit codes."""
    began = time.monotonic()
    assert Running("add", "--type=fact", "One.").end() == 0
    seconds = time.monotonic() - began
    codes = set()
    for run in range(runs):
        running = Running("add", "--type=fact", f"Fact {run}.")
        running.wait_until_handling()
        time.sleep(chance.uniform(0, seconds))
        running.interrupt()
        if run % 2:
            time.sleep(chance.uniform(0, seconds / 10))
            running.interrupt()
        code = running.end()
        codes.add(code)
        assert code in (0, 130), running.shown
        assert is_quiet(running.shown), running.shown
        stored = ctx("search", f"Fact {run}", "--format=json").json["nodes"]
        is_stored = any(each["content"] == f"Fact {run}." for each in stored)
        assert is_stored is (code == 0), (code, running.shown)
    return codes


def test_a_command_can_be_interrupted_at_random_times(ctx: Ctx) -> None:
    assert interrupt_at_random(ctx, RUNS, random.Random(5)) <= {0, 130}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_can_be_interrupted_while_it_waits_for_the_lock(
    folder: Path, surroundings: Path, ctx: Ctx, number: int, code: int
) -> None:
    assert ctx("init").code == 0
    with open(project_at(str(folder)).lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        running = Running("add", "--type=fact", "One.", CTX_PATIENCE="20")
        running.wait_for(lambda: running.has_open(str(surroundings / ".ctx" / "store.db")))
        # Now it waits for the lock, or is about to.
        running.interrupt(number)
        assert running.end() == code
    assert running.shown == f"{NOTHING_STORED}\n"


@pytest.fixture
def holder(surroundings: Path, ctx: Ctx) -> Iterator[sqlite3.Connection]:
    """The connection of another process that writes to the user store for a long time."""
    assert ctx("add", "--type=fact", "One.").code == 0
    store = surroundings / ".ctx" / "store.db"
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_a_command_can_be_interrupted_while_it_waits_for_another_writer(
    holder: sqlite3.Connection, surroundings: Path
) -> None:
    running = Running("add", "--type=fact", "Two.")
    running.wait_for(lambda: running.has_open(str(surroundings / ".ctx" / "store.db")))
    running.interrupt()
    # SQLite waits until the other writer ends or the time limit has passed.
    holder.execute("ROLLBACK")
    assert running.end() == 130
    assert running.shown == f"{NOTHING_STORED}\n"


def test_a_command_can_be_interrupted_at_a_question(ctx: Ctx) -> None:
    assert ctx("add", "--type=fact", "One.").code == 0
    running = Running("forget", "One", on_terminal=True)
    running.wait_for_text("[y/N] ")
    running.interrupt()
    assert running.end() == 130
    assert running.shown.endswith(f"[y/N] \n{NOTHING_STORED}\n")
    assert len(ctx("list", "--format=json").json["nodes"]) == 1


def test_a_command_can_be_interrupted_at_a_question_after_it_stored(ctx: Ctx, folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    assert ctx("add", "--type=fact", "One.").code == 0
    running = Running("init", on_terminal=True)
    running.wait_for_text("[y/N] ")
    running.interrupt()
    assert running.end() == 0
    assert running.shown.startswith("Created a project store")
    assert ctx("list").out.split()[4] == "user"


JUST_BEFORE_IT_BLOCKS = """
import ctypes, functools, operator, select, signal
send = functools.partial(getattr(ctypes.CDLL(None), "raise"), int(signal.SIGINT))
wait = select.select
# No Python code runs between the signal and the wait, so that no handler runs between them.
select.select = lambda *args: [*map(operator.call, [send, functools.partial(wait, *args)])][1]
"""


def test_a_command_can_be_interrupted_just_before_it_waits_for_an_answer(
    ctx: Ctx, tmp_path: Path
) -> None:
    assert ctx("add", "--type=fact", "One.").code == 0
    (tmp_path / "sitecustomize.py").write_text(JUST_BEFORE_IT_BLOCKS)
    running = Running("forget", "One", on_terminal=True, PYTHONPATH=str(tmp_path))
    assert running.end() == 130
    assert running.shown.endswith(f"[y/N] \n{NOTHING_STORED}\n")


@pytest.mark.parametrize(
    ("script", "code", "content"),
    [
        ("kill -INT $$", 130, "One."),
        ("exit 130", 130, "One."),
        ("trap '' INT; kill -INT -- -$(ps -o pgid= $$ | tr -d ' '); echo Two. > \"$1\"", 0, "Two."),
    ],
    ids=["it ends the editor", "the editor says so", "the editor goes on"],
)
def test_a_command_can_be_interrupted_in_the_editor(
    ctx: Ctx, tmp_path: Path, script: str, code: int, content: str
) -> None:
    node_id = ctx("add", "--type=fact", "One.").out.split()[1]
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    running = Running("edit", node_id, EDITOR=str(editor))
    assert running.end() == code, running.shown
    assert is_quiet(running.shown), running.shown
    assert ctx("show", node_id, "--format=json").json["node"]["content"] == content
    assert (running.shown == f"{NOTHING_STORED}\n") is (code == 130)


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def test_processes_that_parse_code_are_interrupted_too(repo: Path, ctx: Ctx) -> None:
    for number in range(150):
        (repo / f"m{number}.py").write_text("def f():\n    return g()\n" * 200)
    running = Running("code", "index")
    started: set[int] = set()

    def has_several() -> bool:
        started.update(children(running.pid))
        return len(children(running.pid)) > 1

    running.wait_for(has_several)
    running.interrupt()
    code = running.end()
    assert code == 130, running.shown
    assert running.shown == f"{NOTHING_STORED}\n"
    # They had the end of the pipe that was read here, so it took until they were gone.
    assert not [each for each in started if os.path.exists(f"/proc/{each}")]
    assert ctx("code", "index").code == 0


def test_the_worker_in_a_terminal_ends_quietly(surroundings: Path) -> None:
    running = Running("worker", "run")
    running.wait_for_text("stop it with Ctrl-C.\n")
    running.wait_for(lambda: (surroundings / ".ctx" / "worker.sock").exists())
    running.interrupt()
    assert running.end() == 0
    assert is_quiet(running.shown), running.shown


def test_a_command_that_ignores_the_signal_continues(ctx: Ctx) -> None:
    """As with `nohup`, or in the background of a script."""
    running = subprocess.Popen(
        [sys.executable, "-m", "ctx", "add", "--type=fact", "--stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    running.send_signal(signal.SIGINT)
    running.communicate(b"One.")
    assert running.returncode == 0
    assert [each["content"] for each in ctx("list", "--format=json").json["nodes"]] == ["One."]
