"""The overhead of using a model: reading a prompt again, the ledger, and the token estimate.

*Fresh*, *kept* and *restored* are the same question about a pack, sent to a llama.cpp server that
has read nothing, that has just read the pack, and that was restarted since. The floor is the same
completion by plain HTTP, with nothing saved, restored or recorded; after a restart, a fresh one.

A call in the ledger is a reservation and its settlement: two durable writes. The floor is two small
files, each synced.

The estimate is compared with the tokens of the server's model, a small English one. Other models
need fewer tokens for other scripts.

Needs `make clients`.

    python -m bench llm [ROUNDS]
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import report, timing
from bench.timing import Figure
from ctx import tokens
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.llama_cpp.llama_backend import LlamaCpp
from ctx.llm.prices import Prices
from ctx.llm.protocol import Answer, Request, Usage, ignore
from ctx.llm.retry import RetryPolicy
from tests.llm import llama

ROUNDS = 3
FUNCTIONS = 8
CALLS = 200
PROCESSES = 8
HERE = Path(__file__).parent.parent
SYSTEM = "You are a careful engineer. Answer from the context that you are given."
PATIENCE = RetryPolicy(silence_s=120, retries=0)
CALLER = ModelTarget("llama_cpp", "http://127.0.0.1", "model")


# Reading a prompt


class Took(NamedTuple):
    whole_s: float
    """The time that a user waits, including what is saved after the answer."""
    prompt_s: float
    evaluated: int


class Asking:
    """The same question about a pack, sent in two ways."""

    def __init__(self, server: llama.Server, space: Path) -> None:
        self._server = server
        self._states = space / "llm"
        self._ledger = Ledger(str(space / "ledger.db"))
        self._number = 0

    def close(self) -> None:
        self._ledger.close()

    def ours(self) -> Took:
        backend = LlamaCpp(self._server.url, "default", "", PATIENCE, str(self._states))
        meter = self._ledger.meter(Purpose("llm"), CALLER, Caps(10**9), Prices(()))
        began = time.perf_counter()
        answer: Answer = backend.ask(self._question(), meter, ignore)
        whole = time.perf_counter() - began
        backend.close()
        assert answer.usage
        assert answer.cache
        evaluated = answer.usage.input_tokens - answer.usage.cached_tokens
        return Took(whole, answer.cache.prompt_ms / 1000, evaluated)

    def plain(self) -> Took:
        question = self._question()
        messages = [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.prompt},
        ]
        prompt = self._server.post("/apply-template", {"messages": messages})["prompt"]
        body = {"prompt": prompt, "n_predict": question.max_tokens, "cache_prompt": True}
        began = time.perf_counter()
        timings = self._server.post("/completion", body)["timings"]
        whole = time.perf_counter() - began
        return Took(whole, timings["prompt_ms"] / 1000, timings["prompt_n"])

    def forget(self) -> None:
        """Bring the server into the state after a restart."""
        self._server.forget()

    def forget_all(self) -> None:
        """Clear the state of the server and what ctx stores about it."""
        self.forget()
        for path in self._states.glob("slots-*.json"):
            path.unlink()

    def _question(self) -> Request:
        self._number += 1
        pack = "".join(
            f"def charge_{number}(order):\n    return order.total * rates[{number}]\n"
            for number in range(FUNCTIONS)
        )
        asked = f"Which rate does charge_{self._number % FUNCTIONS} take?"
        return Request(SYSTEM, ("## Context\n\n", pack, asked), 4, 0.0)


def reading(server: llama.Server, space: Path, rounds: int) -> list[Figure]:
    asking = Asking(server, space)
    fresh, kept, restored = (
        f"ask a llama.cpp server {state}"
        for state in ("for the first time", "again", "again after it was restarted")
    )
    took: dict[str, list[tuple[Took, Took]]] = {fresh: [], kept: [], restored: []}
    for _ in range(rounds):
        asking.forget_all()
        plain = asking.plain()
        plain_again = asking.plain()
        asking.forget_all()
        took[fresh].append((asking.ours(), plain))
        took[kept].append((asking.ours(), plain_again))
        asking.forget()
        took[restored].append((asking.ours(), plain))
    asking.close()
    return [
        _figure(f"{state}: {what}", [(get(ours), get(floor)) for ours, floor in pairs], show)
        for state, pairs in took.items()
        for what, get, show in (
            ("the question, wall", _whole_s, timing.ms),
            ("prompt processing, wall", _prompt_s, timing.ms),
            ("tokens read", _evaluated, "{:.0f}".format),
        )
    ]


_whole_s = attrgetter("whole_s")
_prompt_s = attrgetter("prompt_s")
_evaluated = attrgetter("evaluated")


def _figure(
    name: str, pairs: Sequence[tuple[float, float]], show: Callable[[float], str]
) -> Figure:
    ours, floor = (median(side) for side in zip(*pairs, strict=True))
    ratio = median(mine / theirs for mine, theirs in pairs)
    return Figure(name, show(ours), f"{show(floor)} by plain HTTP", ratio=timing.times(ratio))


# The ledger


def call_often(path: str, calls: int) -> float:
    """The median time in seconds of a reservation with its settlement."""
    took = []
    with Ledger(path) as ledger:
        meter = ledger.meter(Purpose("llm"), CALLER, Caps(10**12), Prices(()))
        for _ in range(calls):
            began = time.perf_counter()
            meter.reserve(4_000, 1_000).settle(Usage(1_000, 200), "model")
            took.append(time.perf_counter() - began)
    return median(took)


def sync_twice(folder: Path, rounds: int) -> float:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        for name in ("one", "two"):
            fd = os.open(folder / name, os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"x" * 100)
            os.fsync(fd)
            os.close(fd)
        took.append(time.perf_counter() - began)
    return median(took)


def keeping(space: Path) -> list[Figure]:
    path = str(space / "many.db")
    alone = call_often(path, CALLS)
    floor = sync_twice(space, CALLS)
    command = [sys.executable, "-m", "bench.llm", "--calls", path]
    began = time.perf_counter()
    children = [
        subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    medians = [float(child.communicate()[0]) for child in children]
    whole = time.perf_counter() - began
    assert all(child.returncode == 0 for child in children)
    with Ledger(path) as ledger:
        [(kept,)] = ledger.connection.execute("SELECT count(*) FROM calls WHERE state = 'done'")
    assert kept == CALLS * (PROCESSES + 1)
    return [
        Figure(
            "reserve and record one model call in the ledger, wall",
            timing.ms(alone),
            f"{timing.ms(floor)} for two small synced files",
        ),
        Figure(f"the same, {PROCESSES} processes at once, wall", timing.ms(median(medians))),
        Figure(f"{CALLS * PROCESSES:,} calls of {PROCESSES} processes, wall", f"{whole:.1f} s"),
    ]


# The estimate


CHINESE = "服务器会记住它已经读过的内容，因此下一个问题会更快得到回答。"
JAPANESE = "サーバーは読んだ内容を覚えているので、次の質問にはもっと早く答えます。"
RUSSIAN = "Сервер помнит то, что он уже прочитал, поэтому следующий ответ придёт раньше. "
EMOJI = "🎉 done ✅ 🚀 👩‍👩‍👧 "


def texts() -> Mapping[str, str]:
    def joined(pattern: str, suffix: str) -> str:
        paths = sorted(path for path in HERE.glob(pattern) if path.suffix == suffix)
        return "\n".join(path.read_text(errors="replace") for path in paths)[:60_000]

    return {
        "English": joined("docs/*.md", ".md"),
        "Python": joined("src/ctx/operations/*.py", ".py"),
        "Rust": joined("tests/golden/code/**/*.rs", ".rs"),
        "TypeScript": joined("tests/golden/code/**/*.ts", ".ts"),
        "JSON": joined("tests/golden/**/*.json", ".json"),
        "Chinese": CHINESE * 50,
        "Japanese": JAPANESE * 50,
        "Russian": RUSSIAN * 50,
        "emoji": EMOJI * 50,
    }


def estimating(server: llama.Server, space: Path) -> list[Figure]:
    backend = LlamaCpp(server.url, "default", "", PATIENCE, str(space))
    figures = []
    for kind, text in texts().items():
        guess, counted = tokens.estimate(text), backend.count(text)
        figures.append(
            Figure(
                f"tokens of {kind}, {len(text) / 1000:.0f} kB",
                f"{guess:,}",
                f"{counted:,}",
                ratio=timing.times(guess / counted),
            )
        )
    backend.close()
    return figures


@contextmanager
def served() -> Iterator[tuple[llama.Server, Path]]:
    with tempfile.TemporaryDirectory() as space, llama.running(Path(space, "server")) as server:
        yield server, Path(space)


def main() -> int:
    if sys.argv[1:2] == ["--calls"]:
        print(call_often(sys.argv[2], CALLS))
        return 0
    if reason := llama.missing():
        print(reason)
        return 1
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    with served() as (server, space):
        kind = server.get("/props")["model_ftype"]
        read, kept = reading(server, space, rounds), keeping(space)
        estimated = estimating(server, space)
    report.print_figures(estimated)
    report.show("llm", read, f"SmolLM2, 135 million parameters, {kind}, one thread")
    report.show("llm-ledger", kept)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
