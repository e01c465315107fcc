"""Run a query: the ids that match, how many there are, and the ids by tier."""

import sqlite3
from collections.abc import Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.query.compile import (
    Scope,
    Statement,
    Words,
    compile_count,
    compile_query,
    compile_tier,
    words_of,
)
from ctx.memory.query.parse import Query

MOST_RANKED = 8_000
"""Nodes that are ranked where nothing but common words narrows the answer."""

TIERS = (model.PINNED, model.WORKING, model.REFERENCE)


class Matches(NamedTuple):
    ids: Iterator[NodeId]
    """Read as they are asked for."""
    partial: bool
    """Whether no node has all the words, so that these have only some of them."""
    beginnings: bool = False
    """Whether no node has any of them, so that these have words that begin so."""


def matching(
    connection: Connection,
    query: Query,
    scope: Scope,
    now_ms: int,
    *,
    limit: int | None = None,
    beginnings: bool = False,
) -> Matches:
    """The newest first; where there are words, the best first and the newest among equals.

    With `beginnings`, words that begin like those of a question are better than nothing.
    """
    if query.mode == "filters":
        found = _run(connection, compile_query(query, scope, now_ms))
        return Matches(islice(map(itemgetter(0), found), limit), partial=False)
    for words in _attempts(connection, query, scope, limit, beginnings=beginnings):
        ranked = _ranked(connection, compile_query(query, scope, now_ms, words))
        first = next(ranked, None)
        if first is not None:
            best = islice(chain([first], ranked), limit)
            return Matches(best, words.any_of_them or words.beginnings, words.beginnings)
    return Matches(iter(()), partial=False)


def _attempts(
    connection: Connection,
    query: Query,
    scope: Scope,
    limit: int | None = None,
    *,
    beginnings: bool = False,
) -> Iterator[Words]:
    """What to look for, until something is found: all words, the rarer ones, any of them.

    To rank a node takes time, and a word that a tenth of all nodes have says little about any
    of them. So where a few are wanted, and nothing else narrows what has only such words, the
    newest of it are ranked.
    """
    every = words_of(query)
    is_wide = query.tree is None and scope.project is None and scope.task is None
    newest = MOST_RANKED if is_wide and limit and limit <= MOST_RANKED else None
    yield every._replace(newest=newest)
    rare = tuple(group for group in every.groups if not _is_common(connection, group))
    if 0 < len(rare) < len(every.groups):
        yield Words(rare, any_of_them=True)
    yield every._replace(any_of_them=True, newest=newest)
    if beginnings:
        yield every._replace(beginnings=True, newest=newest)


def _is_common(connection: Connection, group: tuple[str, ...]) -> bool:
    sql = "SELECT 1 FROM nodes_fts WHERE nodes_fts MATCH ? LIMIT 1 OFFSET ?"
    row = connection.execute(sql, (Words((group,)).expression, MOST_RANKED)).fetchone()
    return row is not None


def _run(connection: Connection, statement: Statement) -> sqlite3.Cursor:
    return connection.execute(statement.sql, statement.parameters)


def _ranked(connection: Connection, statement: Statement) -> Iterator[NodeId]:
    for _, equals in groupby(_run(connection, statement), key=itemgetter(1)):
        yield from sorted(map(itemgetter(0), equals), reverse=True)


def count(
    connection: Connection, query: Query, scope: Scope, now_ms: int, *, beginnings: bool = False
) -> int:
    """How many nodes `matching` gives without a limit."""
    if query.mode == "filters":
        return _count(connection, compile_count(query, scope, now_ms))
    for words in _attempts(connection, query, scope, beginnings=beginnings):
        if found := _count(connection, compile_count(query, scope, now_ms, words)):
            return found
    return 0


def left_out_by_scope(connection: Connection, query: Query, scope: Scope, now_ms: int) -> int:
    """How many nodes the answer would have without the scope's project that it now has not."""
    if scope.project is None or query.names_project:
        return 0
    if query.mode == "filters":
        return _count(connection, compile_count(query, scope, now_ms, left_out=True))
    for words in _attempts(connection, query, scope):
        hidden = _count(connection, compile_count(query, scope, now_ms, words, left_out=True))
        if hidden or _count(connection, compile_count(query, scope, now_ms, words)):
            return hidden
    return 0


def in_tiers(
    connection: Connection, query: Query, scope: Scope, now_ms: int
) -> Iterator[tuple[str | None, NodeId]]:
    """Each match with its tier: pinned, working, reference, then the rest; as `matching` inside.

    Where there are filters alone, a tier is looked for when the one before it was read.
    """
    if query.mode == "text":
        yield from _ranked_in_tiers(connection, query, scope, now_ms)
        return
    # A node may have several tiers: the strongest counts. In the weakest are the most by far.
    seen: set[NodeId] = set()
    for tier in TIERS:
        statement = compile_tier(query, scope, now_ms, tier)
        if statement is not None:
            for (node_id,) in _run(connection, statement):
                if node_id not in seen:
                    if tier != TIERS[-1]:
                        seen.add(node_id)
                    yield tier, node_id
    rest = compile_tier(query, scope, now_ms, None)
    if rest is not None:
        for node_id, tags in _run(connection, with_tiers(rest)):
            yield _tier(tags), node_id


def _ranked_in_tiers(
    connection: Connection, query: Query, scope: Scope, now_ms: int
) -> Iterator[tuple[str | None, NodeId]]:
    rows: list[tuple[NodeId, float, str | None]] = []
    for words in _attempts(connection, query, scope):
        statement = compile_query(query, scope, now_ms, words)
        if rows := _run(connection, with_tiers(statement)).fetchall():
            break
    rows.sort(reverse=True)
    rows.sort(key=itemgetter(1))
    found = [(_tier(tags), node_id) for node_id, _, tags in rows]
    for tier in TIERS:
        yield from (match for match in found if match[0] == tier)
    yield from (match for match in found if match[0] not in TIERS)


def with_tiers(statement: Statement) -> Statement:
    """The same with one more column: the tiers of the node, if it has any."""
    tiers = "SELECT group_concat(tag) FROM tags WHERE node_id = found.id"
    return Statement(
        f"SELECT found.*, ({tiers} AND tag >= 'tier:' AND tag < 'tier;')"
        f" FROM ({statement.sql}) AS found",
        statement.parameters,
    )


def _tier(tags: str | None) -> str | None:
    return model.tier(tags.split(",")) if tags else None


def _count(connection: Connection, statement: Statement) -> int:
    found: int = _run(connection, statement).fetchone()[0]
    return found
