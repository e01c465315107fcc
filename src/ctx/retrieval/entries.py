"""Nodes as entries of a context, read in parts, so that whoever has enough can stop."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.graph import Graph
from ctx.memory.model import Node
from ctx.retrieval.compose import Entry

_FIRST_PART = 50
_LARGEST_PART = 200


class Edges(NamedTuple):
    """What a node rests on and what it was made from."""

    depends_on: tuple[NodeId, ...] = ()
    derived_from: tuple[NodeId, ...] = ()


class Loaded(NamedTuple):
    node: Node
    short_id: str
    edges: Edges
    entry: Entry


def load(
    graph: Graph, node_ids: Iterable[NodeId], kept: Collection[NodeId] | None = None
) -> Iterator[Loaded]:
    """The nodes in their order. Those that must be named are the kept ones, else the pinned."""
    waiting = iter(node_ids)
    size = _FIRST_PART
    while part := list(islice(waiting, size)):
        size = min(size * 2, _LARGEST_PART)
        nodes = list(graph.nodes(part))
        edges = _edges(graph, [node.id for node in nodes])
        newer = [node.superseded_by for node in nodes if node.superseded_by]
        others = [end for each in edges.values() for end in each.depends_on]
        names = graph.shown([*(node.id for node in nodes), *others, *newer])
        types = graph.types_of([*others, *newer])
        for node in nodes:
            tier = model.tier(node.tags)
            out = edges.get(node.id, Edges())
            rationale = node.metadata.get("rationale")
            entry = Entry(
                f"{node.type}:{names[node.id]}",
                node.type,
                tier,
                node.content,
                node.tags,
                rationale if isinstance(rationale, str) else "",
                [f"{types[end]}:{names[end]}" for end in out.depends_on],
                f"{types[node.superseded_by]}:{names[node.superseded_by]}"
                if node.superseded_by
                else "",
                tier == model.PINNED if kept is None else node.id in kept,
            )
            yield Loaded(node, names[node.id], out, entry)


def _edges(graph: Graph, node_ids: Iterable[NodeId]) -> dict[NodeId, Edges]:
    found: dict[NodeId, Edges] = {}
    for from_id, to_id, edge_type in graph.ends(node_ids, ("DEPENDS_ON", "DERIVED_FROM")):
        depends_on, derived_from = found.get(from_id, Edges())
        if edge_type == "DEPENDS_ON":
            found[from_id] = Edges((*depends_on, to_id), derived_from)
        else:
            found[from_id] = Edges(depends_on, (*derived_from, to_id))
    return found
