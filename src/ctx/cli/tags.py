"""`ctx tags`"""

import argparse
from typing import NamedTuple

from ctx.cli import opening
from ctx.cli.options import completing
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings
from ctx.memory.graph import TagCount

EXAMPLES = """
ctx tags                    every tag, and how many nodes have it
ctx tags --prefix=task:     those of one namespace
"""


class Tags(NamedTuple):
    """The answer of `ctx tags`."""

    tags: tuple[TagCount, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    prefix = parser.add_argument(
        "--prefix", default="", metavar="TEXT", help="only tags that begin with this"
    )
    completing(prefix, "tag")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.reading(settings, output) as memory:
        output.show(Tags(tuple(memory.graph.tag_counts(options.prefix))), render)


def render(tags: Tags) -> list[Block]:
    if not tags.tags:
        return [Line("No tags.")]
    rows = [(each.tag, f"{each.nodes:,}") for each in tags.tags]
    return [Table(("tag", "nodes"), rows, ("tags", ""))]
