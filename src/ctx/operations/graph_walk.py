"""The nodes that a walk came to, ready to be shown: for `trace` and `related`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.memory.walk import ReachedNode


class GraphWalk(NamedTuple):
    """The answer of `ctx trace` and `ctx related`."""

    start: NodeId
    steps: tuple[ReachedNode, ...]
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    left_out: int


def graph_walk(
    graph: Graphs,
    start: NodeId,
    steps: Sequence[ReachedNode],
    *,
    limit: int = 0,
    include_superseded: bool = True,
) -> GraphWalk:
    nodes = {node.id: node for node in graph.nodes(dict.fromkeys(step.id for step in steps))}
    wanted = [step for step in steps if include_superseded or not nodes[step.id].superseded_by]
    kept = wanted[:limit] if limit else wanted
    reached = dict.fromkeys(step.id for step in kept)
    return GraphWalk(
        start,
        tuple(kept),
        tuple(nodes[node_id] for node_id in reached),
        graph.shown(reached),
        len(wanted) - len(kept),
    )
