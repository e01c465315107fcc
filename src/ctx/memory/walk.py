"""Follows edges: where a node comes from, what is derived from it, and what is related."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node

PROVENANCE = ("DERIVED_FROM", "DEPENDS_ON", "SUPERSEDES")
"""The edge types that state where a node comes from."""
MOST = 10_000
"""The maximum number of nodes that a walk reaches."""

_BATCH = 400


class ReachedNode(NamedTuple):
    """A node that a walk reached, and how."""

    id: NodeId
    depth: int
    type: str
    """The type of the edge it was reached by; empty for the start."""
    outward: bool
    """Whether that edge points to it."""
    previous: NodeId | None
    repeated: bool = False
    """Whether the walk reached it before: a cycle, or two paths to one node."""


def trace(
    graph: Graphs,
    start: NodeId,
    *,
    reverse: bool = False,
    edge_types: Sequence[str] = PROVENANCE,
    depth: int | None = None,
    limit: int = MOST,
) -> list[ReachedNode]:
    """The nodes that a node is derived from, recursively; in reverse, those derived from it.

    Depth first: each node comes before the nodes it is derived from. A node that was reached before
    is listed again but not followed again, so a cycle ends.
    """
    edges = _edges_reached(graph, start, edge_types, reverse, limit)
    reached = [ReachedNode(start, 0, "", not reverse, None)]
    # The depth at which each node was followed: one that is reached at a lower depth is followed
    # again.
    followed = {start: 0}
    waiting = [iter(edges.get(start, ()))]
    path = [start]
    while waiting and len(followed) < limit and len(reached) < 4 * limit:
        step = next(waiting[-1], None)
        if step is None or (depth is not None and len(waiting) > depth):
            waiting.pop()
            path.pop()
            continue
        edge_type, node_id = step
        here = len(waiting)
        nearer = depth is not None and here < followed.get(node_id, here)
        repeated = node_id in followed and not nearer
        reached.append(ReachedNode(node_id, here, edge_type, not reverse, path[-1], repeated))
        if not repeated:
            followed[node_id] = here
            waiting.append(iter(edges.get(node_id, ())))
            path.append(node_id)
    return reached


def all_behind(
    graph: Graphs, starts: Sequence[NodeId], edge_types: Sequence[str], *, reverse: bool = False
) -> list[NodeId]:
    """All nodes that edges of some types reach from the start nodes, without these."""
    reached = dict.fromkeys(starts)
    ring = list(reached)
    while ring:
        following: list[NodeId] = []
        for _, _, there, _ in _steps(graph, ring, edge_types, reverse):
            if there not in reached:
                reached[there] = None
                following.append(there)
        ring = following
    return [node_id for node_id in reached if node_id not in starts]


def _edges_reached(
    graph: Graphs, start: NodeId, edge_types: Sequence[str], reverse: bool, limit: int
) -> dict[NodeId, list[tuple[str, NodeId]]]:
    """All edges that a walk in one direction may take, read one depth at a time."""
    edges: dict[NodeId, list[tuple[str, NodeId]]] = {}
    ring, visited = [start], {start}
    while ring and len(visited) < limit:
        following: list[NodeId] = []
        for here, edge_type, there, _ in _steps(graph, ring, edge_types, reverse):
            edges.setdefault(here, []).append((edge_type, there))
            if there not in visited:
                visited.add(there)
                following.append(there)
        ring = following
    return edges


def related(
    graph: Graphs,
    seeds: Sequence[NodeId],
    depth: int,
    *,
    edge_types: Sequence[str] = (),
    limit: int = MOST,
) -> list[ReachedNode]:
    """The nodes within `depth` edges of the seeds, nearest first; by default along all edge types.

    Edges are followed in both directions. The seeds come first, at depth 0.
    """
    reached = {seed: ReachedNode(seed, 0, "", True, None) for seed in seeds}
    ring = list(reached)
    for step in range(1, depth + 1):
        following: dict[NodeId, ReachedNode] = {}
        for reverse in (False, True):
            for here, edge_type, there, _ in _steps(graph, ring, edge_types, reverse):
                if there not in reached and there not in following:
                    following[there] = ReachedNode(there, step, edge_type, not reverse, here)
        for node_id in sorted(following, reverse=True):
            if len(reached) >= limit:
                return list(reached.values())
            reached[node_id] = following[node_id]
        ring = list(following)
        if not ring:
            break
    return list(reached.values())


def edges_from(graph: Graphs, nodes: Sequence[NodeId]) -> list[tuple[NodeId, str, NodeId]]:
    """The edges that begin at some nodes, each as its start, its type and its end."""
    steps = _steps(graph, nodes, (), False)
    return [(here, edge_type, there) for here, edge_type, there, _ in steps]


def _steps(
    graph: Graphs, ring: Iterable[NodeId], edge_types: Sequence[str], reverse: bool
) -> list[tuple[NodeId, str, NodeId, str]]:
    """The edges from these nodes, or to them, sorted: here, type, there, when."""
    here, there = ("to_id", "from_id") if reverse else ("from_id", "to_id")
    # Many edges match by type, few by node: the unary plus disables the type index.
    types = f" AND +type IN ({', '.join('?' * len(edge_types))})" if edge_types else ""
    nodes = list(ring)
    steps: list[tuple[NodeId, str, NodeId, str]] = []
    for at in range(0, len(nodes), _BATCH):
        part = nodes[at : at + _BATCH]
        places = ", ".join("?" * len(part))
        for connection in graph.connections:
            steps += connection.execute(
                f"SELECT {here}, type, {there}, created_at FROM edges"
                f" WHERE {here} IN ({places}){types} ORDER BY {here}, created_at, id",
                (*part, *edge_types),
            )
        if len(graph.graphs) > 1:
            steps += _edges_between(graph, here, there, part, edge_types)
    return steps


def _edges_between(
    graph: Graphs, here: str, there: str, part: Sequence[NodeId], edge_types: Sequence[str]
) -> list[tuple[NodeId, str, NodeId, str]]:
    """The edges from one graph to another whose ends both exist."""
    places = ", ".join("?" * len(part))
    rows = [
        row
        for connection in graph.connections
        for row in connection.execute(
            f"SELECT {here}, type, {there}, created_at FROM outside WHERE {here} IN ({places})"
            f" ORDER BY {here}, created_at, id",
            part,
        )
    ]
    return [row for row in rows if graph.has(row[2]) and (not edge_types or row[1] in edge_types)]


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
