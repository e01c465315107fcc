"""The database answers random queries as plain Python does, in every scope."""

from itertools import islice
from random import Random
from sqlite3 import Connection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.memory import model
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope, compile_query, words_of
from ctx.memory.query.conditions import Dialect
from ctx.memory.query.query_parser import Query, parse
from tests import effort, engines
from tests.memory.query import oracle
from tests.memory.query.oracle import NOW_MS, Graph, Node, Question

pytestmark = pytest.mark.usefixtures("engine")

GRAPHS = effort.times(18)
QUERIES_PER_GRAPH = 60
SEEDS_ON_A_SERVER = range(effort.times(3))
QUERIES_ON_A_SERVER = 15


def random_scope(random: Random) -> Scope:
    return Scope(
        include_superseded=random.random() < 0.3,
        project=random.choice([None, "shop", "bank", "none"]),
        task=random.choice([None, None, "auth", "db"]),
    )


def is_in_scope(node: Node, query: Query, scope: Scope) -> bool:
    """Whether a scope includes a node, apart from its project."""
    asks = "has:superseded" in query.text
    if node.superseded_by is not None and not (scope.include_superseded or asks):
        return False
    tasks = {tag for tag in node.tags if tag.startswith("task:")}
    is_other_work = model.WORKING in node.tags and tasks and f"task:{scope.task}" not in tasks
    return query.names_task or not (scope.task is not None and is_other_work)


def in_project(node: Node, query: Query, scope: Scope) -> bool:
    projects = {tag for tag in node.tags if tag.startswith("project:")}
    names_one = any(start in query.text for start in ("project:", '"project:'))
    return (
        scope.project is None
        or names_one
        or not projects - {f"project:{scope.project}"}
        or (f"project:{scope.project}" in projects)
    )


@settings(max_examples=GRAPHS, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32))
@pytest.mark.sqlite
def test_filters_match_as_in_the_oracle(seed: int) -> None:
    check_filters(seed, QUERIES_PER_GRAPH)


@pytest.mark.parametrize("seed", SEEDS_ON_A_SERVER)
def test_filters_match_as_in_the_oracle_on_both_engines(seed: int) -> None:
    check_filters(seed, QUERIES_ON_A_SERVER)


def check_filters(seed: int, queries: int) -> None:
    random = Random(seed)
    graph = oracle.random_graph(random)
    connection = oracle.database(graph, random.sample(list(graph.nodes), len(graph.nodes)))
    if random.random() < 0.5:
        connection.execute("ANALYZE")
    for _ in range(queries):
        question = oracle.random_question(random, graph)
        query, scope = parse(question.text), random_scope(random)
        assert query.mode == "filters", question.text
        within = [
            node
            for node in sorted(graph.nodes.values(), reverse=True)
            if question.means(node, graph) and is_in_scope(node, query, scope)
        ]
        expected = [node for node in within if in_project(node, query, scope)]
        ids = [node.id for node in expected]
        told = (seed, question.text, scope, compile_query(query, scope, NOW_MS))

        limit = random.choice([None, 0, 1, 3])
        matches = execute.matching([connection], query, scope, NOW_MS, limit=limit)
        assert list(matches.ids) == ids[:limit], told
        assert execute.count([connection], query, scope, NOW_MS) == len(ids), told
        left_out = execute.left_out_by_scope([connection], query, scope, NOW_MS)
        assert left_out == len(within) - len(expected), told
        assert list(execute.in_tiers([connection], query, scope, NOW_MS)) == tiered(expected), told
    connection.close()


def tiered(nodes: list[Node]) -> list[tuple[str | None, str]]:
    order = [model.PINNED, model.WORKING, model.REFERENCE]
    found = [(model.tier(node.tags), node.id) for node in nodes]
    return sorted(found, key=lambda pair: order.index(pair[0]) if pair[0] in order else 3)


@settings(max_examples=effort.times(20), deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32))
@pytest.mark.sqlite
def test_words_match_as_in_the_oracle(seed: int) -> None:
    check_texts(seed, 30)


@pytest.mark.parametrize("seed", SEEDS_ON_A_SERVER)
def test_words_match_as_in_the_oracle_on_both_engines(seed: int) -> None:
    check_texts(seed, QUERIES_ON_A_SERVER)


def check_texts(seed: int, queries: int) -> None:
    random = Random(seed)
    graph = oracle.random_graph(random)
    connection = oracle.database(graph, random.sample(list(graph.nodes), len(graph.nodes)))
    for _ in range(queries):
        words = " ".join(random.choices(oracle.WORDS, k=random.randint(1, 4)))
        filters = [
            random.choice(oracle.FILTERS)(random, graph) for _ in range(random.choice([0, 0, 1, 2]))
        ]
        parts = [f"({words}) AND", *(question.text for question in filters)]
        random.shuffle(parts)
        query, scope = parse(" ".join(parts)), random_scope(random)
        assert query.mode == "text"
        check_words(connection, graph, filters, query, scope)
    connection.close()


def check_words(
    connection: Connection,
    graph: Graph,
    filters: list[Question],
    query: Query,
    scope: Scope,
) -> None:
    wanted = [
        node
        for node in graph.nodes.values()
        if all(question.means(node, graph) for question in filters)
        and is_in_scope(node, query, scope)
    ]
    having = {
        any_word: [node for node in wanted if oracle.has_words(query.words, node, count)]
        for any_word, count in ((False, all), (True, any))
    }
    visible = {
        any_word: [node for node in found if in_project(node, query, scope)]
        for any_word, found in having.items()
    }
    partial = not visible[False] and bool(visible[True])
    expected = visible[partial]
    ranks = ranks_of(connection, query, partial)
    expected.sort(key=lambda node: node.id, reverse=True)
    expected.sort(key=lambda node: ranks[node.id])
    told = (query, scope, compile_query(query, scope, NOW_MS))

    matches = execute.matching([connection], query, scope, NOW_MS)
    assert matches.partial == partial, told
    assert list(matches.ids) == [node.id for node in expected], told
    first = execute.matching([connection], query, scope, NOW_MS, limit=2).ids
    assert list(first) == [node.id for node in islice(expected, 2)], told
    assert execute.count([connection], query, scope, NOW_MS) == len(expected), told
    assert list(execute.in_tiers([connection], query, scope, NOW_MS)) == tiered(expected), told
    without = having[not having[False]]
    hidden = [node for node in without if not in_project(node, query, scope)]
    assert execute.left_out_by_scope([connection], query, scope, NOW_MS) == len(hidden), told


def ranks_of(connection: Connection, query: Query, any_word: bool) -> dict[str, float]:
    """The rank of every node that contains the words, from a plain statement."""
    words = words_of(query)._replace(any_of_them=any_word)
    statement = compile_query(query._replace(tree=None), Scope(True), NOW_MS, words)
    if engines.server is not None:
        on_server = compile_query(
            query._replace(tree=None), Scope(True), NOW_MS, words, dialect=Dialect.POSTGRESQL
        )
        return dict(connection.execute(on_server.sql, on_server.parameters).fetchall())
    rows = connection.execute(
        "SELECT id, bm25(nodes_fts, 0.0, 1.0) FROM nodes_fts, nodes"
        " WHERE nodes.rowid = nodes_fts.rowid AND nodes_fts MATCH ?",
        statement.parameters[:1],
    )
    return dict(rows.fetchall())
