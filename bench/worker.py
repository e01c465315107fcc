"""The worker: its idle memory, its speed, and that it loses nothing.

*Idle* is a worker that has finished all work and has no vectors loaded. *Searchable* is the time
from the end of a Stop hook, which nobody waits for, until `ctx search` finds what was decided in
that answer. *Drained* is the time from the start of a worker until everything in the spool is in
the store and has become steps.

The last line is `tests/e2e/test_event_delivery.py` with ten times as many events: eight processes
report events, workers are killed 0 to 1 s after their first event, and a quarter of them have no
disk space.

    python -m bench worker [EVENTS]
"""

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench import report
from bench.timing import Figure
from ctx import clock
from ctx.hook_files import spool
from tests.agents.claude_code.hook_processes import command
from tests.e2e.event_delivery import PROCESSES, expected_uses, remembered, stored_results, storm
from tests.worker.worker_processes import Workers, until

EVENTS = 20_000
HOOKS = 400
DRAINED = 1_000
TURNS = 5
SEED = 8
CTX = str(Path(sys.executable).with_name("ctx"))


@contextmanager
def built_from_scratch(**environment: str) -> Iterator[tuple[Workers, Path]]:
    """A user with a repository and an empty memory."""
    with tempfile.TemporaryDirectory() as space:
        folder = Path(space, "shop")
        folder.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        workers = Workers(Path(space, ".ctx"), **environment)
        try:
            yield workers, folder
        finally:
            workers.close()


def payload(folder: Path, name: str, **fields: object) -> bytes:
    common = {"session_id": "bench", "cwd": str(folder), "hook_event_name": name}
    return json.dumps({**common, **fields}).encode()


def idle() -> Figure:
    with built_from_scratch() as (workers, folder):
        began = time.monotonic()
        workers.start()
        started = time.monotonic() - began
        hook(workers, "stop", payload(folder, "Stop", last_assistant_message="Done."))
        until(lambda: (workers.health() or {}).get("last_stored"))
        health = workers.health() or {}
    print(f"the worker answers {started:.2f} s after its start")
    return Figure("idle worker, resident memory", f"{health['memory_mb']:.0f} MB", limit="80 MB")


def drained() -> Figure:
    with built_from_scratch() as (workers, folder):
        workers.start().kill()
        for number in range(DRAINED):
            fields = payload(
                folder,
                "PostToolUse",
                tool_name="Bash",
                tool_use_id=f"toolu_{number}",
                tool_input={"command": f"make part-{number}"},
                tool_response={"stdout": f"part {number} is made\n" * 20, "stderr": ""},
            )
            spool.put(str(workers.home), spool.new_id(clock.now_ms()), "post-tool-use", fields)
        until(lambda: workers.pid is None)
        began = time.monotonic()
        workers.spawn()
        # Asking the worker itself would slow it down.
        with closing(sqlite3.connect(workers.store.database)) as connection:
            until(lambda: _taken(connection) == DRAINED)
        seconds = time.monotonic() - began
    print(f"{DRAINED / seconds:,.0f} events a second, including the start of the worker")
    name = f"{DRAINED:,} events in the spool, from the start of a worker to steps, wall"
    return Figure(name, f"{seconds:.2f} s", limit="3 s")


def _taken(connection: sqlite3.Connection) -> int:
    sql = "SELECT count(*) FROM events WHERE status <> 'new'"
    count: int = connection.execute(sql).fetchone()[0]
    return count


def searchable() -> Figure:
    with built_from_scratch() as (workers, folder):
        workers.start()
        hook(workers, "session-start", payload(folder, "SessionStart", source="startup"))
        took = [_seconds_until_found(workers, folder, f"wxyz{number}") for number in range(TURNS)]
    name = "from the end of an agent's answer (Stop hook) until search finds it, wall"
    return Figure(name, f"{statistics.median(took):.2f} s", limit="2 s")


def _seconds_until_found(workers: Workers, folder: Path, word: str) -> float:
    answer = f"We decided to use {word} because nothing else keeps its promises."
    prompt = payload(folder, "UserPromptSubmit", prompt=f"What do we use instead of {word[::-1]}?")
    hook(workers, "prompt-submit", prompt)
    hook(workers, "stop", payload(folder, "Stop", last_assistant_message=answer))
    began = time.monotonic()
    until(lambda: word in _searched(workers, folder, word))
    return time.monotonic() - began


def _searched(workers: Workers, folder: Path, word: str) -> str:
    words = [CTX, "search", word, "--format=json"]
    ran = subprocess.run(
        words, env=workers.environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return str([node["content"] for node in json.loads(ran.stdout)["nodes"]])


def hook(workers: Workers, word: str, fields: bytes) -> None:
    environment = {**workers.environment, "CLAUDE_PID": str(os.getpid())}
    subprocess.run(
        command(word), input=fields, env=environment, stdout=subprocess.DEVNULL, check=True
    )


def nothing_lost(events: int) -> Figure:
    with built_from_scratch() as (workers, folder):
        done = storm(workers, folder, events, HOOKS, SEED)
        found = stored_results(workers)
    each = events // PROCESSES
    wanted = set().union(*(expected_uses(number, each) for number in range(PROCESSES)))
    facts = set().union(*(remembered(number, each) for number in range(PROCESSES)))
    once = len(found.written & wanted) - len(found.twice)
    is_whole = found.remembered == sorted(facts) and found.items == len(wanted)
    is_whole &= (found.waiting, found.failed, found.left) == (0, 0, {})
    name = f"events from {PROCESSES} processes while {done.kills} workers are killed,"
    name += f" {done.full} of them on a full disk: stored exactly once, with their effects"
    effects = "" if is_whole else ", and their effects are incomplete"
    return Figure(name, f"{once:,} of {len(wanted):,}{effects}", limit="all")


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    report.show("worker", [searchable(), drained(), idle()])
    report.show("worker-kills", [nothing_lost(events)])


if __name__ == "__main__":
    main()
