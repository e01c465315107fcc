"""Show a node: itself, its edges, its history."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx.ids import NodeId
from ctx.memory import records, replay
from ctx.memory.graph import Graph
from ctx.memory.model import Edge, Node
from ctx.memory.records import Record


class Version(NamedTuple):
    """One change to a node."""

    at: str
    change: str
    """What `ctx undo` takes to undo it."""
    action: str
    kind: str
    what: str
    """The change in a few words."""
    body: Mapping[str, Any]
    session: str
    author: str


class Shown(NamedTuple):
    """The answer of `ctx show`."""

    node: Node
    edges: tuple[Edge, ...] | None
    others: tuple[Node, ...]
    """The nodes at the other ends of the edges."""
    short_ids: Mapping[NodeId, str]
    history: tuple[Version, ...] | None


def show(graph: Graph, node_id: NodeId, *, with_edges: bool, with_history: bool) -> Shown:
    node = graph.node(node_id)
    edges = tuple(graph.edges(node_id)) if with_edges else None
    ends = [end for edge in edges or () for end in (edge.from_id, edge.to_id)]
    others = tuple(graph.nodes(dict.fromkeys(ends)))
    history = None
    if with_history:
        found = graph.history(node_id)
        history = tuple(_version(record, node_id) for record in found)
    short = graph.shown([node_id, *(other.id for other in others)])
    return Shown(node, edges, others, short, history)


def _version(record: Record, node_id: NodeId) -> Version:
    return Version(
        replay.at(record),
        record.change,
        record.action,
        record.kind,
        records.said(record, node_id),
        record.body,
        record.session,
        record.author,
    )
