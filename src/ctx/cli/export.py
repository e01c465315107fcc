"""`ctx export`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.output import Block, Line, Output, count, size
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.graph import PROJECT
from ctx.operations.export import ExportResult, export, export_to_file

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
    _refuse_file(options.query)
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


def _refuse_file(words: list[str]) -> None:
    """Refuse `ctx export backup.json`: a query that looks like a file is a mistake."""
    name = words[0] if len(words) == 1 else ""
    if name.endswith((".json", ".jsonl")) or (":" not in name and "/" in name):
        raise UsageError(
            f"{name[:80]!r} is not a query.", hint="To write to a file: `ctx export --output FILE`"
        )


def render(exported: ExportResult) -> list[Block]:
    what = f"{count(exported.nodes, 'node')}, {count(exported.edges, 'edge')}"
    where = " of the project" if exported.scope == PROJECT else ""
    return [Line(f"Exported {what}{where} to {exported.path} ({size(exported.bytes)}).")]
