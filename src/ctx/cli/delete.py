"""`ctx delete`"""

import argparse
from collections.abc import Sequence

from ctx.cli import arguments, opening
from ctx.cli import settings as surroundings
from ctx.cli.nodes import preview, table
from ctx.cli.options import session_option, yes_option
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.operations.delete import (
    DeleteResult,
    Deletion,
    delete,
    deletion,
    files_of,
    is_kept_until_commit,
)

EXAMPLES = """
ctx delete 01M7ESYZ1SB4
ctx delete 01M7ESYZ1SB4 --cascade     and what was derived from it
ctx delete 01M7ESYZ1SB4 --dry-run     show what would be deleted
ctx restore 01M7ESYZ1SB4              restore it
"""

_FILES_NAMED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "ids", several=True)
    parser.add_argument(
        "--cascade", action="store_true", help="also delete nodes derived from these"
    )
    arguments.dry_run(parser)
    yes_option(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        named = [memory.graph.find(text) for text in options.ids]
        planned = deletion(memory.graph, named, cascade=options.cascade)
        deleted = DeleteResult(
            planned.nodes, planned.short_ids, planned.dependents, options.dry_run
        )
        if planned.dependents and not options.dry_run:
            if surroundings.stdin_is_terminal():
                output.confirm(f"{dependents_text(planned)} Continue?", yes=options.yes)
            else:
                output.warn(dependents_text(planned))
        if not options.dry_run:
            delete(memory, [node.id for node in planned.nodes])
        files = files_of(memory, planned.nodes)
        until_commit = is_kept_until_commit(memory, planned.nodes)
    output.show(deleted, render)
    if not options.dry_run:
        note_kept_files(files, output)
        if deleted.deleted:
            note_restoring(len(deleted.deleted), until_commit, output)


def dependents_text(deletion: Deletion) -> str:
    """The nodes that depend on deleted ones; empty if there are none."""
    if not deletion.dependents:
        return ""
    names = ", ".join(deletion.short_ids[node.id] for node in deletion.dependents[:5])
    rest = "" if len(deletion.dependents) <= 5 else ", …"
    resting = count(len(deletion.dependents), "node depends", "nodes depend")
    return f"{resting} on deleted nodes: {names}{rest}."


def note_kept_files(files: Sequence[str], output: Output) -> None:
    """Note that the files of deleted nodes are not deleted."""
    if files:
        names = ", ".join(files[:_FILES_NAMED])
        more = f" and {len(files) - _FILES_NAMED:,} more" if len(files) > _FILES_NAMED else ""
        stay = "stays" if len(files) == 1 else "stay"
        output.note(f"{names}{more} {stay} on disk; delete what you no longer need with `git rm`.")


def note_restoring(number: int, until_commit: bool, output: Output) -> None:
    them = "it" if number == 1 else "them"
    until = " until the next commit" if until_commit else ""
    output.note(f"To restore {them}{until}: `ctx undo`")


def render(deleted: DeleteResult) -> list[Block]:
    verb = "Would delete" if deleted.dry_run else "Deleted"
    if not deleted.deleted:
        return [Line("Nothing to delete.")]
    if len(deleted.deleted) == 1:
        node = deleted.deleted[0]
        return [Line(f"{verb}: {deleted.short_ids[node.id]} {node.type}: {preview(node)}")]
    return [
        Line(f"{verb} {count(len(deleted.deleted), 'node')}:"),
        table(deleted.deleted, deleted.short_ids),
    ]
