"""`ctx undo`"""

import argparse

from ctx import clock
from ctx.cli import arguments, opening
from ctx.cli.delete import note_kept_files
from ctx.cli.options import flag, session_option
from ctx.cli.output import Block, Line, Output, Table, age_text, beyond_limit, listing
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.operations.undo import ChangeList, UndoResult, list_changes, undo_change

EXAMPLES = """
ctx undo                  undo the last change of this session
ctx undo --list           recent changes
ctx undo 01M7ETGP2Q       undo one change, or redo it
ctx undo --dry-run        show what would be undone
"""


_MOST_WARNINGS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "change", nargs="?", metavar="CHANGE", help="a change from `--list` (default: the last)"
    )
    flag(parser, "--list", "list the changes, newest first")
    arguments.limit(parser)
    arguments.dry_run(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.list:
        with opening.reading(settings, output) as memory:
            listed = list_changes(memory, settings.session, options.limit)
            output.show(listed, render_changes)
        return
    with opening.writing(settings, output) as memory:
        undone = undo_change(memory, options.change, dry_run=options.dry_run)
    output.show(undone, render)
    for kept in undone.kept[:_MOST_WARNINGS]:
        output.warn(f"{kept.what} of {short(kept.subject)} changed since then and is kept.")
    if len(undone.kept) > _MOST_WARNINGS:
        output.warn(f"{len(undone.kept) - _MOST_WARNINGS:,} more changed since then and are kept.")
    note_kept_files(undone.files, output)
    for path in undone.documents:
        output.note(f"{path} is in git and keeps its text. Edit it to change that.")
    if undone.again:
        output.note(f"To import the sessions again: `{undone.again}`")
    elif undone.by:
        again = "undo" if undone.change.action == "undo" else "redo"
        output.note(f"To {again}: `ctx undo {undone.by}`")


def render_changes(changes: ChangeList) -> list[Block]:
    now = clock.now_ms()
    rows = []
    for made in changes.changes:
        more = f" (+ {made.records - 1:,} more)" if made.records > 1 else ""
        rows.append(
            (
                made.id,
                age_text(made.at, now),
                made.action,
                made.what + more,
                made.session,
                "undone" if made.undone else "",
            )
        )
    if not rows:
        return [Line("No changes yet.")]
    headings = ("change", "age", "by", "what", "session", "")
    table = Table(headings, rows, ("id", "age", "type", "text", "dim", "dim"))
    return [table, *beyond_limit(changes.more)]


def render(undone: UndoResult) -> list[Block]:
    made = undone.change
    if made.action == "undo":
        sentence = "Redone:" if undone.by else "Would redo:"
    else:
        verb = "Undone" if undone.by else "Would undo"
        sentence = f"{verb}: {made.action} at {made.at}"
    return [
        Line(sentence),
        *listing(("what",), [(what,) for what in undone.what]),
    ]
