"""`ctx untag`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with, session_option
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.cli.tag import render
from ctx.operations.tag import untag

EXAMPLES = """
ctx untag 01M7ESYZ1SB4 task:current
ctx untag 01M7ESYZ1SB4 tier:working project:shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    removed = parser.add_argument("tags", nargs="+", metavar="TAG", help="the tags to remove")
    complete_with(removed, "tag")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        untagged = untag(memory, memory.graph.find(options.id), options.tags)
    output.show(untagged, render)
