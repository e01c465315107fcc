"""`ctx sessions rebuild`"""

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from ctx.cli import opening
from ctx.cli.output import Block, Line, Output, Table, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError

if TYPE_CHECKING:
    from ctx.operations.session_rebuild import RebuildSessionsResult

EXAMPLES = """
ctx sessions rebuild --dry-run    show what would change in this project
ctx sessions rebuild              rebuild the sessions of this project
ctx sessions rebuild 5dd6 9a1c    rebuild two sessions
ctx sessions rebuild --all        rebuild the sessions of every project
ctx undo                          revert it
"""

_SHORT = 12
_LONGEST = 60


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.named and options.all:
        raise UsageError("--all cannot be used with session ids.")
    from ctx.operations.session_rebuild import rebuild

    with (
        opening.writing(settings, output) as memory,
        output.progress("Rebuilding sessions") as tick,
    ):
        project = None if options.all else memory.project
        result = rebuild(memory, options.named, project, dry_run=options.dry_run, tick=tick)
    output.show(result, render)
    if result.backup:
        output.note(f"Backup: {result.backup}")
    if result.change:
        output.note(f"To revert it: `ctx undo {result.change}`")


def render(result: "RebuildSessionsResult") -> list[Block]:
    blocks: list[Block] = []
    if result.sessions:
        rows = [
            (
                each.id[:_SHORT],
                *(f"{number:,}" for number in (each.new, each.changed, each.withdrawn)),
                _cut(each.what),
            )
            for each in result.sessions
        ]
        headings = ("id", "new", "changed", "withdrawn", "what")
        blocks.append(Table(headings, rows, ("id", "number", "number", "number", "text")))
        verb = "Would rebuild" if result.dry_run else "Rebuilt"
        sessions = count(len(result.sessions), "session")
        counts = f"{count(result.new, 'node')} new, {result.changed:,} changed"
        blocks.append(Line(f"{verb} {sessions}: {counts}, {result.withdrawn:,} withdrawn."))
    if result.unchanged:
        are = "is" if result.unchanged == 1 else "are"
        blocks.append(Line(f"{count(result.unchanged, 'session')} {are} up to date."))
    for reason, number in Counter(each.reason for each in result.skipped).items():
        blocks.append(Line(f"Skipped {count(number, 'session')}: {reason}.", "dim"))
    return blocks or [Line("No sessions to rebuild.")]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
