"""`ctx rebuild`"""

import argparse

from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, count, size
from ctx.cli.settings import Settings
from ctx.errors import ObjectNotFound
from ctx.operations import rebuild
from ctx.operations.rebuild import Rebuilt

EXAMPLES = """
ctx rebuild           bring the index up to date, and remove damaged ones
ctx rebuild --full    make it anew from the objects: the same heads give the same bytes
ctx rebuild --text    only the index of words
"""


def configure(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--incremental", action="store_true", help="only what is missing or damaged (default)"
    )
    how.add_argument("--full", action="store_true", help="delete every index, and make it anew")
    how.add_argument("--text", action="store_true", help="only the index of words")
    how.add_argument("--scc", action="store_true", help="the cycles of the code graph")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.scc:
        raise ObjectNotFound(
            "There is no code graph yet, so that it has no cycles to find.",
            hint="`ctx rebuild` without --scc makes the index of memory.",
        )
    workspace = open_workspace(settings, output)
    if options.full:
        with output.progress("Rebuilding") as tick:
            done = rebuild.full(workspace, tick)
    else:
        done = rebuild.text(workspace) if options.text else rebuild.incremental(workspace)
    output.show(done, render)


def render(done: Rebuilt) -> list[Block]:
    verb = {
        "incremental": "The index is up to date:",
        "full": "Rebuilt the index:",
        "text": "Rebuilt the index of words:",
    }[done.how]
    made_of = f"{count(done.nodes, 'node')} of {count(done.records, 'record')}"
    blocks: list[Block] = [
        Line(f"{verb} {made_of} in {count(done.commits, 'commit')} ({size(done.bytes)}).")
    ]
    if done.removed and done.how == "incremental":
        blocks.append(Line(f"{count(done.removed, 'damaged index', 'damaged indexes')} removed."))
    return blocks
