"""A year of use: the size of the store, and whether a session still starts as fast.

250 days with 8 sessions of 150 events each, in four repositories, go through the spool, policy,
synthesis and learnings, in the same rounds that the worker runs. Only the clock is simulated. Then
a session is started alternately in the store of the year and in an empty one.

    python -m bench year [DAYS [ROUNDS]]
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench import report, timing
from bench.hooks import ENTRY, PYTHON, surroundings
from bench.timing import Cost, Figure, ms, times
from ctx import clock
from ctx.agents.known_hosts import HOSTS
from ctx.hook_files import spool
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations.worker_round import WorkerRounds
from ctx.workspace import Environment, open_memory

DAYS = 250
SESSIONS = 8
EVENTS = 150
ROUNDS = 60
PROJECTS = ("shop", "bank", "site", "tool")
LARGEST_STORE = 500_000_000
SLOWEST = 1.5
DAY_MS = 86_400_000
FIRST_MS = 1_760_000_000_000

VERBS = ("fix", "add", "rename", "explain", "speed up", "test", "simplify", "document")
THINGS = (
    "cart",
    "token",
    "parser",
    "queue",
    "report",
    "import",
    "login",
    "price",
    "index",
    "cache",
)


class Year:
    """A user who works with an agent every day."""

    def __init__(self, space: str, rng: random.Random) -> None:
        self.home = f"{space}/.ctx"
        self.environment = surroundings(space)
        self.rng = rng
        self.now_ms = FIRST_MS
        self.count = 0
        self.last_round = Cost(0, 0)
        self.folders = [f"{space}/{name}" for name in PROJECTS]
        for folder in self.folders:
            os.makedirs(folder)
            subprocess.run(["git", "init", "-q", folder], env=self.environment, check=True)

    def lives(self, days: int) -> None:
        here = Environment(
            self.folders[0], UserStore(self.home), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS
        )
        for day in range(days):
            self.now_ms = FIRST_MS + day * DAY_MS
            with moved_clock(lambda: self.now_ms), open_memory(here, writing=True) as memory:
                tending = WorkerRounds(self.home, _raises)
                for number in range(SESSIONS):
                    self.has_session(f"s{day:03d}-{number}")
                    self.last_round = timing.of_call(lambda: tending.round(memory))  # noqa: B023
            if sys.stderr.isatty():
                print(f"\r   day {day + 1} of {days}", end="", file=sys.stderr, flush=True)

    def has_session(self, session: str) -> None:
        folder = self.rng.choice(self.folders)
        self.says(session, folder, "session-start", {"source": "startup"})
        thing = self.rng.choice(THINGS)
        turns = 6
        for _ in range(turns):
            wish = f"Please {self.rng.choice(VERBS)} the {thing} in {thing}_{self.count % 40}.py"
            self.says(session, folder, "prompt-submit", {"prompt": wish})
            for _ in range((EVENTS - 2) // turns - 2):
                word, used = self.used_tool(folder, thing)
                self.says(session, folder, word, {"tool_use_id": f"toolu_{self.count}", **used})
            done = (
                f"I changed `{thing}_{self.count % 9}` in {thing}.py. It turns out that the {thing}"
                f" holds at most {self.count % 500} entries, because of the limit in {thing}.py."
            )
            self.says(session, folder, "stop", {"last_assistant_message": done})
        self.says(session, folder, "session-end", {"reason": "other"})

    def used_tool(self, folder: str, thing: str) -> tuple[str, dict[str, Any]]:
        """The name of a hook, and what a tool did."""
        path = f"{folder}/src/{thing}_{self.rng.randrange(40)}.py"
        name = f"{thing}_{self.count % 9}"
        command = {"command": f"pytest tests/test_{thing}.py"}
        draw = self.rng.random()
        if draw < 0.35:
            file = {"filePath": path, "content": source(name, 60), "numLines": 60}
            used = {"tool_name": "Read", "tool_input": {"file_path": path}}
            return "post-tool-use", {**used, "tool_response": {"file": file}}
        if draw < 0.55:
            old, new = f"return {name}", f"return {name} + {self.count}"
            change = {"file_path": path, "old_string": old, "new_string": new}
            before = {"originalFile": source(name, 60)}
            used = {"tool_name": "Edit", "tool_input": change}
            return "post-tool-use", {**used, "tool_response": before}
        used = {"tool_name": "Bash", "tool_input": command}
        if draw < 0.7:
            error = f"Exit code 1\n{failure(thing, self.count)}"
            return "post-tool-use-failure", {**used, "error": error}
        output = {"stdout": "." * 70 + "\n12 passed in 0.31s\n", "stderr": ""}
        return "post-tool-use", {**used, "tool_response": output}

    def says(self, session: str, folder: str, word: str, fields: Mapping[str, Any]) -> None:
        self.now_ms += 20_000
        self.count += 1
        common = {"session_id": session, "cwd": folder, "hook_event_name": spool.EVENTS[word]}
        event_id = f"{self.now_ms:013d}-1-{self.count:08x}"
        spool.put(self.home, event_id, word, json.dumps({**common, **fields}).encode())


def source(name: str, lines: int) -> str:
    body = "\n\n".join(
        f"def {name}_{n}(value):\n    if value > {n}:\n        return value\n    return {name}"
        for n in range(lines // 5)
    )
    return f'"""Source."""\n\n{name} = 1\n\n\n{body}\n'


def failure(thing: str, number: int) -> str:
    return (
        "=" * 30 + " FAILURES " + "=" * 30 + f"\n____ test_{thing} ____\n\n"
        f"    def test_{thing}():\n>       assert {thing}() == {number % 7}\n"
        f"E       assert {number % 5} == {number % 7}\n\ntests/test_{thing}.py:{number % 90}:"
        f" AssertionError\nFAILED tests/test_{thing}.py::test_{thing} - assert {number % 5}\n"
        "1 failed, 11 passed in 0.40s\n"
    )


@contextmanager
def _raises(_part: str) -> Iterator[None]:
    yield


@contextmanager
def moved_clock(now_ms: Callable[[], int]) -> Iterator[None]:
    """Replace the clock by a simulated one."""
    real = clock.now_ms, clock.now_s, clock.wall_ms, clock.wall_s, clock.wall_ns
    clock.now_ms = clock.wall_ms = now_ms
    clock.now_s = clock.wall_s = lambda: now_ms() // 1000
    clock.wall_ns = lambda: now_ms() * 1_000_000
    try:
        yield
    finally:
        clock.now_ms, clock.now_s, clock.wall_ms, clock.wall_s, clock.wall_ns = real


def starts(home: str, folder: str, environment: Mapping[str, str]) -> Cost:
    """Start a session in a process, as it is registered."""
    for path in Path(home, "live").glob("*.start-*"):
        path.unlink()
    fields = {"session_id": "new", "cwd": folder, "hook_event_name": "SessionStart"}
    event = f"{folder}/../event.json"
    Path(event).write_text(json.dumps({**fields, "source": "startup"}))
    return timing.of_child(
        [*PYTHON, ENTRY, "session-start"], environment=environment, folder=folder, reads=event
    )


def main() -> None:
    days = int(sys.argv[1]) if sys.argv[1:] else DAYS
    rounds = int(sys.argv[2]) if sys.argv[2:] else ROUNDS
    with tempfile.TemporaryDirectory() as space, tempfile.TemporaryDirectory() as other:
        year = Year(space, random.Random(7))
        began = time.perf_counter()
        year.lives(days)
        seconds = time.perf_counter() - began
        empty = Year(other, random.Random(7))
        quiet = {"CTX_WORKER_AUTOSTART": "0"}
        here = Environment(
            empty.folders[0], UserStore(empty.home), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS
        )
        with open_memory(here, writing=True):
            pass
        sides = {"year": year, "empty": empty}
        for each in sides.values():
            # The process that drains the spool also prepares the context.
            environment = {**each.environment, **quiet}
            starts(each.home, each.folders[0], environment)
            apply = [str(Path(sys.executable).with_name("ctx")), "hook", "apply"]
            subprocess.run(
                apply,
                env=environment,
                cwd=each.folders[0],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        timed = timing.alternate(
            rounds,
            {
                name: lambda each=each: starts(  # type: ignore[misc]
                    each.home, each.folders[0], {**each.environment, **quiet}
                )
                for name, each in sides.items()
            },
        )
        show_figures(year, timed, days, seconds)


def show_figures(year: Year, timed: timing.Rounds, days: int, seconds: float) -> None:
    size = sum(Path(f"{year.home}/store.db{end}").stat().st_size for end in ("", "-wal"))
    print(f"{seconds:.0f} s, {year.count / seconds:,.0f} events a second")
    note = f"{days} days, {_count(year.home, 'sessions'):,} sessions, {year.count:,} events,"
    note += f" {_count(year.home, 'nodes'):,} nodes"
    limit = f"{LARGEST_STORE / 1e6:.0f} MB"
    report.show(
        "year",
        [
            Figure("size of the store", f"{size / 1e6:.0f} MB", limit=limit),
            Figure(
                "`session-start`, wall",
                ms(timed.wall("year")),
                f"{ms(timed.wall('empty'))} in an empty store",
                ratio=times(timed.wall_ratio("year", "empty")),
                limit=f"{SLOWEST} ×",
            ),
            Figure(
                "`session-start`, CPU",
                ms(timed.cpu("year")),
                f"{ms(timed.cpu('empty'))} in an empty store",
                ratio=times(timed.cpu_ratio("year", "empty")),
            ),
            Figure(
                "the worker's round after the last session, CPU", f"{year.last_round.cpu:.2f} s"
            ),
        ],
        note,
    )


def _count(home: str, table: str) -> int:
    with closing(sqlite3.connect(f"file:{home}/store.db?mode=ro", uri=True)) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found


if __name__ == "__main__":
    main()
