"""Runs a query: the matching ids, their number, and the ids by tier."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.query.compile import (
    Scope,
    SearchWords,
    SqlStatement,
    compile_count,
    compile_query,
    compile_tier,
    required_tags,
    words_of,
)
from ctx.memory.query.conditions import Dialect, dialect_of
from ctx.memory.query.query_parser import Query

MOST_RANKED = 8_000
"""The number of nodes that are ranked if a query has only common words."""

TIERS = (model.PINNED, model.WORKING, model.REFERENCE)


class Matches(NamedTuple):
    ids: Iterator[NodeId]
    """Read lazily."""
    partial: bool
    """Whether no node has all the words, so that these match only some of them."""
    beginnings: bool = False
    """Whether no node has any of the words, so that these match by prefix."""
    words: SearchWords | None = None
    """The words that these match; None if the query has none, or nothing matches."""


def matching(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    now_ms: int,
    *,
    limit: int | None = None,
    beginnings: bool = False,
) -> Matches:
    """The matching nodes, newest first; for words, the best first, and the newest first among
    equals.

    With `beginnings`, words are matched by prefix if nothing else matches.
    """
    dialect = dialect_of(connections)
    if query.mode == "filters":
        rare_tags = _rare_tags(connections, query)
        statement = compile_query(query, scope, now_ms, rare_tags=rare_tags, dialect=dialect)
        statement = first_rows(statement, limit, dialect)
        rows = (map(itemgetter(0), _run(connection, statement)) for connection in connections)
        merged = (node_id for node_id, _ in groupby(merge(*rows, reverse=True)))
        return Matches(islice(merged, limit), partial=False)
    for words in _attempts(connections, query, scope, limit, beginnings=beginnings):
        statement = compile_query(query, scope, now_ms, words, dialect=dialect)
        statement = first_rows(statement, limit, dialect)
        ranked = merge(
            *(_ranked_rows(connection, statement) for connection in connections), key=itemgetter(0)
        )
        first = next(ranked, None)
        if first is not None:
            best = islice(_unique_nodes(map(itemgetter(1), chain([first], ranked))), limit)
            return Matches(best, words.any_of_them or words.beginnings, words.beginnings, words)
    return Matches(iter(()), partial=False)


def first_rows(statement: SqlStatement, limit: int | None, dialect: Dialect) -> SqlStatement:
    """The statement with a limit, for a server: SQLite finds no more rows than are read."""
    if limit is None or dialect is Dialect.SQLITE:
        return statement
    return SqlStatement(f"{statement.sql} LIMIT ?", (*statement.parameters, max(limit, 1)))


def _attempts(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    limit: int | None = None,
    *,
    beginnings: bool = False,
) -> Iterator[SearchWords]:
    """What to search for until something matches: all words, the rarer ones, any of them.

    Ranking takes time, and a word that a tenth of all nodes contain says little about any of them.
    So if only a few results are wanted and there are only such words, only the newest matches are
    ranked.
    """
    every = words_of(query)
    is_wide = query.tree is None and scope.project is None and scope.task is None
    newest = MOST_RANKED if is_wide and limit and limit <= MOST_RANKED else None
    yield every._replace(newest=newest)
    rare = tuple(
        group
        for group in every.groups
        if not any(_is_common(connection, group) for connection in connections)
    )
    if 0 < len(rare) < len(every.groups):
        yield SearchWords(rare, any_of_them=True)
    yield every._replace(any_of_them=True, newest=newest)
    if beginnings:
        yield every._replace(beginnings=True, newest=newest)


def _is_common(connection: Connection, group: tuple[str, ...]) -> bool:
    words = SearchWords((group,))
    if dialect_of([connection]) is Dialect.POSTGRESQL:
        sql = "SELECT 1 WHERE count_with(CAST(? AS tsquery), ?) > ?"
        values = (words.term_groups.query, MOST_RANKED + 1, MOST_RANKED)
        return connection.execute(sql, values).fetchone() is not None
    sql = "SELECT 1 FROM nodes_fts WHERE nodes_fts MATCH ? LIMIT 1 OFFSET ?"
    return connection.execute(sql, (words.expression, MOST_RANKED)).fetchone() is not None


def _rare_tags(connections: Sequence[Connection], query: Query) -> list[str]:
    """The tags of a query that few nodes have, if all matches must have them. PostgreSQL knows this
    from its statistics."""
    if dialect_of(connections) is Dialect.POSTGRESQL:
        return []
    sql = "SELECT 1 FROM tags INDEXED BY idx_tags_tag WHERE tag = ? LIMIT 1 OFFSET ?"
    return [
        tag
        for tag in required_tags(query)
        if all(conn.execute(sql, (tag, MOST_RANKED)).fetchone() is None for conn in connections)
    ]


def _run(connection: Connection, statement: SqlStatement) -> sqlite3.Cursor:
    return connection.execute(statement.sql, statement.parameters)


def _ranked_rows(connection: Connection, statement: SqlStatement) -> Iterator[tuple[float, NodeId]]:
    for score, equals in groupby(_run(connection, statement), key=itemgetter(1)):
        yield from (
            (score, node_id) for node_id in sorted(map(itemgetter(0), equals), reverse=True)
        )


def _unique_nodes(node_ids: Iterable[NodeId]) -> Iterator[NodeId]:
    """Each node once: several stores may have the same anchor."""
    yielded: set[NodeId] = set()
    for node_id in node_ids:
        if node_id not in yielded:
            yielded.add(node_id)
            yield node_id


def count(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    now_ms: int,
    words: SearchWords | None = None,
) -> int:
    """The number of nodes that `matching` returns without a limit.

    With the `words` of its matches, no other words are tried.
    """
    dialect = dialect_of(connections)
    if query.mode == "filters":
        rare_tags = _rare_tags(connections, query)
        statement = compile_count(query, scope, now_ms, rare_tags=rare_tags, dialect=dialect)
        return _count(connections, statement)
    for attempt in [words] if words else _attempts(connections, query, scope):
        statement = compile_count(query, scope, now_ms, attempt, dialect=dialect)
        if total := _count(connections, statement):
            return total
    return 0


def left_out_by_scope(
    connections: Sequence[Connection], query: Query, scope: Scope, now_ms: int
) -> int:
    """How many matches the scope's project hides."""
    if scope.project is None or query.names_project:
        return 0

    def counted(words: SearchWords | None, *, left_out: bool) -> int:
        statement = compile_count(
            query, scope, now_ms, words, left_out=left_out, dialect=dialect_of(connections)
        )
        return _count(connections, statement)

    if query.mode == "filters":
        return counted(None, left_out=True)
    for words in _attempts(connections, query, scope):
        hidden = counted(words, left_out=True)
        if hidden or counted(words, left_out=False):
            return hidden
    return 0


def in_tiers(
    connections: Sequence[Connection], query: Query, scope: Scope, now_ms: int
) -> Iterator[tuple[str | None, NodeId]]:
    """Each match with its tier: pinned, working, reference, then the rest. Within a tier, the order
    is that of `matching`.

    With filters only, each tier is queried when the previous one has been read.
    """
    if query.mode == "text":
        yield from _ranked_in_tiers(connections, query, scope, now_ms)
        return
    dialect = dialect_of(connections)
    # A node may have several tiers; the strongest counts. Most nodes are in the weakest one.
    yielded: set[NodeId] = set()
    for tier in TIERS:
        statement = compile_tier(query, scope, now_ms, tier, dialect)
        if statement is not None:
            for (node_id,) in _merge_rows(connections, statement):
                if node_id not in yielded:
                    if tier != TIERS[-1]:
                        yielded.add(node_id)
                    yield tier, node_id
    rest = compile_tier(query, scope, now_ms, None, dialect)
    if rest is not None:
        for node_id, tags in _merge_rows(connections, with_tiers(rest)):
            yield _tier(tags), node_id


def _merge_rows(
    connections: Sequence[Connection], statement: SqlStatement
) -> Iterator[tuple[Any, ...]]:
    """The rows of all connections, merged newest first."""
    if len(connections) == 1:
        return _run(connections[0], statement)
    rows = (_run(connection, statement) for connection in connections)
    merged = merge(*rows, key=itemgetter(0), reverse=True)
    # If a node is in several stores, the first one counts.
    return (next(same) for _, same in groupby(merged, key=itemgetter(0)))


def _ranked_in_tiers(
    connections: Sequence[Connection], query: Query, scope: Scope, now_ms: int
) -> Iterator[tuple[str | None, NodeId]]:
    rows: list[tuple[NodeId, float, str | None]] = []
    for words in _attempts(connections, query, scope):
        dialect = dialect_of(connections)
        statement = with_tiers(compile_query(query, scope, now_ms, words, dialect=dialect))
        if rows := [row for connection in connections for row in _run(connection, statement)]:
            break
    rows.sort(reverse=True)
    rows.sort(key=itemgetter(1))
    strongest = {node_id: _tier(tags) for node_id, _, tags in reversed(rows)}
    matches = [(strongest[node_id], node_id) for node_id in _unique_nodes(row[0] for row in rows)]
    for tier in TIERS:
        yield from (match for match in matches if match[0] == tier)
    yield from (match for match in matches if match[0] not in TIERS)


def with_tiers(statement: SqlStatement) -> SqlStatement:
    """The statement with an additional column for the node's tiers."""
    tiers = "SELECT group_concat(tag) FROM tags WHERE node_id = found.id"
    return SqlStatement(
        f"SELECT found.*, ({tiers} AND tag >= 'tier:' AND tag < 'tier;')"
        f" FROM ({statement.sql}) AS found",
        statement.parameters,
    )


def _tier(tags: str | None) -> str | None:
    return model.tier(tags.split(",")) if tags else None


def _count(connections: Sequence[Connection], statement: SqlStatement) -> int:
    total: int = sum(_run(connection, statement).fetchone()[0] for connection in connections)
    return total
