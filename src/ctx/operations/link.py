"""Relate two nodes, and undo it."""

from typing import NamedTuple

from ctx.errors import UsageError
from ctx.ids import NodeId, short
from ctx.memory import materialise, model
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT
from ctx.memory.idempotency_keys import Claim
from ctx.memory.model import Edge, Evidence, Redaction
from ctx.workspace import Memory

CONFIDENCE = {"high": 1000, "medium": 600, "low": 300}
"""In per mille, for the words of the command line."""


class LinkResult(NamedTuple):
    """The answer of `ctx link`."""

    edge: Edge
    from_short: str
    to_short: str
    new: bool
    redacted: tuple[Redaction, ...]


class UnlinkResult(NamedTuple):
    """The answer of `ctx unlink`."""

    removed: tuple[Edge, ...]
    from_short: str
    to_short: str


def link(
    memory: Memory,
    from_id: NodeId,
    to_id: NodeId,
    edge_type: str,
    evidence: Evidence | None = None,
    claim: Claim | None = None,
) -> LinkResult:
    """Add an edge. `SUPERSEDES` removes its target from lists and contexts.

    Without evidence, the command itself is the evidence; an existing edge keeps its own.
    """
    graph = memory.graph
    kind = model.edge_type(edge_type)
    require_reason(evidence)
    scope = graph.holding(from_id).scope
    outside = graph.holding(to_id).scope != scope
    if outside:
        refuse_way_out(scope, kind, from_id, to_id)
    with memory.transaction("link", scope, claim=claim) as change:
        said = evidence
        if said is None and change.graph.edge(from_id, to_id, kind) is None:
            said = Evidence(memory.author)
        new = said is not None and draw(change, from_id, to_id, kind, said, outside=outside)
    graph = memory.graph
    edge = graph.edge(from_id, to_id, kind)
    assert edge is not None
    shown = graph.shown([from_id, to_id])
    return LinkResult(edge, shown[from_id], shown[to_id], new, tuple(change.redacted))


def require_reason(evidence: Evidence | None) -> None:
    if evidence and evidence.confidence < CONFIDENCE["medium"] and not evidence.reason.strip():
        raise UsageError(
            "An edge of low confidence needs a reason.",
            hint="Give --reason; without one, keep it as a node of type hypothesis.",
        )


def draw(
    change: Change, from_id: NodeId, to_id: NodeId, kind: str, said: Evidence, *, outside: bool
) -> bool:
    """Add an edge as part of a change; whether anything is new."""
    circle = materialise.superseding_nodes(change.graph.connection, from_id)
    if kind == "SUPERSEDES" and to_id in circle:
        raise UsageError(
            f"{short(to_id)} already supersedes {short(from_id)}.",
            hint=f"ctx unlink {short(to_id)} {short(from_id)} --type=SUPERSEDES",
        )
    return change.link(from_id, to_id, kind, said, outside=outside)


def refuse_way_out(scope: str, kind: str, from_id: NodeId, to_id: NodeId) -> None:
    """What a project knows must not rest on what only one person has."""
    if scope == PROJECT:
        raise UsageError(
            f"{short(from_id)} is in the project store and {short(to_id)} in yours: others"
            " could not follow the edge.",
            hint=f"`ctx move {short(to_id)} --project` moves it to the project first.",
        )
    if kind == "SUPERSEDES":
        raise UsageError(
            (
                f"{short(to_id)} is in the project store: a node in your own store"
                " cannot supersede it."
            ),
            hint=f"`ctx move {short(from_id)} --project` moves yours to the project first.",
        )


def unlink(memory: Memory, from_id: NodeId, to_id: NodeId, edge_type: str | None) -> UnlinkResult:
    """Remove the edge of a type between two nodes, or all of them."""
    graph = memory.graph
    kind = model.edge_type(edge_type) if edge_type else None
    with memory.transaction("unlink", graph.holding(from_id).scope) as change:
        found = change.graph.edges(from_id, "out", kind)
        removed = [edge for edge in found if edge.to_id == to_id]
        for edge in removed:
            change.unlink(from_id, to_id, edge.type)
    shown = memory.graph.shown([from_id, to_id])
    return UnlinkResult(tuple(removed), shown[from_id], shown[to_id])
