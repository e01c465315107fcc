"""`ctx related`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import preview
from ctx.cli.output import Block, Line, Output, Table, beyond_limit
from ctx.cli.settings import Settings
from ctx.memory import walk
from ctx.memory.walk import GraphWalk, graph_walk

EXAMPLES = """
ctx related 01M7ESYZ1SB4              what is one step away
ctx related 01M7ESYZ1SB4 --depth=2    two steps
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    parser.add_argument(
        "--depth",
        type=arguments.positive_number,
        default=1,
        metavar="N",
        help="the number of edges to follow, in both directions (default: 1)",
    )
    arguments.edge_type(parser, "only edges of this type")
    arguments.limit(parser, default=50)
    arguments.superseded(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    types = (options.type,) if options.type else ()
    with opening.reading(settings, output) as memory:
        start = memory.graph.find(options.id)
        steps = walk.related(memory.graph, [start], options.depth, edge_types=types)
        result = graph_walk(
            memory.graph,
            start,
            steps[1:],
            limit=options.limit,
            include_superseded=options.include_superseded,
        )
        output.show(result, render)


def render(result: GraphWalk) -> list[Block]:
    if not result.steps:
        return [Line("No related nodes.")]
    nodes = {node.id: node for node in result.nodes}
    rows = []
    for step in result.steps:
        node = nodes[step.id]
        arrow = f"── {step.type} →" if step.outward else f"← {step.type} ──"
        rows.append((str(step.depth), arrow, result.short_ids[step.id], node.type, preview(node)))
    headings = ("steps", "edge", "id", "type", "content")
    table = Table(headings, rows, ("dim", "", "id", "type", "text"))
    return [table, *beyond_limit(result.left_out, "")]
