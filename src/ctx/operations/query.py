"""Find nodes by filters, by words, or by both."""

from collections.abc import Mapping
from typing import NamedTuple

from ctx import clock
from ctx.ids import NodeId
from ctx.memory.graph import Graph
from ctx.memory.model import Node
from ctx.memory.query import evaluate
from ctx.memory.query.compile import Scope
from ctx.memory.query.parse import Query


class Found(NamedTuple):
    """The answer of `ctx query` and `ctx search`."""

    query: str
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    total: int
    """How many match, of which the first are here."""
    partial: bool
    """Whether no node has all the words, so that these have only some of them."""
    beginnings: bool = False
    """Whether no node has any of them, so that these have words that begin so."""


def find(graph: Graph, query: Query, scope: Scope, limit: int) -> Found:
    """The first nodes that match; a limit of 0 is none."""
    now = clock.now_ms()
    matches = evaluate.matching(graph.connection, query, scope, now, limit=limit or None)
    nodes = tuple(graph.nodes(matches.ids))
    if not nodes and query.mode == "text":
        begun = evaluate.beginning_with(graph.connection, query, scope, now, limit=limit or None)
        nodes = tuple(graph.nodes(begun))
        shown = graph.shown(node.id for node in nodes)
        return Found(query.text, nodes, shown, len(nodes), partial=bool(nodes), beginnings=True)
    total = len(nodes)
    if limit and total == limit:
        total = max(total, evaluate.count(graph.connection, query, scope, now))
    return Found(query.text, nodes, graph.shown(node.id for node in nodes), total, matches.partial)
