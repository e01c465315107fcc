"""Eight processes report events while the worker is killed repeatedly, and results are counted.

`python -m tests.e2e.event_delivery HOME FOLDER NUMBER EVENTS HOOKS` is one of those that report:
the first events through real hooks, the rest as a hook would, without the start of an interpreter.
"""

import json
import os
import random
import resource
import select
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ctx import clock
from ctx.hook_files import spool
from tests.agents.claude_code.hook_processes import command
from tests.worker.worker_processes import Workers, until

PROCESSES = 8
_REMEMBERED = 40
"""Of so many events one is an answer with a command in it."""
_GROWN = 600_000
"""How large a file may become on a disk that is full."""


class Storm(NamedTuple):
    kills: int
    full: int
    """Workers that had no room on the disk."""
    seconds: float


class StoredResults(NamedTuple):
    """The content of the store afterwards."""

    written: set[str]
    """The events by which something was written, by tool use."""
    twice: list[str]
    """Those of them that are there more than once."""
    steps: int
    items: int
    """Items of code that sessions have made."""
    remembered: list[str]
    waiting: int
    failed: int
    left: dict[str, int]
    """Events by status, without steps and dropped events."""


def expected_uses(number: int, count: int) -> set[str]:
    return {f"toolu_{number}_{each}" for each in range(count) if each % _REMEMBERED}


def remembered(number: int, count: int) -> set[str]:
    return {_fact(number, each) for each in range(0, count, _REMEMBERED)}


def _fact(number: int, each: int) -> str:
    return f"Fact {each} of session {number} is kept once."


def storm(workers: Workers, folder: Path, events: int, hooks: int, seed: int) -> Storm:
    """Report all events, kill workers meanwhile, and let a last one finish."""
    rng = random.Random(seed)
    began = clock.monotonic()
    program = [sys.executable, "-m", "tests.e2e.event_delivery", str(workers.home), str(folder)]
    numbers = [str(events // PROCESSES), str(hooks // PROCESSES)]
    reporting = [
        subprocess.Popen(
            [*program, str(each), *numbers],
            env=workers.environment,
            cwd=Path(__file__).parents[2],
        )
        for each in range(PROCESSES)
    ]
    kills = full = 0
    try:
        while any(each.poll() is None for each in reporting) or spool.pending_names(
            str(workers.home)
        ):
            has_room = kills % 4 != 1
            full += not has_room
            _work_and_die(workers, rng.uniform(0, 1), has_room=has_room)
            kills += 1
    finally:
        for process in reporting:
            process.kill()
            process.wait()
    assert [each.returncode for each in reporting] == [0] * PROCESSES
    workers.start()
    until(lambda: (workers.health() or {}).get("new") == 0, 300)
    return Storm(kills, full, clock.monotonic() - began)


def _work_and_die(workers: Workers, seconds: float, *, has_room: bool) -> None:
    before = _stored(workers)
    process = workers.spawn(preexec_fn=None if has_room else _little_room)
    # One without room may never get anything done.
    gives_up = clock.monotonic() + (60 if has_room else 1)
    while process.poll() is None and clock.monotonic() < gives_up and _stored(workers) == before:
        select.select([], [], [], 0.005)
    select.select([], [], [], seconds)
    process.kill()
    process.wait()


def _little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_GROWN, _GROWN))


def _stored(workers: Workers) -> int:
    try:
        with closing(_connection(workers)) as connection:
            count: int = connection.execute("SELECT count(*) FROM events").fetchone()[0]
    except sqlite3.Error:
        return 0
    return count


def _connection(workers: Workers) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{workers.store.database}?mode=ro", uri=True)


def stored_results(workers: Workers) -> StoredResults:
    home = str(workers.home)
    with closing(_connection(workers)) as connection:

        def rows(sql: str) -> list[Any]:
            return connection.execute(sql).fetchall()

        uses = rows("SELECT tool_use, count(*) FROM events WHERE tool_use <> '' GROUP BY 1")
        statuses = dict(rows("SELECT status, count(*) FROM events GROUP BY status"))
        facts = rows("SELECT content FROM nodes WHERE type = 'fact'")
        items = rows("SELECT count(*) FROM symbol_changes WHERE change = 'new'")[0][0]
    steps = statuses.pop("step", 0)
    statuses.pop("dropped", 0)
    return StoredResults(
        written={use for use, _ in uses},
        twice=[use for use, count in uses if count > 1],
        steps=steps,
        items=items,
        remembered=sorted(content for (content,) in facts),
        waiting=len(spool.pending_names(home)),
        failed=len(spool.failed_names(home)),
        left=statuses,
    )


def _report(home: str, folder: str, number: int, events: int, hooks: int) -> None:
    for each in range(events):
        word, said = _event(folder, number, each)
        if each < hooks:
            subprocess.run(command(word), input=said, check=True, stdout=subprocess.DEVNULL)
            continue
        kind = word if word != spool.STOP else f"{spool.STOP}.-"
        spool.put(home, spool.new_id(clock.now_ms()), kind, said, durable=word == spool.STOP)
        spool.wake(home)


def _event(folder: str, number: int, each: int) -> tuple[str, bytes]:
    said: dict[str, Any]
    common = {"session_id": f"session-{number}", "cwd": folder, "prompt_id": f"p{each}"}
    if each % _REMEMBERED == 0:
        text = f'<ctx:remember type="fact">{_fact(number, each)}</ctx:remember>'
        said = {"hook_event_name": "Stop", "last_assistant_message": text}
        return "stop", json.dumps({**common, **said}).encode()
    path = os.path.join(folder, f"part_{number}_{each}.py")
    content = f"def made_{number}_{each}() -> int:\n    return {each}\n"
    said = {
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": path, "content": content},
        "tool_response": {"type": "create", "filePath": path, "content": content},
        "tool_use_id": f"toolu_{number}_{each}",
    }
    return "post-tool-use", json.dumps({**common, **said}).encode()


if __name__ == "__main__":
    _report(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
