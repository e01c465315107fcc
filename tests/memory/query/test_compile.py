"""The compiled statements: their plans are stable, and they stop early."""

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from random import Random

import pytest

from ctx.memory import model
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope, compile_count, compile_query
from ctx.memory.query.query_parser import DEEPEST, MOST_FILTERS, parse
from tests.memory.query import oracle
from tests.memory.query.oracle import NOW_MS, Graph, Node

SCOPES = (Scope(), Scope(True), Scope(project="shop", task="auth"))
QUERIES = (
    model.DEFAULT_QUERY,
    "type:fact",
    "type:fact AND tag:tier:reference AND NOT tag:kind:bugfix",
    "(tag:plain OR tag:task:db) AND type:fact AND NOT type:task",
    "(type:fact AND tag:plain) OR (has:edges AND tag:task:db)",
    " OR ".join(f"tag:{number}" for number in range(20)),
    "tag:task:*",
    "tag:project:*",
    "created:>24h AND tag:plain",
    "created:>1y",
    "updated:2026-01-19",
    "tokens:>100 has:summary",
    "NOT tag:plain",
    "from:01KF OR to:01KF",
    "session:s1",
    "path:src/app AND type:fact",
    "id:01KF AND NOT path:src/*.py",
    "has:superseded",
    "refresh token",
    "refresh tag:plain created:>24h",
)


def store(size: int) -> sqlite3.Connection:
    random = Random(1)
    ids = [f"01KF{number:022d}" for number in range(size)]
    nodes = {
        node_id: Node(
            node_id,
            random.choice(("fact", "fact", "decision", "task")),
            " ".join(random.choices(oracle.WORDS, k=5)),
            None,
            10,
            ids[0] if random.random() < 0.1 else None,
            oracle.iso(NOW_MS // 1000 - 60 * (size - number)),
            oracle.iso(NOW_MS // 1000 - 60 * (size - number)),
            {},
            frozenset(random.sample(oracle.TAGS, 3)),
        )
        for number, node_id in enumerate(ids)
    }
    edges = [(random.choice(ids), random.choice(ids), "MENTIONS") for _ in range(3 * size)]
    return oracle.database(Graph(nodes, edges, [("s1", node_id) for node_id in ids]))


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    made = store(3000)
    yield made
    made.close()


def plans(connection: sqlite3.Connection) -> list[list[str]]:
    found = []
    for text in QUERIES:
        for scope in SCOPES:
            for compiled in (compile_query, compile_count):
                statement = compiled(parse(text), scope, NOW_MS)
                rows = connection.execute(
                    f"EXPLAIN QUERY PLAN {statement.sql}", statement.parameters
                )
                found.append([text, *(row[3] for row in rows)])
    return found


def test_statistics_do_not_change_a_plan() -> None:
    connection = store(300)
    before = plans(connection)
    connection.execute("ANALYZE")
    # What was measured is read when a database is opened.
    connection.execute("ANALYZE sqlite_master")
    assert plans(connection) == before
    connection.close()


def steps(
    connection: sqlite3.Connection,
    ask: Callable[[], execute.Matches | Iterator[object]],
    limit: int | None,
) -> int:
    """The work of SQLite for the first ids, in tens of instructions."""
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(step, 10)
    found = ask()
    for _ in islice(found.ids if isinstance(found, execute.Matches) else found, limit):
        pass
    connection.set_progress_handler(None, 0)
    return taken


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        model.DEFAULT_QUERY,
        "type:fact",
        "type:fact AND NOT tag:plain",
        "(type:fact AND tag:plain) OR tag:task:db",
        "tag:project:*",
        "created:>1y",
        "NOT tag:plain",
        "has:edges",
    ],
)
def test_the_first_ids_need_little_work(text: str, connection: sqlite3.Connection) -> None:
    asked = ([connection], parse(text))
    for scope in SCOPES:
        # Running a statement already looks for its first row.
        matching = partial(execute.matching, *asked, scope, NOW_MS)
        assert 10 * steps(connection, matching, 5) < steps(connection, matching, None)
        in_tiers = partial(execute.in_tiers, *asked, scope, NOW_MS)
        assert 10 * steps(connection, in_tiers, 5) < steps(connection, in_tiers, None)


def test_a_count_reads_only_the_shortest_list() -> None:
    connection = store(2_000)
    connection.execute(
        "INSERT INTO tags SELECT id, 'task:rare', created_at FROM nodes WHERE type = 'fact' LIMIT 3"
    )

    def counted(text: str) -> tuple[int, int]:
        total = execute.count([connection], parse(text), Scope(), NOW_MS)
        ask = partial(execute.count, [connection], parse(text), Scope(), NOW_MS)
        return total, steps(connection, lambda: iter([ask()]), None)

    facts, work = counted("type:fact")
    # In tens of instructions: one step of an index for each node.
    assert facts > 500
    assert work < facts
    assert counted("type:fact AND tag:task:rare") < (4, work // 10)
    connection.close()


@pytest.mark.slow
def test_the_largest_allowed_query_runs_in_sqlite() -> None:
    connection = store(5)
    leaves = (
        "type:fact tag:a tag:a* created:>24h updated:<1w tokens:>1 has:edges has:superseded"
        " from:01KF to:01KF session:s1 path:src/* id:01KF"
    ).split()
    many = [leaves[number % len(leaves)] for number in range(MOST_FILTERS)]
    texts = [" OR ".join([leaf] * MOST_FILTERS) for leaf in leaves[1::2]]
    texts += [" AND ".join(many), " OR ".join(many), " AND NOT ".join(many)]
    texts += [f"NOT ({' OR '.join(many)})", f"NOT ({' AND '.join(many)})"]
    texts.append(f"x {' '.join(many)}")
    for leaf in leaves:
        nested = leaf
        for level in range(DEEPEST):
            nested = f"{leaf} {'AND' if level % 2 else 'OR'} NOT ({nested})"
        texts.append(nested)
    for text in texts:
        query = parse(text)
        next(execute.matching([connection], query, SCOPES[2], NOW_MS).ids, None)
        next(execute.in_tiers([connection], query, SCOPES[2], NOW_MS), None)
        statement = compile_count(query, SCOPES[2], NOW_MS)
        connection.execute(f"EXPLAIN {statement.sql}", statement.parameters).fetchone()
    connection.close()


def test_in_one_of_many_projects_only_its_nodes_are_looked_up() -> None:
    connection = store(2_000)
    connection.execute("DELETE FROM tags WHERE tag >= 'project:' AND tag < 'project;'")
    connection.execute(
        "INSERT INTO tags SELECT id, 'project:p' || (rowid % 20), created_at FROM nodes"
    )
    connection.execute("INSERT OR IGNORE INTO tags SELECT id, 'tier:reference', '' FROM nodes")
    asked = [connection], parse(f"tag:{model.REFERENCE}")
    one = partial(execute.in_tiers, *asked, Scope(project="p3"), NOW_MS)
    matches = list(one())
    assert 50 < len(matches) <= 100
    # In tens of instructions: all tiers are read, but superseded nodes are not merged with them.
    assert steps(connection, one, None) < 6 * 2_000
    connection.close()
