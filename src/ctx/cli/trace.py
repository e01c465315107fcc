"""`ctx trace`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import preview
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output, Table, count
from ctx.cli.settings import Settings
from ctx.memory import walk
from ctx.operations.trace import SourceStep, TraceResult, trace

EXAMPLES = """
ctx trace 01M7ESYZ1SB4               everything it was derived from, and what was said
ctx trace 01M7ESYZ1SB4 --reverse     what depends on it
ctx trace 01M7ESYZ1SB4 --type=DERIVED_FROM --depth=2
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    flag(parser, "--reverse", "follow the edges backwards")
    arguments.edge_type(parser, "only edges of this type (default: DERIVED_FROM, DEPENDS_ON, …)")
    parser.add_argument(
        "--depth", type=arguments.positive_number, metavar="N", help="the number of edges to follow"
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    types = (options.type,) if options.type else walk.PROVENANCE
    with opening.reading(settings, output) as memory:
        start = memory.graph.find(options.id)
        result = trace(
            memory, start, reverse=options.reverse, edge_types=types, depth=options.depth
        )
        output.show(result, render)


def render(result: TraceResult) -> list[Block]:
    """An indented tree: each line names the edge from the line above it."""
    rows = []
    quotes: dict[str, list[SourceStep]] = {}
    for each in result.evidence:
        quotes.setdefault(each.node, []).append(each)
    nodes = {node.id: node for node in result.nodes}
    for step in result.steps:
        node = nodes[step.id]
        arrow = f"{step.type} → " if step.outward else f"← {step.type} "
        reached = "  " * step.depth + (arrow if step.type else "")
        again = " (see above)" if step.repeated else ""
        rows.append((f"{reached}{result.short_ids[step.id]}", node.type, preview(node) + again))
        if not step.repeated:
            indent = "  " * (step.depth + 1)
            rows += [(f"{indent}{each.at}", each.by, each.text) for each in quotes.get(node.id, ())]
    blocks: list[Block] = [Table(("node", "type", "content"), rows, ("id", "type", "text"))]
    if result.forgotten:
        steps = count(result.forgotten, "step")
        blocks.append(
            Line(f"{steps} behind it {'is' if result.forgotten == 1 else 'are'} no longer stored.")
        )
    if len(result.steps) == 1 and not result.evidence:
        forward = result.steps[0].outward
        blocks.append(Line("Not derived from anything." if forward else "Nothing depends on it."))
    elif len(result.steps) >= walk.MOST:
        blocks.append(Line(f"… cut off after {count(walk.MOST, 'node')}; see --depth."))
    return blocks
