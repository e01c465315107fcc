"""The server ranks nodes as BM25 does with the constants of FTS5."""

import random
from collections import Counter
from math import log

import pytest
from psycopg import errors

from ctx import terms
from ctx.direct import team_graph_store
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.query.compile import Scope, SearchWords, compile_query, words_of
from ctx.memory.query.conditions import Dialect
from ctx.memory.query.query_parser import parse
from tests.conftest import Sql
from tests.direct.conftest import Container
from tests.postgres_server import PostgresServer

WORDS = "cache token refresh page night deploy 更新 Café it's".split()


def bm25(texts: dict[str, str], words: SearchWords) -> dict[str, float]:
    counts = {node_id: Counter(terms.extract(text)) for node_id, text in texts.items()}
    average = sum(found.total() for found in counts.values()) / len(counts)
    scores: dict[str, float] = {}
    for node_id, found in counts.items():
        length = 1.2 * (0.25 + 0.75 * found.total() / average)
        score = 0.0
        for term in (term for group in words.groups for term in group):
            having = sum(term in each for each in counts.values())
            weight = max(1e-6, log((len(counts) - having + 0.5) / (having + 0.5)))
            score -= weight * 2.2 * found[term] / (found[term] + length)
        if any(term in found for group in words.groups for term in group):
            scores[node_id] = score
    return scores


def test_nodes_are_ranked_by_bm25(postgres: PostgresServer, team: str) -> None:
    chance = random.Random(5)
    texts: dict[str, str] = {}
    with team_graph_store.open_graph(postgres.url("anna", team)) as graph:
        with changing(graph, "add", ChangeAuthor("cli", "cli")) as change:
            for _ in range(25):
                text = " ".join(chance.choices(WORDS, k=chance.randint(1, 40)))
                texts[change.add_node("fact", text)] = text
        for question in ("cache", "token refresh", "café 更新 nights", "deploying pages it's"):
            query = parse(question)
            words = words_of(query)._replace(any_of_them=True)
            statement = compile_query(query, Scope(), 0, words, dialect=Dialect.POSTGRESQL)
            found = dict(graph.connection.execute(statement.sql, statement.parameters).fetchall())
            assert found == pytest.approx(bm25(texts, words))


def test_a_search_finds_only_what_its_user_may_read(container: Container, sql: Sql) -> None:
    container("anna", "add", "The shop sells marmalade.", "--tag", "project:shop")
    container("anna", "add", "My own marmalade.")
    asking = "SELECT count(*) FROM ctx.nodes_with(%s, 'marmalad', NULL)"
    assert sql("anna", asking, "anna") == [(2,)]
    assert sql("cleo", asking, "cleo") == [(1,)]
    counting = "SELECT ctx.count_with(%s, 'marmalad', NULL), nodes FROM ctx.corpus(%s)"
    assert sql("cleo", counting, "cleo", "cleo") == [(1, 1)]
    # Nobody asks in the name of somebody else.
    assert sql("cleo", asking, "anna") == [(0,)]
    assert sql("cleo", counting, "anna", "anna") == [(0, 0)]
    for statement in (
        "SELECT * FROM ctx.words",
        "SELECT * FROM ctx.word_totals",
        "UPDATE ctx.word_totals SET nodes = 0",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            sql("anna", statement)


def test_the_words_of_a_node_change_with_it(container: Container, sql: Sql) -> None:
    node = container("anna", "add", "Old marmalade.", "--json").json["node"]["id"]
    container("anna", "add", "fact", "Honey.")
    container("anna", "update", node, "New quince jelly today.")
    corpus = "SELECT nodes, nodes * words FROM ctx.corpus('anna')"
    finding = "SELECT ctx.count_with('anna', %s, NULL)"
    assert sql("anna", finding, "marmalad") == [(0,)]
    assert sql("anna", finding, "jelly") == [(1,)]
    before = sql("anna", corpus)
    container("anna", "delete", node)
    assert sql("anna", corpus) == [(1, 1)]
    container("anna", "restore", node)
    assert sql("anna", corpus) == before


def test_a_node_that_sql_moves_is_found_in_its_new_place(container: Container, sql: Sql) -> None:
    node = container("anna", "add", "Quince jelly today.", "--json").json["node"]["id"]
    sql("anna", "UPDATE ctx.subjects SET project = 'shop', owner = '' WHERE id = %s", node)
    asking = "SELECT ctx.count_with('ben', 'jelly', NULL), nodes, words FROM ctx.corpus('ben')"
    assert sql("ben", asking) == [(1, 1, 3)]
    sql("anna", "DELETE FROM ctx.nodes WHERE id = %s", node)
    assert sql("ben", asking) == [(0, 0, 1)]
    assert sql("anna", "SELECT nodes FROM ctx.corpus('anna')") == [(0,)]
