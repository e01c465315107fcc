"""The relations that a commit brings, put together: one edge each, the surest.

They stand in the commit beside the records that say the same, in a form that does not need the
rest of the graph: who looks at one commit sees what it relates, and why.
"""

from collections.abc import Sequence
from typing import Any

from ctx import clock
from ctx.memory import model
from ctx.memory.graph import Graph
from ctx.memory.records import Record
from ctx.objects.model import Edge, EdgeBatch, Endpoint, Evidence, EvidenceTool
from ctx.objects.store import Object, typed

SURE = 600
"""In per mille. What is less certain stays a record alone."""

_TOOLS = {"cargo": EvidenceTool.CARGO, "parser": EvidenceTool.PARSER}
_PEOPLE = frozenset({"cli", "narrative"})


def curated(graph: Graph, said: Sequence[Record]) -> Object | None:
    """The edges that some records leave behind; None where there are none."""
    found: dict[tuple[str, str], Record] = {}
    for record in said:
        if record.kind == "edge.put":
            found[record.subject, record.key] = record
        elif record.kind == "edge.delete":
            found.pop((record.subject, record.key), None)
    ends = [end for record in found.values() for end in (record.subject, record.target or "")]
    types = {node.id: node.type for node in graph.nodes(dict.fromkeys(ends))}  # type: ignore[arg-type]
    edges = [
        _edge(record, types)
        for record in found.values()
        if record.subject in types and record.target in types and _certainty(record) >= SURE
    ]
    if not edges:
        return None
    edges.sort(key=lambda edge: (edge.from_.id, edge.label, edge.to.id))
    at = max(clock.stamp_ms(record.stamp) for record in found.values()) // 1000
    return typed(EdgeBatch(tuple(edges), max(at, 0)))


def _edge(record: Record, types: dict[Any, str]) -> Edge:
    label, _, to_id = record.key.partition(" ")
    metadata = record.body.get("metadata", {})
    tool = str(metadata.get("tool", record.author))
    known = EvidenceTool.HUMAN if tool in _PEOPLE else _TOOLS.get(tool, EvidenceTool.LLM)
    return Edge(
        Endpoint(types[record.subject], record.subject),
        label,
        Endpoint(types[to_id], to_id),
        Evidence(known, _certainty(record)),
    )


def _certainty(record: Record) -> int:
    value = record.body.get("metadata", {}).get("confidence", model.CERTAIN)
    return value if isinstance(value, int) and 0 <= value <= model.CERTAIN else 0
