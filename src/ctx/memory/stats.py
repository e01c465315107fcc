"""Counts of nodes, edges, tags and tokens, read from indexes where possible."""

from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory import model
from ctx.memory.graph import PROJECT, Graph
from ctx.memory.graphs import Graphs


class TypeCount(NamedTuple):
    type: str
    nodes: int


class TierCount(NamedTuple):
    tier: str
    nodes: int
    tokens: int


class ScopeCount(NamedTuple):
    scope: str
    nodes: int
    staged: int
    """How many of them have staged records."""


class MemoryStats(NamedTuple):
    nodes: int
    tokens: int
    types: tuple[TypeCount, ...]
    edges: int
    tags: int
    """How many distinct tags there are."""
    tiers: tuple[TierCount, ...]
    """A pinned node can also have another tier."""
    no_tier: int
    """Nodes that search finds but no context shows."""
    superseded: int
    views: int


def memory_stats(graphs: Graphs) -> MemoryStats:
    """The totals over all graphs."""
    every = [_graph_stats(graph) for graph in graphs.graphs]
    if len(every) == 1:
        return every[0]
    known = [*model.NODE_TYPES, *sorted({t.type for one in every for t in one.types})]
    counts = {
        word: sum(t.nodes for one in every for t in one.types if t.type == word) for word in known
    }
    tiers = zip(*(one.tiers for one in every), strict=True)
    return MemoryStats(
        sum(one.nodes for one in every),
        sum(one.tokens for one in every),
        tuple(TypeCount(word, nodes) for word, nodes in counts.items() if nodes),
        sum(one.edges for one in every),
        len(graphs.tag_counts()),
        tuple(
            TierCount(same[0].tier, sum(t.nodes for t in same), sum(t.tokens for t in same))
            for same in tiers
        ),
        sum(one.no_tier for one in every),
        sum(one.superseded for one in every),
        len(graphs.views()),
    )


def type_counts(graphs: Graphs) -> tuple[TypeCount, ...]:
    """The number of nodes of each type, the most frequent first."""
    counts: dict[str, int] = {}
    for graph in graphs.graphs:
        for known in _types(graph):
            counts[known.type] = counts.get(known.type, 0) + known.nodes
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return tuple(TypeCount(*item) for item in ordered)


def by_scope(graphs: Graphs) -> tuple[ScopeCount, ...]:
    return tuple(
        ScopeCount(
            graph.scope,
            _number(graph, "SELECT count(*) FROM nodes"),
            _number(graph, _STAGED) if graph.scope == PROJECT else 0,
        )
        for graph in graphs.graphs
    )


def _graph_stats(graph: Graph) -> MemoryStats:
    types = _types(graph)
    return MemoryStats(
        sum(count.nodes for count in types),
        _number(graph, f"SELECT {_TOKENS} FROM nodes AS n INDEXED BY idx_nodes_row"),
        types,
        _number(graph, "SELECT count(*) FROM edges"),
        _number(graph, _DISTINCT_TAGS),
        tuple(_tier(graph, tier) for tier in _TIERS),
        _number(graph, _WITHOUT_TIER),
        _number(graph, "SELECT count(*) FROM nodes WHERE nodes.superseded_by IS NOT NULL"),
        _number(graph, "SELECT count(*) FROM views"),
    )


_TOKENS = "coalesce(sum(n.token_estimate), 0)"
_TIERS = (model.PINNED, model.REFERENCE, model.WORKING, model.OFF_CONTEXT)
_WITHOUT_TIER = """
SELECT (SELECT count(*) FROM nodes) - (SELECT count(DISTINCT node_id)
FROM tags INDEXED BY idx_tags_tier WHERE tag >= 'tier:' AND tag < 'tier;')
"""
_STAGED = """
SELECT count(DISTINCT n.id) FROM batches AS b
JOIN records AS r ON r.batch = b.number JOIN nodes AS n ON n.id = r.subject
WHERE b.session IS NOT NULL
"""
# Skips from one tag to the next in a few thousand steps; a count reads every tag of every node.
_DISTINCT_TAGS = """
WITH RECURSIVE known(tag) AS (
    SELECT min(tag) FROM tags
    UNION ALL
    SELECT (SELECT min(tags.tag) FROM tags WHERE tags.tag > known.tag)
    FROM known WHERE known.tag IS NOT NULL
)
SELECT count(tag) FROM known
"""


def _types(graph: Graph) -> tuple[TypeCount, ...]:
    rows = dict(graph.connection.execute("SELECT type, count(*) FROM nodes GROUP BY type"))
    known = [word for word in model.NODE_TYPES if word in rows]
    others = sorted(word for word in rows if word not in model.NODE_TYPES)
    return tuple(TypeCount(word, rows[word]) for word in (*known, *others))


def _tier(graph: Graph, tier: str) -> TierCount:
    nodes, tokens = graph.connection.execute(
        f"SELECT count(*), {_TOKENS} FROM tags t"
        " JOIN nodes n INDEXED BY idx_nodes_row ON n.id = t.node_id WHERE t.tag = ?",
        (tier,),
    ).fetchone()
    return TierCount(tier, nodes, int(tokens))


def _number(graph: Graph, sql: str) -> int:
    return int(graph.connection.execute(sql).fetchone()[0])


def count_nodes(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM nodes").fetchone()[0])


def has_nodes(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM nodes LIMIT 1").fetchone() is not None
