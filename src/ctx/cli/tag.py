"""`ctx tag`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with, session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations.tag import TagResult, tag

EXAMPLES = """
ctx tag 01M7ESYZ1SB4 project:shop
ctx tag 01M7ESYZ1SB4 task:current tier:working    a tier replaces the one before
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    added = parser.add_argument("tags", nargs="+", metavar="TAG", help="namespace:value")
    complete_with(added, "tag")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        tagged = tag(memory, memory.graph.find(options.id), options.tags)
    output.show(tagged, render)


def render(tagged: TagResult) -> list[Block]:
    if not tagged.added and not tagged.removed:
        return [Line(f"Unchanged: {tagged.short_id} has {_tag_list(tagged.node.tags)}")]
    signs = [f"+ {word}" for word in tagged.added] + [f"- {word}" for word in tagged.removed]
    verb = "Tagged" if tagged.added else "Untagged"
    return [Line(f"{verb}: {tagged.short_id} {', '.join(signs)}")]


def _tag_list(tags: tuple[str, ...]) -> str:
    return " ".join(tags) or "no tags"
