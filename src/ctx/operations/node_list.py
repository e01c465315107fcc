"""Nodes as they are listed: with ids short enough to type, and how many there are."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node


class NodeList(NamedTuple):
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    """How each is shown: long enough to name it in this store."""
    total: int
    """How many there are, of which the first are here."""
    scopes: tuple[str, ...]
    """The stores that were asked: `project`, `user`, or both."""


def node_list(graph: Graphs, node_ids: Iterable[NodeId], total: int | None = None) -> NodeList:
    nodes = tuple(graph.nodes(node_ids))
    shown = graph.shown(node.id for node in nodes)
    return NodeList(nodes, shown, len(nodes) if total is None else total, graph.scopes)
