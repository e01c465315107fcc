"""`ctx tag` and `ctx untag`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with, session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations.tag import TagResult, tag, untag

EXAMPLES = {
    "tag": """
ctx tag 01M7ESYZ1SB4 project:shop
ctx tag 01M7ESYZ1SB4 task:current tier:working    a tier replaces the one before
""",
    "untag": """
ctx untag 01M7ESYZ1SB4 task:current
ctx untag 01M7ESYZ1SB4 tier:working project:shop
""",
}
_TAGS = {"tag": "namespace:value", "untag": "the tags to remove"}


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    help_text = _TAGS[parser.get_default("command")]
    complete_with(parser.add_argument("tags", nargs="+", metavar="TAG", help=help_text), "tag")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    change = tag if options.command == "tag" else untag
    with opening.writing(settings, output) as memory:
        changed = change(memory, memory.graph.find(options.id), options.tags)
    output.show(changed, render)


def render(changed: TagResult) -> list[Block]:
    if not changed.added and not changed.removed:
        tags = " ".join(changed.node.tags) or "no tags"
        return [Line(f"Unchanged: {changed.short_id} has {tags}")]
    signs = [f"+ {word}" for word in changed.added] + [f"- {word}" for word in changed.removed]
    verb = "Tagged" if changed.added else "Untagged"
    return [Line(f"{verb}: {changed.short_id} {', '.join(signs)}")]
