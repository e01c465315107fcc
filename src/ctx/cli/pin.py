"""`ctx pin`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import preview
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations.tag import TagResults, pin

EXAMPLES = """
ctx pin 01M7ESYZ1SB4      show it in every context
ctx unpin 01M7ESYZ1SB4    back to the tier it had
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "ids", several=True)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        pinned = pin(memory, [memory.graph.find(text) for text in options.ids])
    output.show(pinned, render)


def render(pinned: TagResults) -> list[Block]:
    return [
        Line(
            f"{'Pinned' if each.added else 'Already pinned'}: {each.short_id} {preview(each.node)}"
        )
        for each in pinned.nodes
    ]
