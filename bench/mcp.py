"""The MCP server: the time until `initialize` is answered, and the time of a warm `recall`.

The project has 10,000 files with an index and 10,000 nodes in its store. All servers run as hosts
start them, and are spoken to over their pipes.

Start: from the start of the process to the answer to `initialize`, in CPU time and wall-clock time.
The floor is a process that only imports the SDK; the limit is 0.3 s above it. Recall: from the
request to the answer, and the CPU time of the server. The floor is a `ping` over the same pipe. The
first calls are not counted.

    python -m bench mcp [ROUNDS]
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench import report, timing
from bench.memory import vocabulary
from bench.timing import Cost, Figure, more, ms
from ctx.ids import CLI_SESSION
from ctx.project.compaction import CompactionOptions
from tests.e2e.growing_project import WHO, open_project_memory

FILES = 10_000
NODES = 10_000
IN_A_COMMIT = 500
CTX = str(Path(sys.executable).with_name("ctx"))
WORDS_IN_A_NODE = (8, 40)
WORDS_IN_A_QUESTION = 6


def environment(home: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CTX_", "CLAUDE", "GIT_"))
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    people = {
        f"GIT_{role}_{field}": "a@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for field in ("NAME", "EMAIL")
    }
    return {**kept, **quiet, **people, "HOME": home, "CTX_HOME": f"{home}/.ctx"}


class Words:
    """Words as frequent as in ordinary text."""

    def __init__(self) -> None:
        self.rng = random.Random(11)
        self._words = vocabulary(self.rng)
        # By Zipf's law.
        self._weights = list(accumulate(1 / (place + 10) for place in range(len(self._words))))

    def some(self, count: int) -> list[str]:
        return self.rng.choices(self._words, cum_weights=self._weights, k=count)

    def sentence(self) -> str:
        return " ".join(self.some(self.rng.randint(*WORDS_IN_A_NODE)))


def make_project(space: str, words: Words) -> str:
    """A repository with an index of its code, and a project store with nodes."""
    root = Path(space, "shop")
    for number in range(FILES):
        path = root / f"area_{number % 20}" / f"part_{number // 100}" / f"m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_source(words, number))
    variables = environment(space)

    def run(*command: str) -> None:
        subprocess.run(command, cwd=root, env=variables, check=True, stdout=subprocess.DEVNULL)

    run("git", "init", "-q", "-b", "main")
    run("git", "add", ".")
    run("git", "commit", "-q", "-m", "Add the shop")
    run(CTX, "init", "--yes")
    run(CTX, "code", "index")
    with open_project_memory(root) as memory:
        for begin in range(0, NODES, IN_A_COMMIT):
            with memory.changing("add", WHO) as change:
                for _ in range(IN_A_COMMIT):
                    kind = words.rng.choice(("fact", "decision", "pattern"))
                    change.tag(change.add_node(kind, words.sentence()), "tier:reference")
            memory.commit(CompactionOptions(CLI_SESSION, f"Commit {begin}", "cli"))
    run(CTX, "rebuild")
    return str(root)


def _source(words: Words, number: int) -> str:
    first, second, argument = words.some(3)
    about = " ".join(words.some(12))
    return (
        f'"""{first} {second} of module {number}."""\n\n\n'
        f"def {first}_{second}({argument}: int) -> int:\n"
        f'    """{about}."""\n'
        f"    return {argument} + {number}\n"
    )


SDK = [sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio"]
ROUNDS = 5
CALLS = 8
"""Calls per round."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server process, and a host that speaks to it."""

    def __init__(self, root: str, variables: Mapping[str, str]) -> None:
        self._began = time.perf_counter()
        self._process = subprocess.Popen(
            [CTX, "mcp"], cwd=root, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        params = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self.ask("initialize", {**params, "clientInfo": {"name": "bench", "version": "1"}})
        self.start = Cost(self.cpu(), time.perf_counter() - self._began)
        self._write({"method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._write({"id": 1, "method": method, "params": params})
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())["result"]

    def recall(self, question: str) -> Cost:
        params = {"name": "recall", "arguments": {"query": question}}
        cpu, wall = self.cpu(), time.perf_counter()
        answer = self.ask("tools/call", params)
        assert answer["structuredContent"]["results"], answer
        return Cost(self.cpu() - cpu, time.perf_counter() - wall)

    def ping(self) -> Cost:
        cpu, wall = self.cpu(), time.perf_counter()
        self.ask("ping", {})
        return Cost(self.cpu() - cpu, time.perf_counter() - wall)

    def cpu(self) -> float:
        """Seconds of CPU time that the server has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def figures(root: str, variables: Mapping[str, str], words: Words, rounds: int) -> list[Figure]:
    def start() -> Cost:
        server = Server(root, variables)
        server.close()
        return server.start

    begun = timing.alternate(
        rounds,
        {"ours": start, "floor": partial(timing.of_child, SDK, environment=variables)},
    )

    def question() -> str:
        return " ".join(words.some(WORDS_IN_A_QUESTION))

    server = Server(root, variables)
    for _ in range(CALLS):
        server.recall(question())

    def calls() -> Cost:
        costs = [server.recall(question()) for _ in range(CALLS)]
        return Cost(*(sum(part) / CALLS for part in zip(*costs, strict=True)))

    asked = timing.alternate(rounds, {"recall": calls, "ping": server.ping})
    server.close()
    return [
        Figure(
            "from the start of the process to the answer to `initialize`, CPU",
            ms(begun.cpu("ours")),
            f"{ms(begun.cpu('floor'))} for importing the SDK",
            "",
            more(begun.cpu("ours") - begun.cpu("floor")),
            "+300 ms",
        ),
        Figure(
            "from the start of the process to the answer to `initialize`, wall",
            ms(begun.wall("ours")),
            f"{ms(begun.wall('floor'))} for importing the SDK",
            "",
            more(begun.wall("ours") - begun.wall("floor")),
        ),
        *(
            Figure(
                f"a warm `recall` over the pipe, {kind}",
                ms(call),
                f"{ms(ping)} for `ping`",
                limit="60 ms",
            )
            for kind, call, ping in (
                ("CPU", asked.cpu("recall"), asked.cpu("ping")),
                ("wall", asked.wall("recall"), asked.wall("ping")),
            )
        ),
    ]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as space:
        words = Words()
        root = make_project(space, words)
        lines = figures(root, environment(space), words, rounds)
    note = f"a project of {FILES:,} files and {NODES:,} nodes;"
    report.show("mcp", lines, f"{note} medians of {rounds} rounds, {CALLS} calls each")


if __name__ == "__main__":
    main()
