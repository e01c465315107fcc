"""`ctx export`"""

import argparse
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.cli import arguments, opening
from ctx.cli.output import Block, Line, Output, count, size
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.exchange import graph_json
from ctx.exchange.graph_json import ExportCounts
from ctx.ids import NodeId
from ctx.memory.graph import PROJECT, Graph
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


EXAMPLES = """
ctx export > backup.json                              the project store, or yours
ctx export --user > mine.json                         your store
ctx export --output backup.json                       written atomically
ctx export "tag:project:shop" > shop.json             some nodes, and the edges between them
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.query(parser, "only nodes that match, and the edges between them", required=False)
    arguments.output_file(parser)
    arguments.scope(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    query = arguments.query_of(options)
    # Refuse `ctx export backup.json`: a query that looks like a file is a mistake.
    name = options.query[0] if len(options.query) == 1 else ""
    if name.endswith((".json", ".jsonl")) or (":" not in name and "/" in name):
        raise UsageError(
            f"{name[:80]!r} is not a query.", hint="To write to a file: `ctx export --output FILE`"
        )
    with opening.reading(settings, output) as memory:
        chosen = arguments.within(memory, options)
        graph = chosen.project_memory.graph if chosen.project_memory else chosen.user
        if path := arguments.output_path(options, settings):
            opening.refuse_untrusted(settings, "--output")
            home = settings.user_store.home
            exported = export_to_file(graph, query, path, home, force=options.force)
            output.show(exported, render)
        else:
            # The document is the output, whatever the output format.
            export(graph, query, output.result)
        has_more = chosen.project_memory is not None and options.scope is None
    if has_more:
        output.note("This is the project store. To export your own: `ctx export --user`")


def render(exported: ExportResult) -> list[Block]:
    what = f"{count(exported.nodes, 'node')}, {count(exported.edges, 'edge')}"
    where = " of the project" if exported.scope == PROJECT else ""
    return [Line(f"Exported {what}{where} to {exported.path} ({size(exported.bytes)}).")]


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
