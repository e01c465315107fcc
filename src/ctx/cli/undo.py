"""`ctx undo`"""

import argparse
from itertools import islice

from ctx import clock
from ctx.cli import arguments, opening
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output, Table, count, listing, since
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.memory import undo as memory_undo
from ctx.operations.undo import Changes, Undone, find, newest, take_back

EXAMPLES = """
ctx undo                  take back the last change of this session
ctx undo --list           what was changed lately, by whom
ctx undo 01M7ETGP2Q       take back one change, also an undoing
ctx undo --dry-run        only say what would be taken back
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "change", nargs="?", metavar="CHANGE", help="as `--list` shows it (default: the last)"
    )
    parser.add_argument("--list", action="store_true", help="list the changes, newest first")
    arguments.limit(parser)
    arguments.dry_run(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.list:
        with opening.reading(settings, output) as memory:
            found = memory_undo.changes(memory.graph, settings.session)
            output.show(Changes(tuple(islice(found, options.limit or None))), render_changes)
        return
    with opening.writing(settings, output) as memory:
        change = find(memory, options.change) if options.change else newest(memory)
        undone = take_back(memory, change, dry_run=options.dry_run)
    output.show(undone, render)
    for kept in undone.kept:
        output.warn(f"{kept.what} of {short(kept.subject)} was changed since, and stays.")


def render_changes(changes: Changes) -> list[Block]:
    now = clock.now_ms()
    rows = [
        (
            made.id,
            since(made.at, now),
            made.action,
            count(made.records, "record"),
            made.session,
            "undone" if made.undone else "",
        )
        for made in changes.changes
    ]
    if not rows:
        return [Line("Nothing was changed yet.")]
    headings = ("change", "age", "by", "what", "session", "")
    return [Table(headings, rows, ("id", "age", "type", "", "dim", "dim"))]


def render(undone: Undone) -> list[Block]:
    verb = "Would undo" if undone.dry_run else "Undid"
    made = undone.change
    return [
        Line(f"{verb} {made.action} of {made.at} (change {made.id}):"),
        *listing(("what",), [(what,) for what in undone.what]),
    ]
