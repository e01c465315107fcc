"""`ctx trace`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import preview
from ctx.cli.output import Block, Line, Output, Table, count
from ctx.cli.settings import Settings
from ctx.memory import model, walk
from ctx.operations.graph_walk import GraphWalk, graph_walk

EXAMPLES = """
ctx trace 01M7ESYZ1SB4               everything it was derived from
ctx trace 01M7ESYZ1SB4 --reverse     what depends on it
ctx trace 01M7ESYZ1SB4 --type=DERIVED_FROM --depth=2
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    parser.add_argument("--reverse", action="store_true", help="follow the edges backwards")
    arguments.edge_type(parser, "only edges of this type (default: DERIVED_FROM, DEPENDS_ON, …)")
    parser.add_argument(
        "--depth", type=arguments.whole_number, metavar="N", help="the number of edges to follow"
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    types = (model.edge_type(options.type),) if options.type else walk.PROVENANCE
    with opening.reading(settings, output) as memory:
        start = memory.graph.find(options.id)
        steps = walk.trace(
            memory.graph, start, reverse=options.reverse, edge_types=types, depth=options.depth
        )
        output.show(graph_walk(memory.graph, start, steps), render)


def render(found: GraphWalk) -> list[Block]:
    """A tree, drawn by indentation: each line says how it was reached from the one above it."""
    rows = []
    nodes = {node.id: node for node in found.nodes}
    for step in found.steps:
        node = nodes[step.id]
        arrow = f"{step.type} → " if step.outward else f"← {step.type} "
        reached = "  " * step.depth + (arrow if step.type else "")
        again = " (see above)" if step.repeated else ""
        rows.append((f"{reached}{found.short_ids[step.id]}", node.type, preview(node) + again))
    blocks: list[Block] = [Table(("node", "type", "content"), rows, ("id", "type", "text"))]
    if len(found.steps) == 1:
        forward = found.steps[0].outward
        blocks.append(Line("Not derived from anything." if forward else "Nothing depends on it."))
    elif len(found.steps) >= walk.MOST:
        blocks.append(Line(f"… cut off after {count(walk.MOST, 'node')}; see --depth."))
    return blocks
