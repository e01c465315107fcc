"""`ctx unpin`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import preview
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.memory import model
from ctx.operations.tag import TagResults, unpin

EXAMPLES = """
ctx unpin 01M7ESYZ1SB4
ctx unpin 01M7ESYZ1SB4 && ctx tag 01M7ESYZ1SB4 tier:reference
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "ids", several=True)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        unpinned = unpin(memory, [memory.graph.find(text) for text in options.ids])
    output.show(unpinned, render)
    for each in unpinned.nodes:
        if each.removed and model.tier(each.node.tags) is None:
            output.note(
                f"Agents are not shown {each.short_id} at start. To show it: "
                f"`ctx tag {each.short_id} {model.REFERENCE}`"
            )


def render(unpinned: TagResults) -> list[Block]:
    return [
        Line(
            f"{'Unpinned' if each.removed else 'Not pinned'}: {each.short_id} {preview(each.node)}"
        )
        for each in unpinned.nodes
    ]
