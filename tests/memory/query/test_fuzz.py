"""Any text is either refused with a message or compiled to a statement that runs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctx.errors import QueryInvalid
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse, parse_words
from tests import effort
from tests.memory.query import oracle
from tests.memory.query.oracle import NOW_MS

GRAPH = oracle.random_graph(Random(5))
SCOPE = Scope(project="shop", task="auth")

PIECES = st.sampled_from(
    [
        *(f"{name}:" for name in "type tag created updated tokens has from to session".split()),
        *("project:", "path:", "id:", "foo:", "fact", "tier:pinned", ">24h", "<=2024-01-01", "*"),
        *(" AND ", " OR ", " NOT ", " and ", " ", "(", ")", '"', "\\", ":", "::", ">", "=", "?"),
        *("summary", "01KF", "src/*.py", "[", "]", "%", "_", "'", ";", "--", "\0", "\n", "\x1b"),
        *("\ud800", "\udcff", "\U0010ffff", "更", "e\u0301", "ﬁ", "\u202e", "9" * 20, "²", "NEAR"),
    ]
)
MUTATED = st.lists(PIECES | st.text(max_size=3), max_size=14).map("".join)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(oracle.database(GRAPH)) as made:
        yield made


@settings(max_examples=effort.times(100), deadline=None, derandomize=True, database=None)
@given(st.text() | MUTATED)
@example('tag:"')
@example("path:" + "*a" * 400 + "b")
@example("path:[")
@example('"\0" tag:\0')
@example("created:9999-12-31T23:59:59Z")
@example("created:0001-01-01")
def test_any_text_is_refused_or_runs(connection: sqlite3.Connection, text: str) -> None:
    for read in (parse, parse_words):
        try:
            query = read(text)
        except QueryInvalid as error:
            assert error.message.isprintable()
            shown = error.detail.split("\n") if error.detail else []
            assert len(shown) in (0, 2)
            assert all(line.isprintable() for line in shown)
            continue
        ids = list(execute.matching([connection], query, SCOPE, NOW_MS).ids)
        assert execute.count([connection], query, SCOPE, NOW_MS) == len(ids)
        tiered = [node_id for _, node_id in execute.in_tiers([connection], query, SCOPE, NOW_MS)]
        assert sorted(tiered) == sorted(ids)
        execute.left_out_by_scope([connection], query, SCOPE, NOW_MS)


@settings(max_examples=effort.times(60), deadline=None, derandomize=True, database=None)
@given(MUTATED, st.sampled_from(["word", "two words", "更"]))
def test_a_plain_word_turns_any_text_into_words(text: str, word: str) -> None:
    query = parse(f"{word} {text}")
    assert query.mode == "text"
    assert word in query.words
