"""Memory of basic-memory and mem0 beside ctx: the same turns, the same questions.

Each turn of a conversation becomes one memory, as in `python -m bench recall`, and each question is
a search for ten. R@10 is the share of the evidence among them. A tool runs in one process with its
data on disk, and each turn is added by one call. The CPU time of a call is that of this process.

No model is asked: mem0 stores the turns as they are (`infer=False`). Both tools embed text with a
model from the network, so they get the vectors of ctx's own table instead, from a server on
loopback. basic-memory uses them only if its Python can load extensions of SQLite. The time for
computing them is not in the CPU time of the tools. mem0 embeds a turn when it is added; ctx embeds
what is new later, in its worker or before a search, and that is not in its time for adding.
"""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from statistics import median
from typing import NamedTuple, Protocol

from bench import recall, report, timing
from bench.conversations import FIRST, Case, History
from bench.peers import processes
from bench.peers.driven import Driven, driven
from bench.peers.installs import BASIC_MEMORY, MEM0
from bench.peers.loopback import serving
from bench.peers.table_embeddings import TableEmbeddings
from bench.timing import Cost, ms
from ctx import terms
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations import add
from ctx.packs import node_vectors
from ctx.workspace import Environment, Memory, open_memory

SEED = 5


class Found(NamedTuple):
    cost: Cost
    units: Sequence[str]


class MemoryTool(Protocol):
    """A memory that takes texts and finds them again."""

    label: str

    def add(self, unit: str, text: str) -> Cost: ...

    def search(self, case: Case) -> Found: ...


class DrivenMemory:
    """A tool in another interpreter."""

    def __init__(self, label: str, tool: Driven) -> None:
        self.label, self._tool = label, tool

    def add(self, unit: str, text: str) -> Cost:
        return self._tool.ask(do="add", unit=unit, text=text).cost

    def search(self, case: Case) -> Found:
        answer = self._tool.ask(do="search", text=case.question, limit=FIRST)
        return Found(answer.cost, answer.found)


class CtxMemory:
    """Turns are added one by one to a store of their own; the search runs where they have dates."""

    label = "ctx"

    def __init__(self, added: Memory, imported: Memory) -> None:
        self._added = added
        self._answer = recall.ours(imported, with_vectors=True)

    def add(self, unit: str, text: str) -> Cost:
        options = add.Options(text, "observation", metadata={"unit": unit})
        return timing.of_call(lambda: add.add(self._added, options))

    def search(self, case: Case) -> Found:
        cpu, wall = time.process_time(), time.perf_counter()
        units = self._answer(case)
        return Found(Cost(time.process_time() - cpu, time.perf_counter() - wall), units)


@contextmanager
def basic_memory(embeddings: TableEmbeddings, address: str) -> Iterator[DrivenMemory]:
    more = {
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_PROVIDER": "openai",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL": "static",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_API_BASE": address,
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_API_KEY": "none",
        "BASIC_MEMORY_SEMANTIC_EMBEDDING_DIMENSIONS": str(embeddings.dimensions),
        "OPENAI_API_KEY": "none",
    }
    with (
        processes.temporary_home() as home,
        driven(BASIC_MEMORY, "basic_memory_driver.py", home, more) as tool,
    ):
        yield DrivenMemory(BASIC_MEMORY.label, tool)


@contextmanager
def mem0(embeddings: TableEmbeddings, address: str) -> Iterator[DrivenMemory]:
    more = {
        "OPENAI_BASE_URL": address,
        "OPENAI_API_KEY": "none",
        "BENCH_DIMENSIONS": str(embeddings.dimensions),
        "MEM0_TELEMETRY": "False",
    }
    with processes.temporary_home() as home, driven(MEM0, "mem0_driver.py", home, more) as tool:
        yield DrivenMemory(MEM0.label, tool)


@contextmanager
def ctx_memory(history: History) -> Iterator[CtxMemory]:
    with tempfile.TemporaryDirectory() as folder, recall.filled(history) as imported:
        node_vectors.fill(imported)
        place = Environment(folder, UserStore(folder), {}, (), CLI_SESSION)
        with open_memory(place, writing=True) as added:
            yield CtxMemory(added, imported)


class Measured(NamedTuple):
    added: list[Cost]
    searched: list[Cost]
    scores: list[float]

    def extend(self, new: "Measured") -> None:
        self.added.extend(new.added)
        self.searched.extend(new.searched)
        self.scores.extend(new.scores)


def opening(history: History, turns: int) -> History:
    """The first turns of a conversation, and the questions whose evidence is among them."""
    entries = history.entries[:turns]
    units = {entry["unit"] for entry in entries}
    return History(history.name, entries, [case for case in history.cases if case.wanted <= units])


def sample(history: History, most: int) -> list[Case]:
    """Some of the questions that have an answer, the same ones in every run."""
    cases = [case for case in history.cases if case.wanted]
    return random.Random(SEED).sample(cases, min(most, len(cases)))


def measure(tool: MemoryTool, history: History, cases: Sequence[Case]) -> Measured:
    added = [tool.add(entry["unit"], entry["content"]) for entry in history.entries]
    searched, scores = [], []
    for case in cases:
        found = tool.search(case)
        searched.append(found.cost)
        scores.append(score(case, found.units))
    return Measured(added, searched, scores)


def compare(name: str, histories: Sequence[History], questions: int, command: str) -> None:
    """Print the figures over all histories; each has a store of its own."""
    figures: dict[str, Measured] = {}
    baseline: list[float] = []
    embeddings = TableEmbeddings()
    for history in histories:
        cases = sample(history, questions)
        bm25 = recall.bm25(history, terms.stem)
        baseline += [score(case, bm25(case)) for case in cases]
        with serving(embeddings.answer) as address:
            tools: tuple[AbstractContextManager[MemoryTool], ...] = (
                ctx_memory(history),
                basic_memory(embeddings, address),
                mem0(embeddings, address),
            )
            for opened in tools:
                with opened as tool:
                    known = figures.setdefault(tool.label, Measured([], [], []))
                    known.extend(measure(tool, history, cases))
    turns = sum(len(history.entries) for history in histories)
    title = f"{name}, {turns:,} turns, {len(baseline)} questions"
    tools_measured = list(figures.values())
    rows = [
        [f"{title}, R@{FIRST}", _recall(baseline)]
        + [_recall(each.scores) for each in tools_measured],
        [f"{name}, add a turn, CPU; wall", ""] + [_middle(each.added) for each in tools_measured],
        [f"{name}, search, CPU; wall", ""] + [_middle(each.searched) for each in tools_measured],
    ]
    columns = ["development questions", "BM25 with stems", *figures]
    table = report.Table(f"peers-memory-{name.lower()}", columns, rows)
    report.show_table(table, command)


def score(case: Case, units: Sequence[str]) -> float:
    return len(case.wanted.intersection(units[:FIRST])) / len(case.wanted)


def _recall(scores: Sequence[float]) -> str:
    low, high = recall.interval(scores)
    mean = 100 * sum(scores) / len(scores)
    return f"{mean:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _middle(costs: Sequence[Cost]) -> str:
    cpu, wall = median(each.cpu for each in costs), median(each.wall for each in costs)
    return f"{ms(cpu)}; {ms(wall)}"
