"""`ctx move`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import table, warn_of_redaction
from ctx.cli.options import flag, session_option
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.memory.graph import PROJECT, USER
from ctx.operations.move import MoveResult, move

EXAMPLES = """
ctx move 01M7ESYZ1SB4 --project                  share it with the project
ctx move 01M7ESYZ1SB4 --user                     keep it to yourself again
ctx move 01M7ESYZ1SB4 01M7ESYZ1ZB1 --project     several, with the edges between them
ctx move 01M7ESYZ1SB4 --user --dry-run           show what would change
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "ids", several=True)
    where = parser.add_mutually_exclusive_group(required=True)
    flag(where, "--user", "to your own store")
    flag(where, "--project", "to the project's store, and git")
    flag(parser, "--drop-edges", "drop edges that cannot move")
    arguments.dry_run(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    target = PROJECT if options.project else USER
    with opening.writing(settings, output) as memory:
        node_ids = [memory.graph.find(text) for text in options.ids]
        moved = move(
            memory, node_ids, target, drop_edges=options.drop_edges, dry_run=options.dry_run
        )
    output.show(moved, render)
    warn_of_redaction(moved.redacted, output)


def render(moved: MoveResult) -> list[Block]:
    where = "the project" if moved.scope == PROJECT else "your own store"
    if not moved.moved:
        there = count(len(moved.unchanged), "node is", "nodes are")
        return [Line(f"Unchanged: {there} already in {where}.")]
    verb = "Would move" if moved.dry_run else "Moved"
    blocks: list[Block] = [
        Line(f"{verb} {count(len(moved.moved), 'node')} to {where}:"),
        table(moved.moved, moved.short_ids),
    ]
    if moved.dropped:
        verb = "would stay" if moved.dry_run else "stayed"
        blocks.append(Line(f"{count(len(moved.dropped), 'edge')} {verb} behind."))
    return blocks
