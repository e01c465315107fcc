"""Relate two nodes, and undo it."""

from typing import NamedTuple

from ctx.errors import UsageError
from ctx.ids import NodeId, short
from ctx.memory import model, succession
from ctx.memory.changes import changing
from ctx.memory.model import Edge, Evidence, Redaction
from ctx.workspace import Memory

CONFIDENCE = {"high": 1000, "medium": 600, "low": 300}
"""In per mille, for the words of the command line."""


class Linked(NamedTuple):
    """The answer of `ctx link`."""

    edge: Edge
    from_short: str
    to_short: str
    new: bool
    redacted: tuple[Redaction, ...]


class Unlinked(NamedTuple):
    """The answer of `ctx unlink`."""

    removed: tuple[Edge, ...]
    from_short: str
    to_short: str


def link(
    memory: Memory, from_id: NodeId, to_id: NodeId, edge_type: str, evidence: Evidence | None = None
) -> Linked:
    """Add an edge. `SUPERSEDES` takes its target out of lists and contexts.

    Without evidence it rests on being said, and what an edge that is there rests on stays.
    """
    graph = memory.graph
    kind = model.edge_type(edge_type)
    said = evidence or Evidence(memory.who.author)
    if said.confidence < CONFIDENCE["medium"] and not said.reason.strip():
        raise UsageError(
            "An edge of low confidence needs a reason.",
            hint="Give --reason; without one, keep it as a node of type hypothesis.",
        )
    with changing(graph, "link", memory.who) as change:
        if kind == "SUPERSEDES" and to_id in succession.superseding(graph.connection, from_id):
            raise UsageError(
                f"{short(to_id)} supersedes {short(from_id)} already; both cannot be so.",
                hint=f"ctx unlink {short(to_id)} {short(from_id)} --type=SUPERSEDES",
            )
        present = graph.edge(from_id, to_id, kind)
        new = (evidence is not None or not present) and change.link(from_id, to_id, kind, said)
    edge = graph.edge(from_id, to_id, kind)
    assert edge is not None
    shown = graph.shown([from_id, to_id])
    return Linked(edge, shown[from_id], shown[to_id], new, tuple(change.redacted))


def unlink(memory: Memory, from_id: NodeId, to_id: NodeId, edge_type: str | None) -> Unlinked:
    """Remove the edge of a type between two nodes, or all of them."""
    graph = memory.graph
    kind = model.edge_type(edge_type) if edge_type else None
    with changing(graph, "unlink", memory.who) as change:
        removed = [edge for edge in graph.edges(from_id, "out", kind) if edge.to_id == to_id]
        for edge in removed:
            change.unlink(from_id, to_id, edge.type)
    shown = graph.shown([from_id, to_id])
    return Unlinked(tuple(removed), shown[from_id], shown[to_id])
