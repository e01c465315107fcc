"""Results of queries, their order, and what a scope leaves out."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing

import pytest

from ctx.memory import model
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse
from tests.memory.query import oracle
from tests.memory.query.oracle import NOW_MS, Graph, Node

pytestmark = pytest.mark.usefixtures("engine")

EVERYWHERE = Scope()
SHOP = Scope(project="shop")


def ident(number: int) -> str:
    return f"01KF{number:022d}"


def node(number: int, content: str = "text", tags: str = "", by: int | None = None) -> Node:
    made = oracle.iso(NOW_MS // 1000 - 3600)
    superseded_by = None if by is None else ident(by)
    given = frozenset(tags.split())
    return Node(ident(number), "fact", content, None, 1, superseded_by, made, made, {}, given)


Database = Callable[..., sqlite3.Connection]


@pytest.fixture
def database() -> Iterator[Database]:
    with ExitStack() as opened:

        def made(*nodes: Node) -> sqlite3.Connection:
            graph = Graph({node.id: node for node in nodes}, (), ())
            return opened.enter_context(closing(oracle.database(graph)))

        yield made


def numbers(found: Iterable[str]) -> list[int]:
    return [int(node_id[4:]) for node_id in found]


def answer(connection: sqlite3.Connection, text: str, scope: Scope = EVERYWHERE) -> list[int]:
    return numbers(execute.matching([connection], parse(text), scope, NOW_MS).ids)


def test_nodes_with_all_words_or_otherwise_any_word_are_found(database: Database) -> None:
    connection = database(
        node(1, "refresh the token"), node(2, "a token"), node(3, "refresh tokens"), node(4, "no")
    )
    for text, expected, is_partial in (
        ("refreshing token", [3, 1], False),
        ("token refresh unheard", [3, 1, 2], True),
        ("unheard", [], False),
        ("unheard of", [], False),
        ("--- ((", [], False),
        ("tag:none token", [], False),
    ):
        matches = execute.matching([connection], parse(text), Scope(), NOW_MS)
        assert (numbers(matches.ids), matches.partial) == (expected, is_partial)
        assert execute.count([connection], parse(text), Scope(), NOW_MS) == len(expected)


def test_better_matches_come_first_and_newer_nodes_of_equal_rank(database: Database) -> None:
    connection = database(
        node(5, "token among many other words that are here"),
        node(9, "token"),
        node(3, "token"),
        node(7, "token"),
        node(1, "token token"),
    )
    assert answer(connection, "token") == [1, 9, 7, 3, 5]


def test_a_cjk_character_finds_words_that_begin_with_it(database: Database) -> None:
    connection = database(node(1, "更新する"), node(2, "変更"), node(3, "更"), node(4, "я яма"))
    assert answer(connection, "更") == [3, 1]
    assert answer(connection, "更新") == [1]
    # Elsewhere a letter is a word.
    assert answer(connection, "яма") == answer(connection, "я") == [4]


@pytest.mark.sqlite
def test_matching_uses_terms_instead_of_content(database: Database) -> None:
    connection = database(node(1, "caching"), node(2, "other"))
    connection.execute("UPDATE nodes SET content = 'caching' WHERE id = ?", (ident(2),))
    assert answer(connection, "caching") == [1]


def test_a_node_of_two_projects_is_in_both(database: Database) -> None:
    connection = database(
        node(1, tags="x project:shop"),
        node(2, tags="x project:bank"),
        node(3, tags="x"),
        node(4, tags="x project:bank project:shop"),
        node(5, tags="x project:bank project:shopping"),
    )
    assert answer(connection, "tag:x", SHOP) == [4, 3, 1]
    assert execute.left_out_by_scope([connection], parse("tag:x"), SHOP, NOW_MS) == 2
    assert execute.left_out_by_scope([connection], parse("text"), SHOP, NOW_MS) == 2
    for text in ("tag:x project:bank", "tag:x AND NOT tag:project:shop"):
        query = parse(text)
        assert answer(connection, text, SHOP) == answer(connection, text, Scope())
        assert execute.left_out_by_scope([connection], query, SHOP, NOW_MS) == 0


def test_words_of_another_project_do_not_count(database: Database) -> None:
    connection = database(
        node(1, "refresh token", "project:bank"),
        node(2, "token", "project:bank"),
        node(3, "token", "project:shop"),
    )
    query = parse("refresh token")
    matches = execute.matching([connection], query, SHOP, NOW_MS)
    assert (numbers(matches.ids), matches.partial) == ([3], True)
    # Without the project, the answer would be the one node that has both.
    assert execute.left_out_by_scope([connection], query, SHOP, NOW_MS) == 1


def test_the_default_view_is_ordered_by_tier(database: Database) -> None:
    connection = database(
        node(1, tags="tier:reference"),
        node(2, tags="tier:working tier:pinned"),
        node(3, tags="tier:off-context"),
        node(4, tags="tier:working"),
        node(5),
        node(6, tags="tier:reference"),
        node(7, tags="tier:off-context tier:pinned"),
    )

    def tiers(text: str) -> list[tuple[str | None, int]]:
        found = execute.in_tiers([connection], parse(text), Scope(), NOW_MS)
        return [(tier, numbers([node_id])[0]) for tier, node_id in found]

    default = [
        (model.PINNED, 7),
        (model.PINNED, 2),
        (model.WORKING, 4),
        (model.REFERENCE, 6),
        (model.REFERENCE, 1),
    ]
    assert tiers(model.DEFAULT_QUERY) == default
    everything = [*default, (None, 5), (model.OFF_CONTEXT, 3)]
    assert tiers("type:fact") == tiers("text") == everything


def test_values_can_be_words_of_the_query_language(database: Database) -> None:
    connection = database(node(1, "cache", "session:superseded"), node(2, "cache"))
    for text in ("NOT session:superseded", "cache NOT session:superseded"):
        assert answer(connection, text, Scope(include_superseded=True)) == [2]
        asked = parse(text)
        assert execute.count([connection], asked, Scope(include_superseded=True), NOW_MS) == 1


def test_of_many_matches_only_the_newest_are_ranked_unless_all_are_requested(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "MOST_RANKED", 3)
    connection = database(
        node(0, "cache"),
        *(node(number, "cache of the pages that are warm") for number in range(1, 8)),
        node(8, "cache zebra", by=7),
    )
    asked = parse("cache")
    few = execute.matching([connection], asked, EVERYWHERE, NOW_MS, limit=2)
    assert numbers(few.ids) == [7, 6], "the shortest is older than what is ranked"
    every = execute.matching([connection], asked, EVERYWHERE, NOW_MS)
    assert numbers(every.ids) == [0, 7, 6, 5, 4, 3, 2, 1]
    assert execute.count([connection], asked, EVERYWHERE, NOW_MS) == 8
    narrowed = execute.matching([connection], parse("cache id:01KF"), EVERYWHERE, NOW_MS, limit=1)
    assert numbers(narrowed.ids) == [0], "a filter narrows the answer, so all of it is ranked"


def test_if_no_node_has_all_words_the_rare_words_decide(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "MOST_RANKED", 3)
    connection = database(
        *(node(number, "cache of pages") for number in range(6)), node(9, "zebra crossing")
    )
    asked = parse("cache zebra")
    matches = execute.matching([connection], asked, EVERYWHERE, NOW_MS, limit=5)
    assert (numbers(matches.ids), matches.partial) == ([9], True)
    assert execute.count([connection], asked, EVERYWHERE, NOW_MS) == 1
    monkeypatch.setattr(execute, "MOST_RANKED", 100)
    assert len(answer(connection, "cache zebra")) == 7


@pytest.mark.sqlite
def test_a_search_reads_the_matches_of_each_set_of_words_once(database: Database) -> None:
    connection = database(*(node(number, "cache of pages") for number in range(6)))
    asked = parse("cache zebra")
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    matches = execute.matching([connection], asked, EVERYWHERE, NOW_MS, limit=2)
    assert numbers(matches.ids) == [5, 4]
    assert execute.count([connection], asked, EVERYWHERE, NOW_MS, matches.words) == 6
    connection.set_trace_callback(None)
    ranked = [sql for sql in statements if "bm25" in sql]
    assert [sql.count("MATCH") for sql in ranked] == [1, 1], "all words, then any of them"
    assert sum("count(*)" in sql for sql in statements) == 1
