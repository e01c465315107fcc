"""`ctx rebuild`"""

import argparse

from ctx.cli.opening import open_workspace, refuse_untrusted, warn_of_damage
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output, count, size
from ctx.cli.settings import Settings
from ctx.operations import rebuild
from ctx.operations.rebuild import RebuildResult

EXAMPLES = """
ctx rebuild           update the index, and remove damaged ones
ctx rebuild --full    rebuild it from the objects
ctx rebuild --text    only the text index
ctx rebuild --scc     only the cycles in the code
"""


def configure(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    flag(how, "--incremental", "only what is missing or damaged (default)")
    flag(how, "--full", "delete every index and rebuild")
    flag(how, "--text", "only the text index")
    flag(how, "--scc", "only the cycles in the code")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    refuse_untrusted(settings, "`ctx rebuild`")
    workspace = open_workspace(settings, output)
    if options.text:
        output.show(rebuild.text(workspace), render)
        return
    how = (
        rebuild.rebuild_all if options.full else rebuild.scc if options.scc else rebuild.incremental
    )
    with output.progress("Rebuilding") as tick:
        done = how(workspace, tick)
    output.show(done, render)
    warn_of_damage(workspace.memory, output)


def render(done: RebuildResult) -> list[Block]:
    blocks: list[Block] = [] if done.how == "scc" else [_memory(done)]
    if done.removed and done.how == "incremental":
        blocks.append(Line(f"{count(done.removed, 'damaged index', 'damaged indexes')} removed."))
    if done.code and done.code.parsed:
        known = f"{count(done.code.items, 'item')} in {count(done.code.parsed, 'file')}"
        blocks.append(Line(f"The code: {known}, {count(done.code.edges, 'edge')} between them."))
    if done.scc and (done.how == "scc" or done.scc.files or done.scc.items):
        files = count(done.scc.file_cycles, "group")
        items = count(done.scc.item_cycles, "group")
        blocks.append(Line(f"Cycles: {files} of files, {items} of items (`ctx code cycles`)."))
    return blocks


def _memory(done: RebuildResult) -> Block:
    verb = {
        "incremental": "The index is up to date:",
        "full": "Rebuilt the index:",
        "text": "Rebuilt the text index:",
    }[done.how]
    made_of = f"{count(done.nodes, 'node')} of {count(done.records, 'record')}"
    return Line(f"{verb} {made_of} in {count(done.commits, 'commit')} ({size(done.bytes)}).")
