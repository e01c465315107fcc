"""The memory graph on a large store: 100,000 nodes, 300,000 edges, 400,000 tags.

Each query runs in this process, as its command runs it, and the answer is loaded as a command shows
it. The floor is one plain `SELECT` of the nodes in the answer by their ids. The baseline is a
direct query on the same tables: `LIKE` over the content for words, a join and a sort for filters.

A whole `ctx list --limit 20` process is also compared with `python -c pass`, in CPU time.

    python -m bench memory [STORE]

With a path, the store is kept there and reused by the next run.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from sqlite3 import Connection
from statistics import median
from typing import NamedTuple

from bench import report, timing
from bench.timing import Figure, more, ms
from ctx import clock, ids
from ctx.ids import CLI_SESSION, NodeId
from ctx.layout import UserStore
from ctx.memory import user_store, walk
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.graphs import Graphs
from ctx.memory.model import Evidence
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse, parse_words
from ctx.operations import compose, status
from ctx.operations.list import Options as ListOptions
from ctx.operations.list import list_nodes
from ctx.operations.query import find
from ctx.operations.visible_nodes import VisibleNodes
from ctx.workspace import Environment, Memory

NODES, EDGES_EACH = 100_000, 3
ROUNDS = 15
LIMIT = "50 ms"
COMMAND = "python -m bench memory"
TWO_YEARS_MS = 2 * 365 * 86_400_000
WHO = ChangeAuthor("bench", "bench")
TYPES = {"fact": 30, "observation": 25, "source": 15, "decision": 10, "pattern": 10, "summary": 10}
TIERS = {"off-context": 69_480, "reference": 30_000, "working": 500, "pinned": 20}


class Question(NamedTuple):
    name: str
    ask: Callable[[], list[NodeId]]
    baseline: Callable[[], object] | None = None
    limit: str = LIMIT


def build(path: str) -> None:
    rng = random.Random(3)
    graph = Graph(user_store.open_for_writing(path))
    words = vocabulary(rng)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    tiers = [tier for tier, count in TIERS.items() for _ in range(count)]
    rng.shuffle(tiers)
    types = rng.choices(list(TYPES), list(TYPES.values()), k=NODES)
    now = clock.now_ms()
    made: list[NodeId] = []
    while len(made) < NODES:
        with changing(graph, "import", WHO) as change:
            for _ in range(2_000):
                number = len(made)
                text = " ".join(rng.choices(words, weights, k=rng.randint(8, 60)))
                # Spread over two years: recent nodes are a small part.
                at = now - (NODES - number) * TWO_YEARS_MS // NODES
                times = clock.iso(at), clock.iso(at)
                name = NodeId(ids.derived_ulid(at, f"bench {number}"))
                node_id = change.add_node(types[number], text, node_id=name, times=times)
                change.tag(node_id, f"tier:{tiers[number]}")
                change.tag(node_id, f"project:p{int(rng.triangular(0, 20, 0))}")
                change.tag(node_id, f"task:t{rng.randrange(500)}")
                change.tag(node_id, f"topic:{rng.randrange(200)}")
                for near in rng.sample(range(max(0, number - 2_000), number), min(3, number)):
                    kind = rng.choice(("DEPENDS_ON", "DERIVED_FROM", "RELATES_TO"))
                    change.link(node_id, made[near], kind, Evidence("bench"))
                made.append(node_id)
        print(f"\r  {len(made):,} nodes", end="", flush=True)
    print()
    graph.connection.close()


def vocabulary(rng: random.Random) -> list[str]:
    """Words and names as in notes about code, the most frequent first."""
    parts = [
        first + second
        for first in ("re", "pro", "con", "tra", "lo", "ma", "sto", "que", "fi", "de", "in", "pa")
        for second in ("ken", "ble", "ter", "ry", "che", "nd", "sh", "ct", "dex", "ge", "lt", "se")
    ]
    plain = [rng.choice(parts) + rng.choice(["", *parts]) for _ in range(3_000)]
    names = [f"{rng.choice(parts)}{rng.choice(parts).capitalize()}" for _ in range(1_000)]
    return list(dict.fromkeys([*plain, *names]))


def questions(memory: Memory) -> Iterator[Question]:
    graph, connection = memory.graph, memory.user.connection
    words = vocabulary(random.Random(3))
    common, usual, rare = words[5], words[200], words[2_000]
    anything = Scope()

    def query_by_filters(text: str, limit: int = 20) -> Callable[[], list[NodeId]]:
        return lambda: [node.id for node in find(graph, parse(text), anything, limit).nodes]

    def searched(text: str) -> Callable[[], list[NodeId]]:
        return lambda: [node.id for node in find(graph, parse_words(text), anything, 20).nodes]

    def liked(*asked: str) -> Callable[[], object]:
        like = " AND ".join("content LIKE ?" for _ in asked)
        sql = f"SELECT id FROM nodes WHERE {like} ORDER BY created_at DESC LIMIT 20"
        return lambda: connection.execute(sql, [f"%{word}%" for word in asked]).fetchall()

    def joined(where: str) -> Callable[[], object]:
        sql = f"SELECT n.* FROM nodes n {where} ORDER BY n.created_at DESC, n.id LIMIT 20"
        return lambda: connection.execute(sql).fetchall()

    tag = "JOIN tags t ON t.node_id = n.id WHERE t.tag = '{}'"
    recent = "SELECT id FROM nodes ORDER BY id LIMIT 1 OFFSET (SELECT count(*) * 9 / 10 FROM nodes)"
    some = connection.execute(recent).fetchone()[0]
    yield Question(
        "`list --limit 20`",
        lambda: [node.id for node in list_nodes(memory, ListOptions()).nodes],
        joined(""),
    )
    yield Question(
        '`query "tag:task:t7 AND type:fact"`',
        query_by_filters("tag:task:t7 AND type:fact"),
        joined(tag.format("task:t7") + " AND n.type = 'fact'"),
    )
    yield Question(
        '`query "tag:topic:9 AND NOT has:summary AND created:>90d"`',
        query_by_filters("tag:topic:9 AND NOT has:summary AND created:>90d"),
        joined(tag.format("topic:9") + " AND n.summary IS NULL"),
    )
    yield Question("`query created:>24h`", query_by_filters("created:>24h"))
    yield Question(
        '`query "type:fact AND created:>7d"`', query_by_filters("type:fact AND created:>7d")
    )
    yield Question(
        '`query "(type:decision OR type:pattern) AND tag:topic:3"`',
        query_by_filters("(type:decision OR type:pattern) AND tag:topic:3"),
        joined(tag.format("topic:3") + " AND n.type IN ('decision', 'pattern')"),
    )
    yield Question("`query to:ID`", query_by_filters(f"to:{some[:12]}"))
    yield Question(
        "`query type:fact`, the first 20",
        query_by_filters("type:fact"),
        joined("WHERE n.type = 'fact'"),
    )
    yield Question(
        "`query tag:tier:reference`, the first 20",
        query_by_filters("tag:tier:reference"),
        joined(tag.format("tier:reference")),
    )
    for about, asked in (
        ("1 rare word, in", (rare,)),
        ("1 frequent word, in", (common,)),
        ("2 words, the rarest in", (usual, rare)),
        ("3 words, the rarest in", (common, usual, rare)),
        ("4 words, the rarest in", (common, words[20], usual, words[300])),
        ("5 words, the rarest in", (common, words[8], words[20], words[40], words[90])),
    ):
        name = f"`search`, {about} {_count(graph, asked):,} nodes"
        yield Question(name, searched(" ".join(asked)), liked(*asked))
    yield Question("`trace`, provenance of a node", lambda: _traced(graph, some))
    yield Question("`trace --reverse`", lambda: _traced(graph, some, reverse=True))
    yield Question("`related --depth 2`", lambda: [r.id for r in walk.related(graph, [some], 2)])
    options = compose.Options(budget=50_000)
    yield Question("`compose`, 50,000 tokens", lambda: _composed(memory, options))
    mine = options._replace(visible=VisibleNodes(project="p3"))
    yield Question(
        "`compose`, 50,000 tokens, inside one of 20 projects", lambda: _composed(memory, mine)
    )
    yield Question("`status`", lambda: _counted(memory), limit="")


def _count(graph: Graphs, asked: tuple[str, ...]) -> int:
    return min(find(graph, parse_words(word), Scope(), 1).total for word in asked)


def _counted(memory: Memory) -> list[NodeId]:
    status.status(memory, new=False)
    return []


def _traced(graph: Graphs, node_id: NodeId, *, reverse: bool = False) -> list[NodeId]:
    return [step.id for step in walk.trace(graph, node_id, reverse=reverse, limit=1_000)]


def _composed(memory: Memory, options: compose.Options) -> list[NodeId]:
    return [node.id for node in compose.compose(memory, options).context.nodes]


def floor(connection: Connection, node_ids: list[NodeId]) -> object:
    """Read the answer by its ids."""
    part = list(islice(dict.fromkeys(node_ids), 5_000))
    places = ", ".join("?" * len(part))
    sql = f"SELECT * FROM nodes WHERE id IN ({places})"
    return connection.execute(sql, part).fetchall()


def wall(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    work()
    return median(timing.of_call(work).wall for _ in range(rounds))


def figures(memory: Memory) -> list[Figure]:
    lines = []
    for question in questions(memory):
        answer = question.ask()
        ours = wall(question.ask)
        least = wall(partial(floor, memory.user.connection, answer)) if answer else 0.0
        plain = ms(wall(question.baseline, 5)) if question.baseline else ""
        lines.append(Figure(question.name, ms(ours), ms(least), plain, "", question.limit))
    return lines


def whole_process(path: str) -> Figure:
    ctx = os.path.join(os.path.dirname(sys.executable), "ctx")
    environment = {**os.environ, "CTX_DB": path}
    sides = {
        "ours": partial(timing.of_child, [ctx, "list", "--limit", "20"], environment=environment),
        "floor": partial(timing.of_child, [sys.executable, "-c", "pass"]),
    }
    cost = timing.alternate(21, sides)
    ours, least = cost.cpu("ours"), cost.cpu("floor")
    name = f"`ctx list --limit 20` on {NODES:,} nodes, whole process, CPU"
    floor = f"{ms(least)} for `python -c pass`"
    return Figure(name, ms(ours), floor, "", more(ours - least), "+60 ms")


def run(path: str) -> None:
    if not os.path.exists(path):
        started = time.perf_counter()
        build(path)
        print(f"  made in {time.perf_counter() - started:.0f} s")
    surroundings = Environment(
        os.path.dirname(path), UserStore(os.path.dirname(path)), {}, (), CLI_SESSION, path
    )
    with closing(user_store.open_for_reading(path)) as connection:
        lines = figures(Memory(Graph(connection), None, surroundings, "bench"))
    note = f"wall time, medians of {ROUNDS}; the store has {os.path.getsize(path) / 1e6:.0f} MB"
    report.show("memory", lines, note, COMMAND)
    report.show("memory-process", [whole_process(path)], "", COMMAND)


def main() -> None:
    if len(sys.argv) > 1:
        run(os.path.abspath(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        run(os.path.join(folder, "store.db"))


if __name__ == "__main__":
    main()
