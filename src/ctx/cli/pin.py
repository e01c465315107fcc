"""`ctx pin` and `ctx unpin`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import preview
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.memory import model
from ctx.operations.tag import TagResults, pin, unpin

EXAMPLES = {
    "pin": """
ctx pin 01M7ESYZ1SB4      show it in every context
ctx unpin 01M7ESYZ1SB4    back to the tier it had
""",
    "unpin": """
ctx unpin 01M7ESYZ1SB4
ctx unpin 01M7ESYZ1SB4 && ctx tag 01M7ESYZ1SB4 tier:reference
""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "ids", several=True)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    is_pinning = options.command == "pin"
    change = pin if is_pinning else unpin
    with opening.writing(settings, output) as memory:
        changed = change(memory, [memory.graph.find(text) for text in options.ids])
    output.show(changed, render_pinned if is_pinning else render_unpinned)
    for each in changed.nodes:
        if each.removed and model.tier(each.node.tags) is None:
            output.note(
                f"Agents are not shown {each.short_id} at start. To show it: "
                f"`ctx tag {each.short_id} {model.REFERENCE}`"
            )


def render_pinned(pinned: TagResults) -> list[Block]:
    return [
        Line(
            f"{'Pinned' if each.added else 'Already pinned'}: {each.short_id} {preview(each.node)}"
        )
        for each in pinned.nodes
    ]


def render_unpinned(unpinned: TagResults) -> list[Block]:
    return [
        Line(
            f"{'Unpinned' if each.removed else 'Not pinned'}: {each.short_id} {preview(each.node)}"
        )
        for each in unpinned.nodes
    ]
