"""The cost of a hook in CPU time: whole processes, run as they are registered.

The floor of a hook that only stores an event is an empty interpreter. The floor of a hook that
answers from the store is an interpreter that imports `json` and `sqlite3`. Each round runs every
side once. `node -e 0` is shown for comparison, because hooks of many other tools start node. A
worker runs only for lines that say *woken*.

The store has 10,000 nodes, and so has the project's store for lines that say *in a project*. A
*ready* context was prepared before and is only returned. A *composed* context is made while the
agent waits, because memory has changed since. With *a server away*, the store syncs with a team's
server that accepts connections and answers nothing.

    python -m bench hooks [ROUNDS]
"""

import fcntl
import glob
import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

from bench import report, timing
from bench.memory import vocabulary
from bench.timing import Cost, Figure, ms, times
from ctx import ids
from ctx.agents.claude_code import registration
from ctx.agents.known_hosts import HOSTS
from ctx.hook_files import spool
from ctx.ids import CLI_SESSION, NodeId
from ctx.layout import UserStore
from ctx.memory import user_store
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.model import Evidence
from ctx.sync import target_settings
from ctx.sync.target_settings import SyncTarget
from ctx.worker.event_loop import WakePipe
from ctx.workspace import Environment, open_project

ROUNDS = 100
NODES = 10_000
TIERS = {"off-context": 6_480, "reference": 3_000, "working": 500, "pinned": 20}
TYPES = ("fact", "decision", "pattern", "observation")
PATIENCE_S = 60

PYTHON = [sys.executable, "-I", "-S"]
ENTRY = registration.ENTRY
CTX = str(Path(sys.executable).with_name("ctx"))

EMPTY = "python -I -S -c pass"
LOADED = 'python -I -S -c "import json, sqlite3"'
FLOORS = {
    EMPTY: [*PYTHON, "-c", "pass"],
    LOADED: [*PYTHON, "-c", "import json, sqlite3"],
}
COMMON = {
    "session_id": "5dd65eaa-e3b0-4b25-afae-79ee4238d2da",
    "prompt_id": "afe3b301-9428-4cb5-a132-a8249d3d4dd2",
    "permission_mode": "default",
}
SAID: dict[str, dict[str, Any]] = {
    "post-tool-use": {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make test", "description": "Run the tests"},
        "tool_response": {"stdout": "1,234 passed in 5.67s\n" * 40, "stderr": ""},
        "tool_use_id": "toolu_01",
        "duration_ms": 5_700,
    },
    "stop": {
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": "The tests pass now.",
    },
    "prompt-submit": {"hook_event_name": "UserPromptSubmit", "prompt": "Now the docs, please."},
    "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
}


class Bench:
    """A user with a large memory, in a repository."""

    def __init__(self, space: str) -> None:
        self.home = f"{space}/.ctx"
        self.folder = f"{space}/shop"
        self.environment = surroundings(space)
        os.makedirs(f"{self.folder}/.git")
        Path(self.folder, ".git", "HEAD").write_text("ref: refs/heads/main\n")
        self.database = f"{self.home}/store.db"
        self.build()
        transcript = f"{space}/transcript.jsonl"
        Path(transcript).write_text(f"{json.dumps({'type': 'user', 'text': 'x' * 400})}\n" * 400)
        for word, said in SAID.items():
            fields = {**COMMON, "transcript_path": transcript, "cwd": self.folder, **said}
            Path(self.event(word)).write_text(f"{json.dumps(fields)}\n")

    def build(self) -> None:
        with closing(user_store.open_for_writing(self.database)) as connection:
            fill(lambda: changing(Graph(connection), "import", ChangeAuthor("bench", "bench")))

    def event(self, word: str) -> str:
        return f"{self.folder}/{word}.json"

    def run(self, command: list[str], word: str) -> Cost:
        """Run with an empty spool, and as if no session had just started."""
        for pattern in ("spool/*-*", "live/*.start-*"):
            for path in glob.glob(f"{self.home}/{pattern}"):
                os.unlink(path)
        return timing.of_child(
            command, environment=self.environment, folder=self.folder, reads=self.event(word)
        )

    def run_entry(self, word: str) -> Cost:
        return self.run([*PYTHON, ENTRY, word], word)

    def wake(self, word: str) -> Cost:
        """The same with a listening worker."""
        bell = WakePipe(f"{self.home}/{spool.WAKE}")
        try:
            return self.run_entry(word)
        finally:
            bell.close()

    def compose(self) -> Cost:
        """Start a session after a change, which prepares a context for the next one."""
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("DELETE FROM contexts")
        cost = self.run_entry("session-start")
        self._wait_until_ready()
        return cost

    def _wait_until_ready(self) -> None:
        """Wait until the process that the hook started has ended: it would disturb others."""
        deadline = time.monotonic() + PATIENCE_S
        with closing(sqlite3.connect(self.database)) as connection:
            while not connection.execute("SELECT count(*) FROM contexts").fetchone()[0]:
                if time.monotonic() > deadline:
                    raise SystemExit("No context was made.")
                time.sleep(0.01)
        with open(f"{self.home}/spool/LOCK") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)


def surroundings(space: str) -> Mapping[str, str]:
    """This environment with a temporary home, without settings for ctx or from an agent."""
    ours = ("CTX_", "CLAUDE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {
        **kept,
        "HOME": space,
        "CTX_HOME": f"{space}/.ctx",
        "CTX_WORKER_AUTOSTART": "0",
    }


class BenchInProject(Bench):
    """The same in a project whose memory is as large."""

    def build(self) -> None:
        super().build()
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        self._run("git", "init", "-q")
        self._run(CTX, "init")
        place = Environment(
            self.folder, UserStore(self.home), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS
        )
        memory = open_project(place).memory
        with closing(memory):
            fill(lambda: memory.changing("import", ChangeAuthor(CLI_SESSION, "bench")))
        self._run(CTX, "commit", "-m", "What is known")
        self._run(CTX, "list")

    def _run(self, *command: str) -> None:
        subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, check=True
        )


class BenchWithServer(Bench):
    """The same, with a team's server that is away."""

    def __init__(self, space: str, url: str) -> None:
        self._url = url
        super().__init__(space)

    def build(self) -> None:
        super().build()
        store = UserStore(self.home)
        target = SyncTarget("team", "postgresql", self._url, ids.new_ulid(), False, "1m")
        target_settings.keep(store, target, {})


def fill(change_made: Callable[[], AbstractContextManager[Change]]) -> None:
    rng = random.Random(4)
    words = vocabulary(rng)
    tiers = [tier for tier, count in TIERS.items() for _ in range(count)]
    rng.shuffle(tiers)
    made: list[NodeId] = []
    while len(made) < NODES:
        with change_made() as change:
            for tier in tiers[len(made) : len(made) + 1_000]:
                text = " ".join(rng.choices(words, k=rng.randint(8, 60)))
                node_id = change.add_node(rng.choice(TYPES), text)
                change.tag(node_id, f"tier:{tier}")
                change.tag(node_id, f"project:{rng.choice(('shop', 'other', 'third'))}")
                if made:
                    change.link(node_id, rng.choice(made), "DEPENDS_ON", Evidence("bench"))
                made.append(node_id)


def figures(rounds: int, bench: Bench, in_project: Bench, with_server: Bench) -> list[Figure]:
    child = partial(timing.of_child, environment=bench.environment, folder=bench.folder)
    sides: dict[str, Callable[[], Cost]] = {
        name: partial(child, command) for name, command in FLOORS.items()
    }
    node = shutil.which("node")
    if node:
        sides["node -e 0"] = partial(child, [node, "-e", "0"])
    limits = {
        "`post-tool-use`: store an event": (EMPTY, "1.5 ×"),
        "`post-tool-use`: store an event and wake the worker": (EMPTY, "1.5 ×"),
        "`stop`: after an answer without commands": (EMPTY, "1.5 ×"),
        "`ctx hook post-tool-use`, as a command": (EMPTY, ""),
        "`prompt-submit`: nothing waits": (LOADED, ""),
        "`session-start`: return a prepared context": (LOADED, "2 ×"),
        "`session-start`: compose the context": (LOADED, "4 ×"),
        "`prompt-submit`, in a project": (LOADED, ""),
        "`session-start`: return a prepared context, in a project": (LOADED, "2 ×"),
        "`session-start`: compose the context, in a project": (LOADED, "4 ×"),
        "`post-tool-use`: store an event, a server away": (EMPTY, "1.5 ×"),
        "`session-start`: return a prepared context, a server away": (LOADED, "2 ×"),
    }
    ours: list[Callable[[], Cost]] = [
        partial(bench.run_entry, "post-tool-use"),
        partial(bench.wake, "post-tool-use"),
        partial(bench.run_entry, "stop"),
        partial(bench.run, [CTX, "hook", "post-tool-use"], "post-tool-use"),
        partial(bench.run_entry, "prompt-submit"),
        partial(bench.run_entry, "session-start"),
        bench.compose,
        partial(in_project.run_entry, "prompt-submit"),
        partial(in_project.run_entry, "session-start"),
        in_project.compose,
        partial(with_server.run_entry, "post-tool-use"),
        partial(with_server.run_entry, "session-start"),
    ]
    sides |= dict(zip(limits, ours, strict=True))
    # The first runs find no context, and compile bytecode.
    for side in reversed(sides.values()):
        side()
    cost = timing.alternate(rounds, sides)
    other = f"{ms(cost.cpu('node -e 0'))} for `node -e 0`" if node else ""
    return [
        Figure(
            name,
            ms(cost.cpu(name)),
            f"{ms(cost.cpu(floor))} for `{floor}`",
            other if floor == EMPTY else "",
            times(cost.cpu_ratio(name, floor)),
            limit,
        )
        for name, (floor, limit) in limits.items()
    ]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    made = partial(tempfile.TemporaryDirectory, ignore_cleanup_errors=True)
    # A process that drains the spool may still be running.
    with (
        made() as space,
        made() as other,
        made() as third,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        bench = Bench(space)
        size = os.path.getsize(bench.database)
        url = f"postgresql://anna@127.0.0.1:{silent.getsockname()[1]}/memory"
        lines = figures(rounds, bench, BenchInProject(other), BenchWithServer(third, url))
    note = f"CPU, medians of {rounds} rounds; a store of {NODES:,} nodes, {size / 1e6:.0f} MB"
    report.show("hooks", lines, note)


if __name__ == "__main__":
    main()
