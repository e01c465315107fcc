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
from itertools import cycle
from pathlib import Path
from typing import Any

from bench import timing
from bench.timing import Cost, Figure, ms
from ctx.ids import CLI_SESSION
from ctx.project.compaction import CompactionOptions
from tests.e2e.growing_project import WHO, open_project_memory

FILES = 10_000
NODES = 10_000
IN_A_COMMIT = 500
CTX = str(Path(sys.executable).with_name("ctx"))
VERBS = "open close read write parse send receive retry cancel flush merge split load store".split()
NOUNS = (
    "connection session token cache queue index header packet record ledger invoice payment"
    " customer order schema cursor socket timer buffer branch commit widget report filter".split()
)
WORDS = (
    "timeout jitter gateway deadline budget proxy cookie nonce quota replica shard lease"
).split()


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


def make_project(space: str) -> str:
    """A repository with an index of its code, and a project store with nodes."""
    rng = random.Random(11)
    root = Path(space, "shop")
    for number in range(FILES):
        path = (
            root
            / f"{rng.choice(NOUNS)}s"
            / f"{rng.choice(VERBS)}_{number // 200}"
            / f"m{number}.py"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_source(rng, number))
    variables = environment(space)

    def run(*words: str) -> None:
        subprocess.run(words, cwd=root, env=variables, check=True, stdout=subprocess.DEVNULL)

    run("git", "init", "-q", "-b", "main")
    run("git", "add", ".")
    run("git", "commit", "-q", "-m", "Add the shop")
    run(CTX, "init", "--yes")
    run(CTX, "code", "index")
    with open_project_memory(root) as memory:
        for begin in range(0, NODES, IN_A_COMMIT):
            with memory.changing("add", WHO) as change:
                for number in range(begin, begin + IN_A_COMMIT):
                    node = change.add_node(
                        rng.choice(("fact", "decision", "pattern")), _sentence(rng, number)
                    )
                    change.tag(node, "tier:reference")
            memory.commit(CompactionOptions(CLI_SESSION, f"Commit {begin}", "cli"))
    run(CTX, "recall", "timeout")
    return str(root)


def _source(rng: random.Random, number: int) -> str:
    verb, noun, other = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    return (
        f'"""The {noun} of module {number}: {rng.choice(WORDS)} and {rng.choice(WORDS)}."""\n\n\n'
        f"def {verb}_{noun}_{number}({other}: int) -> int:\n"
        f'    """{verb.capitalize()} the {noun} before the {rng.choice(WORDS)} of the {other}."""\n'
        f"    {rng.choice(WORDS)} = {other} + {number}\n    return {other}\n"
    )


def _sentence(rng: random.Random, number: int) -> str:
    return (
        f"We {rng.choice(VERBS)} the {rng.choice(NOUNS)} with a {rng.choice(WORDS)} of {number},"
        f" because the {rng.choice(NOUNS)} {rng.choice(VERBS)}s its {rng.choice(WORDS)} twice a"
        f" {rng.choice(NOUNS)}; see ticket {number % 997}."
    )


SDK = [sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio"]
QUESTIONS = (
    "how do we retry the payment with jitter",
    "gateway timeout of the session",
    "flush the ledger before the deadline",
    "parse_invoice cookie nonce",
    "merge the cursor of the schema",
)
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


def figures(root: str, variables: Mapping[str, str], rounds: int) -> list[Figure]:
    def start() -> Cost:
        server = Server(root, variables)
        server.close()
        return server.start

    begun = timing.alternate(
        rounds,
        {"ours": start, "floor": partial(timing.of_child, SDK, environment=variables)},
    )
    server = Server(root, variables)
    questions = cycle(QUESTIONS)
    for _ in QUESTIONS * 2:
        server.recall(next(questions))

    def calls() -> Cost:
        costs = [server.recall(next(questions)) for _ in range(CALLS)]
        return Cost(*(sum(part) / CALLS for part in zip(*costs, strict=True)))

    asked = timing.alternate(rounds, {"recall": calls, "ping": server.ping})
    server.close()
    above = begun.cpu("ours") - begun.cpu("floor")
    return [
        Figure(
            "start to initialize, CPU",
            ms(begun.cpu("ours")),
            ms(begun.cpu("floor")),
            "",
            f"+{ms(above)}",
            "+300 ms",
        ),
        Figure(
            "start to initialize, wall",
            ms(begun.wall("ours")),
            ms(begun.wall("floor")),
            "",
            f"+{ms(begun.wall('ours') - begun.wall('floor'))}",
        ),
        Figure("warm recall, CPU", ms(asked.cpu("recall")), ms(asked.cpu("ping")), "", "", "60 ms"),
        Figure("warm recall, wall", ms(asked.wall("recall")), ms(asked.wall("ping"))),
    ]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as space:
        root = make_project(space)
        lines = figures(root, environment(space), rounds)
    load = os.getloadavg()[0]
    print(
        f"medians of {rounds} rounds, {CALLS} calls each; load {load:.1f} on {os.cpu_count()} cores"
    )
    timing.print_table(lines)


if __name__ == "__main__":
    main()
