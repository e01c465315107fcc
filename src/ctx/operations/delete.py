"""Delete nodes, and bring them back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import walk
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.model import Node
from ctx.workspace import Memory


class Deletion(NamedTuple):
    """What a deletion takes away, before or after it happened."""

    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    dependents: tuple[Node, ...]
    """Nodes that stay, although they were made from these or rest on them."""


class Deleted(NamedTuple):
    """The answer of `ctx delete` and `ctx forget`."""

    deleted: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    dependents: tuple[Node, ...]
    dry_run: bool


class Restored(NamedTuple):
    """The answer of `ctx restore`."""

    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]


def deletion(graph: Graph, node_ids: Sequence[NodeId], *, cascade: bool) -> Deletion:
    """What would be deleted; with `cascade` also what was derived from it, and so on."""
    wanted = dict.fromkeys(node_ids)
    if cascade:
        derived = walk.all_behind(graph, node_ids, ("DERIVED_FROM",), reverse=True)
        wanted.update(dict.fromkeys(derived))
    nodes = tuple(graph.nodes(wanted))
    dependents = {
        edge.from_id: None
        for node_id in wanted
        for edge_type in ("DERIVED_FROM", "DEPENDS_ON")
        for edge in graph.edges(node_id, "in", edge_type)
        if edge.from_id not in wanted
    }
    others = tuple(graph.nodes(dependents))
    return Deletion(nodes, graph.shown(node.id for node in (*nodes, *others)), others)


def delete(memory: Memory, node_ids: Iterable[NodeId], action: str = "delete") -> None:
    with changing(memory.graph, action, memory.who) as change:
        for node_id in node_ids:
            if memory.graph.has(node_id):
                change.delete_node(node_id)


def restore(memory: Memory, node_ids: Sequence[NodeId]) -> Restored:
    with changing(memory.graph, "restore", memory.who) as change:
        for node_id in node_ids:
            if not memory.graph.has(node_id):
                change.restore_node(node_id)
    nodes = tuple(memory.graph.nodes(node_ids))
    return Restored(nodes, memory.graph.shown(node.id for node in nodes))
