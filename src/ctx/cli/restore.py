"""`ctx restore`"""

import argparse

from ctx.cli import opening
from ctx.cli.nodes import preview
from ctx.cli.options import completing, session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations.delete import Restored, restore

EXAMPLES = """
ctx restore 01M7ESYZ1SB4    a deleted node, with its tags and edges
ctx list --deleted          what there is to restore
ctx undo                    take back the last change as a whole
"""


def configure(parser: argparse.ArgumentParser) -> None:
    told = "ids of deleted nodes, or their beginnings"
    completing(parser.add_argument("ids", nargs="+", metavar="ID", help=told), "deleted")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        restored = restore(memory, [memory.graph.find_deleted(text) for text in options.ids])
    output.show(restored, render)


def render(restored: Restored) -> list[Block]:
    return [
        Line(f"Restored: {restored.short_ids[node.id]} {node.type}: {preview(node)}")
        for node in restored.nodes
    ]
