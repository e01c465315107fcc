"""`ctx timeline`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.compose import projects
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings
from ctx.operations.timeline import DEFAULT_LIMIT, Options, TimelineResult, timeline

EXAMPLES = """
ctx timeline 01M7ESYZ1SB4              what was added before and after a node, and its changes
ctx timeline agent-7                   a session: prompts, edits, commands, what was remembered
ctx timeline src/net/client.py         a file: sessions that changed it, commits, decisions
ctx timeline src/net/client.py -n 0    all of it
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "around", metavar="ID|PATH", help="a node, a session, or a file of this project"
    )
    arguments.limit(parser, DEFAULT_LIMIT)
    arguments.number(parser, "--before", "only the first N entries, to continue an earlier answer")
    projects(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.reading(settings, output) as memory:
        wanted = Options(options.around, options.limit, options.before, arguments.visible(options))
        found = timeline(memory, wanted)
    output.show(found, render)


def render(found: TimelineResult) -> list[Block]:
    head = found.id if found.around == "file" else f"{found.id}: {found.title}".rstrip(": ")
    blocks: list[Block] = [Line(f"{found.around} {head}", "heading")]
    if found.earlier:
        hint = f"  … {found.earlier:,} earlier (--before {found.earlier})"
        blocks.append(Line(hint, "dim"))
    rows = [
        (
            f"{'→ ' if each.is_center else '  '}{each.at[:16].replace('T', ' ')}",
            each.kind,
            each.id,
            each.text,
        )
        for each in found.entries
    ]
    if rows:
        blocks.append(Table(("at", "what", "id", "text"), rows, ("dim", "type", "id", "")))
    else:
        blocks.append(Line("Nothing is stored."))
    if found.later:
        blocks.append(Line(f"  … {found.later:,} later (--limit)", "dim"))
    return blocks
