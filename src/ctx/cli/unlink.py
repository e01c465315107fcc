"""`ctx unlink`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations.link import UnlinkResult, unlink

EXAMPLES = """
ctx unlink 01M7ESYZ1ZB1 01M7ESYZ1SB4                      every edge from the first to the second
ctx unlink 01M7ESYZ1ZB1 01M7ESYZ1SB4 --type=DEPENDS_ON    one of them
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "from_id")
    arguments.node(parser, "to_id")
    arguments.edge_type(parser, "only edges of this type")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        from_id, to_id = memory.graph.find(options.from_id), memory.graph.find(options.to_id)
        unlinked = unlink(memory, from_id, to_id, options.type)
    output.show(unlinked, render)


def render(unlinked: UnlinkResult) -> list[Block]:
    if not unlinked.removed:
        return [Line(f"Not linked: {unlinked.from_short} and {unlinked.to_short}")]
    return [
        Line(f"Unlinked: {unlinked.from_short} ── {edge.type} → {unlinked.to_short}")
        for edge in unlinked.removed
    ]
