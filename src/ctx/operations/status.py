"""How much there is in memory."""

import os
from typing import NamedTuple

from ctx.memory import model, pending
from ctx.memory.graph import Graph
from ctx.sqlite.connection import size_of
from ctx.workspace import Memory


class TypeCount(NamedTuple):
    type: str
    nodes: int


class TierCount(NamedTuple):
    tier: str
    nodes: int
    tokens: int


class Status(NamedTuple):
    """The answer of `ctx status`."""

    database: str
    bytes: int
    new: bool
    """Whether this very command has made it."""
    nodes: int
    tokens: int
    types: tuple[TypeCount, ...]
    edges: int
    tags: int
    """How many different ones there are."""
    tiers: tuple[TierCount, ...]
    """A pinned node may have another tier too."""
    no_tier: int
    """Nodes that search finds and no context shows."""
    superseded: int
    views: int
    project: str | None
    task: str | None


def status(memory: Memory, *, new: bool) -> Status:
    graph = memory.graph
    path = memory.path
    types = _types(graph)
    return Status(
        path,
        size_of(path) + size_of(f"{path}-wal"),
        new,
        sum(each.nodes for each in types),
        _number(graph, "SELECT total(token_estimate) FROM nodes INDEXED BY idx_nodes_row"),
        types,
        _number(graph, "SELECT count(*) FROM edges"),
        _number(graph, _DISTINCT_TAGS),
        tuple(_tier(graph, tier) for tier in _TIERS),
        _number(graph, _WITHOUT_TIER),
        _number(graph, "SELECT count(*) FROM nodes WHERE superseded_by IS NOT NULL"),
        _number(graph, "SELECT count(*) FROM views"),
        memory.project,
        pending.current_task(graph, memory.task_key),
    )


def as_text(found: Status) -> str:
    """As a person reads it, and as an agent is given it."""
    size = "new" if found.new else f"{found.bytes / 1_000_000:,.1f} MB"
    lines = [f"Database: {_from_home(found.database)} ({size})"]
    if not found.nodes:
        lines.append("Nodes: 0")
    else:
        lines.append(f"Nodes: {found.nodes:,} (estimated {found.tokens:,} tokens)")
        lines += [f"  {each.type}: {each.nodes:,}" for each in found.types]
        lines += [f"Edges: {found.edges:,}", f"Tags: {found.tags:,} unique"]
        if found.superseded:
            lines.append(f"Superseded: {found.superseded:,}")
    if found.views > 1:
        lines.append(f"Views: {found.views:,}")
    lines += [f"Project: {found.project}"] if found.project else []
    lines += [f"Task: {found.task}"] if found.task else []
    if found.nodes:
        lines += ["", "Tier breakdown:"]
        for tier, nodes, tokens in found.tiers:
            name = tier.removeprefix("tier:")
            lines.append(
                f"  {name}: {nodes:,} {'node' if nodes == 1 else 'nodes'} ({tokens:,} tokens)"
            )
        if found.no_tier:
            noun = "node" if found.no_tier == 1 else "nodes"
            lines.append(f"  none: {found.no_tier:,} {noun}, which no context shows")
    return "\n".join(lines) + "\n"


_TIERS = (model.PINNED, model.REFERENCE, model.WORKING, model.OFF_CONTEXT)
_WITHOUT_TIER = """
SELECT (SELECT count(*) FROM nodes) - (SELECT count(DISTINCT node_id)
FROM tags INDEXED BY idx_tags_tier WHERE tag >= 'tier:' AND tag < 'tier;')
"""
# From tag to next tag: a few thousand steps, where counting would read every tag of every node.
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
        "SELECT count(*), total(n.token_estimate) FROM tags t"
        " JOIN nodes n INDEXED BY idx_nodes_row ON n.id = t.node_id WHERE t.tag = ?",
        (tier,),
    ).fetchone()
    return TierCount(tier, nodes, int(tokens))


def _number(graph: Graph, sql: str) -> int:
    return int(graph.connection.execute(sql).fetchone()[0])


def _from_home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
