"""`ctx edges`"""

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from ctx.cli import arguments, opening
from ctx.cli.nodes import edge_rows
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.ids import NodeId
from ctx.memory.graph import DIRECTIONS
from ctx.memory.model import Edge, Node

EXAMPLES = """
ctx edges 01M7ESYZ1SB4
ctx edges 01M7ESYZ1SB4 --direction=in     what points at it
ctx edges 01M7ESYZ1SB4 --type=DEPENDS_ON
"""


class NodeEdges(NamedTuple):
    """The answer of `ctx edges`."""

    node: Node
    edges: tuple[Edge, ...]
    others: tuple[Node, ...]
    """The nodes at the other ends."""
    short_ids: Mapping[NodeId, str]


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    parser.add_argument(
        "--direction", choices=DIRECTIONS, default="both", help="only edges this way"
    )
    arguments.edge_type(parser, "only edges of this type")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.reading(settings, output) as memory:
        graph = memory.graph
        node_id = graph.find(options.id)
        edges = tuple(graph.edges(node_id, options.direction, options.type))
        ends = dict.fromkeys(end for edge in edges for end in (edge.from_id, edge.to_id))
        ends.pop(node_id, None)
        others = tuple(graph.nodes(ends))
        output.show(
            NodeEdges(graph.node(node_id), edges, others, graph.shown([node_id, *ends])), render
        )


def render(result: NodeEdges) -> list[Block]:
    if not result.edges:
        return [Line("No edges.")]
    others = {other.id: other for other in result.others}
    return [edge_rows(result.edges, result.node.id, others, result.short_ids)]
