"""Write a graph as JSON."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.exchange import graph_json
from ctx.exchange.graph_json import ExportCounts
from ctx.ids import NodeId
from ctx.memory.graph import Graph
from ctx.memory.query.compile import Scope
from ctx.operations import output_file


class ExportResult(NamedTuple):
    """The answer of `ctx export --output FILE`."""

    path: str
    nodes: int
    edges: int
    views: int
    bytes: int
    scope: str
    """Whose store it was: `project` or `user`."""


def export(graph: Graph, query: str | None, out: Callable[[str], object]) -> ExportCounts:
    """Hand the document on in parts.

    Everything is in it, also what is superseded; with a query, the nodes that match and the
    edges between them. Others may write meanwhile: it is the graph of one moment.
    """
    graph.connection.execute("BEGIN")
    try:
        return graph_json.write(graph, _matching_nodes(graph, query) if query else None, out)
    finally:
        graph.connection.execute("ROLLBACK")


def _matching_nodes(graph: Graph, query: str) -> Sequence[NodeId]:
    from ctx.memory.query import execute
    from ctx.memory.query.query_parser import parse

    scope, now = Scope(include_superseded=True), clock.now_ms()
    found = execute.matching((graph.connection,), parse(query), scope, now)
    # A guess is good enough to be read, not to be kept.
    return () if found.partial else _with_replacements(graph, dict.fromkeys(found.ids))


def _with_replacements(graph: Graph, chosen: dict[NodeId, None]) -> Sequence[NodeId]:
    """Without the node that took its place, one that is superseded would look as if it held."""
    replaced = [node for node in graph.nodes(chosen) if node.superseded_by]
    while gone := [n.id for n in replaced if n.id in chosen and n.superseded_by not in chosen]:
        for node_id in gone:
            del chosen[node_id]
    return tuple(chosen)


def export_to_file(
    graph: Graph, query: str | None, path: str, home: str, *, force: bool
) -> ExportResult:
    """The document as a file that is there whole or not at all."""
    with output_file.writing(home, path, force=force) as file:
        written = export(graph, query, file.write)
        file.flush()
        size = os.fstat(file.fileno()).st_size
    return ExportResult(path, *written, size, graph.scope)
