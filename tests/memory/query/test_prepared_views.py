"""The prepared statements of a view give the same result as its query."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random
from sqlite3 import Connection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.context import default_view, layers
from ctx.context.compose import ContextBody
from ctx.context.context_entries import load
from ctx.context.context_page import MOST_PINNED
from ctx.context.layers import ContextRequest
from ctx.ids import NodeId
from ctx.memory.changes import changing
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.prepared_views import prepare_views, prepared_statements
from ctx.memory.query.query_parser import parse
from tests import effort
from tests.memory import graphs
from tests.memory.query import oracle
from tests.memory.query.oracle import NOW_MS, Node

DAY_MS = 86_400_000
LATER = st.sampled_from([0, 1000, DAY_MS, 40 * DAY_MS])
# With the last two there is no room for all, so that the order of the answer decides.
BUDGETS = (2_500, 2_500, 401, 100)


@contextmanager
def at(now_ms: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now_ms", lambda: now_ms)
        yield


def set_view(connection: Connection, query: str) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO views (name, query, created_at, updated_at) VALUES"
        " ('default', ?, '', '')",
        (query,),
    )
    prepare_views(connection)


def expected(connection: Connection, ids: list[NodeId], budget: int) -> str:
    """The nodes of a context, from `evaluate`: others than pinned ones get half of the budget."""
    body = ContextBody()
    for is_pinned, most in ((True, MOST_PINNED), (False, budget // 2)):
        entries = [each.entry for each in load([connection], ids)]
        body.fill((each for each in entries if each.kept is is_pinned), most)
    return body.text()


def random_wanted(random: Random) -> ContextRequest:
    return ContextRequest(
        random.choice([None, "shop", "bank", "none"]),
        random.choice([None, None, "auth", "db"]),
        random.choice(BUDGETS),
    )


def check(connection: Connection, query: str, wanted: ContextRequest, now_ms: int) -> list[NodeId]:
    """Compare the prepared view with its query, and return the nodes in order."""
    set_view(connection, query)
    # Outside of any project, nothing of one is seen.
    scope = Scope(project=wanted.project or "", task=wanted.task)
    found = [each for _, each in execute.in_tiers([connection], parse(query), scope, now_ms)]
    with at(now_ms):
        made = layers.context([connection], wanted)
    told = (query, wanted, found)
    assert f"-->\n\n{expected(connection, found, wanted.budget)}<" in made.text.replace(
        f"{layers.PREFACE if found else layers.EMPTY}\n\n", ""
    ), told
    assert {item.id for item in made.items} <= set(found), told
    if wanted.budget == BUDGETS[0]:
        assert len(made.items) == len(found), told
    return found


@settings(max_examples=effort.times(15), deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32), LATER)
def test_filters_give_the_result_of_the_query(seed: int, later_ms: int) -> None:
    random = Random(seed)
    graph = oracle.random_graph(random)
    order = random.sample(list(graph.nodes), len(graph.nodes))
    with closing(oracle.database(graph, order)) as connection:
        for _ in range(10):
            question = oracle.random_question(random, graph)
            check(connection, question.text, random_wanted(random), NOW_MS + later_ms)


@settings(max_examples=effort.times(10), deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32), LATER)
def test_words_give_the_result_of_the_query(seed: int, later_ms: int) -> None:
    random = Random(seed)
    graph = oracle.random_graph(random)
    with closing(oracle.database(graph)) as connection:
        for _ in range(12):
            words = " ".join(random.choices(oracle.WORDS, k=random.randint(1, 4)))
            filters = [random.choice(oracle.FILTERS)(random, graph).text for _ in range(2)]
            query = " ".join([words, *filters[: random.choice([0, 0, 1, 2])]])
            check(connection, query, random_wanted(random), NOW_MS + later_ms)


def node(number: int, content: str = "text", tags: str = "", made_s: int = 3600) -> Node:
    made = oracle.iso(NOW_MS // 1000 - made_s)
    given = frozenset(tags.split())
    node_id = f"01KF{number:022d}"
    return Node(node_id, "fact", content, None, 1, None, made, made, {}, given)


@contextmanager
def database(*nodes: Node) -> Iterator[Connection]:
    graph = oracle.Graph({each.id: each for each in nodes}, (), ())
    with closing(oracle.database(graph)) as connection:
        yield connection


def numbers(ids: list[NodeId]) -> list[int]:
    return [int(each[4:]) for each in ids]


@pytest.mark.parametrize(
    ("query", "today", "in_two_days"),
    [
        ("created:<1d", [], [2, 1]),
        ("created:>1d", [2, 1], []),
        ("created:>=60min", [2, 1], []),
        ("created:>60min", [2], []),
        ("created:<=60min", [1], [2, 1]),
        ("NOT (created:<1d OR updated:<=30min)", [2], []),
        ("created:2026-01-20", [2, 1], [2, 1]),
        ("created:>=2026-01-20T09:59:59Z", [2], [2]),
        ("text created:<1d", [], [2, 1]),
    ],
)
def test_ages_are_computed_when_the_view_runs(
    query: str, today: list[int], in_two_days: list[int]
) -> None:
    with database(node(1), node(2, made_s=1)) as connection:
        for now_ms, expected_numbers in ((NOW_MS, today), (NOW_MS + 2 * DAY_MS, in_two_days)):
            found = check(connection, query, ContextRequest(None, None, 2_500), now_ms)
            assert numbers(found) == expected_numbers
        assert default_view.is_timeless([connection]) is ("2026" in query)


@pytest.mark.parametrize("years", [900, 1_030, 1_500, 1_999, 2_001, 5_000, 999_999])
def test_an_age_of_any_length_works(years: int) -> None:
    """Ages before any node, up to years with fewer than four digits or below zero."""
    with database(node(1)) as connection:
        for sign, found in (("<", []), ("<=", []), (">", [1]), (">=", [1])):
            asked = check(
                connection, f"created:{sign}{years}y", ContextRequest(None, None, 2_500), NOW_MS
            )
            assert numbers(asked) == found


def test_a_view_ranks_common_words_although_a_query_skips_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here the two may differ: which words are common is not known when a view is prepared.

    A query prefers the rarer words where no node has all of them, to rank fewer. A view takes
    the nodes with any of them, as a query does in a store that is not large.
    """
    nodes = [node(number, "cache of pages") for number in range(6)]
    with database(*nodes, node(9, "zebra crossing")) as connection:
        asked = parse("cache zebra")
        set_view(connection, asked.text)
        monkeypatch.setattr(execute, "MOST_RANKED", 3)
        found = [each for _, each in execute.in_tiers([connection], asked, Scope(), NOW_MS)]
        assert numbers(found) == [9]
        made = layers.context([connection], ContextRequest(None, None, 2_500))
        assert numbers([item.id for item in made.items]) == [9, 5, 4, 3, 2, 1, 0]
        assert not execute.matching([connection], parse("cache of"), Scope(), NOW_MS).partial
        # Where some node has all of them, nobody narrows.
        check(connection, "pages cache", ContextRequest(None, None, 2_500), NOW_MS)


@pytest.mark.parametrize("query", ["tag:", "type:nonsense", "(type:fact", "created:soon", "has:x"])
def test_an_invalid_query_finds_nothing(query: str) -> None:
    assert prepared_statements(query) is None
    with graphs.graph() as graph:
        with changing(graph, "add", graphs.WHO) as change:
            change.tag(change.add_node("fact", "There."), "tier:pinned")
        wanted = ContextRequest(None, None, 2_000)
        before = layers.context([graph.connection], wanted)
        with changing(graph, "view", graphs.WHO) as change:
            # Another version may have understood it.
            change.put_view("default", query, None)
        assert layers.context([graph.connection], wanted).items == ()
        assert default_view.is_timeless([graph.connection])
        with changing(graph, "view", graphs.WHO) as change:
            change.put_view("default", "tag:tier:*", None)
        assert layers.context([graph.connection], wanted) == before


def test_values_of_a_query_cannot_become_placeholders() -> None:
    """A value stays a value, also if it looks like a placeholder."""
    made = json.loads(prepared_statements('tag:"project" OR tag:ago OR tag:task') or "")
    assert set(made) == {"filters"}
    assert set(made["filters"]) == {"", "task"}
    for scope, statements in made["filters"].items():
        values = [value for _, _, values in statements for value in values]
        assert {"project", "ago", "task"} <= {each for each in values if isinstance(each, str)}
        assert ["project"] in values
        assert (["task"] in values) is (scope == "task")
    assert "\\u0000" not in json.dumps(made)
