"""The edge batches of a commit: edges of memory and edges read from files.

A commit holds its edges in addition to the records, in a form that does not need the rest of the
graph: one commit shows what it relates, and why. Edges from files are included only for files that
were added; all others stay in the code index.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ctx import clock
from ctx.memory import model
from ctx.memory.graph import Graph
from ctx.memory.records import Record
from ctx.objects.commits import WorkStep
from ctx.objects.object_store import Object, decode, typed
from ctx.objects.object_types import (
    BatchEdge,
    EdgeBatch,
    EdgeEvidence,
    Endpoint,
    EvidenceTool,
    StepKind,
)
from ctx.objects.repository import Repository
from ctx.project import staging

SURE = 600
"""In per mille. Less certain edges are stored as records only."""

_TOOLS = {"cargo": EvidenceTool.CARGO, "parser": EvidenceTool.PARSER}
_USER_AUTHORS = frozenset({"cli", "page", "narrative"})
_MOST_NAMED = 8


def edges_of_records(graph: Graph, records: Sequence[Record]) -> Object | None:
    """The edges that exist after these records; None if there are none."""
    put: dict[tuple[str, str], Record] = {}
    for record in records:
        if record.kind == "edge.put":
            put[record.subject, record.key] = record
        elif record.kind == "edge.delete":
            put.pop((record.subject, record.key), None)
    ends = [end for record in put.values() for end in (record.subject, record.target or "")]
    types = {node.id: node.type for node in graph.nodes(dict.fromkeys(ends))}  # type: ignore[arg-type]
    edges = [
        _edge(record, types)
        for record in put.values()
        if record.subject in types and record.target in types and _certainty(record) >= SURE
    ]
    if not edges:
        return None
    edges.sort(key=lambda edge: (edge.from_.id, edge.label, edge.to.id))
    at = max(clock.stamp_ms(record.stamp) for record in put.values()) // 1000
    return typed(EdgeBatch(tuple(edges), max(at, 0)))


def _edge(record: Record, types: dict[Any, str]) -> BatchEdge:
    label, _, to_id = record.key.partition(" ")
    metadata = record.body.get("metadata", {})
    tool = str(metadata.get("tool", record.author))
    known = EvidenceTool.HUMAN if tool in _USER_AUTHORS else _TOOLS.get(tool, EvidenceTool.LLM)
    return BatchEdge(
        Endpoint(types[record.subject], record.subject),
        label,
        Endpoint(types[to_id], to_id),
        EdgeEvidence(known, _certainty(record)),
    )


def _certainty(record: Record) -> int:
    value = record.body.get("metadata", {}).get("confidence", model.CERTAIN)
    return value if isinstance(value, int) and 0 <= value <= model.CERTAIN else 0


# Edges from files


def batches_of_files(repository: Repository, steps: Sequence[WorkStep]) -> Iterator[EdgeBatch]:
    """The edge batches of added files, newest first."""
    for step in steps:
        if step.work.step_kind in (StepKind.FILE_READ, StepKind.FILE_WRITE):
            values = (decode(repository.everything.read(id)) for id in step.work.payload)
            yield from (value for value in values if isinstance(value, EdgeBatch))


def edges_of_files(repository: Repository, steps: Sequence[WorkStep]) -> Object | None:
    """The edges from files of a chain, as far as the files have not changed since."""
    batches = list(batches_of_files(repository, steps))
    if not batches:
        return None
    last = {file.file_id: file.blob_id for file in staging.files(repository, steps).values()}
    edges: dict[tuple[Endpoint, str, Endpoint], BatchEdge] = {}
    at = 0
    for batch in batches:
        for edge in batch.edges:
            span = edge.evidence.span
            if span is not None and last.get(span.file_id) == span.blob_id:
                edges.setdefault((edge.from_, edge.label, edge.to), edge)
                at = max(at, batch.created_at)
    return typed(EdgeBatch(tuple(edges.values()), at)) if edges else None


def summary_lines(edges: Object | None) -> list[str]:
    """One line for each file: its module, what it defines, and the number of edges."""
    batch = decode(edges) if edges else None
    if not isinstance(batch, EdgeBatch):
        return []
    defined: dict[str, list[Endpoint]] = {}
    files: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for edge in batch.edges:
        file_id = edge.evidence.span.file_id if edge.evidence.span else ""
        counts[file_id] += 1
        if edge.label == "DEFINES":
            files[edge.from_.id] = file_id
            defined.setdefault(edge.from_.id, []).append(edge.to)
    return [_line(path, defined[path], counts[files[path]]) for path in sorted(files)]


def _line(path: str, defined: Sequence[Endpoint], edges: int) -> str:
    module = next((end.id for end in defined if end.kind == "module"), "")
    names = [end.id.removeprefix(module).lstrip(":.") for end in defined if end.id != module]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    count = "1 edge" if edges == 1 else f"{edges:,} edges"
    parts = (path, module, ", ".join(names[:_MOST_NAMED]) + more)
    return f"{': '.join(filter(None, parts))} ({count})"
