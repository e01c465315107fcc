"""`ctx restore`"""

import argparse

from ctx.cli import opening
from ctx.cli.arguments import dry_run
from ctx.cli.nodes import preview
from ctx.cli.options import completing, session_option, yes_option
from ctx.cli.output import Block, Line, Output, count, listing, since, size
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.operations import store
from ctx.operations.delete import RestoreResult, restore
from ctx.operations.store_backups import BackupList, RestoreBackupResult

EXAMPLES = """
ctx restore 01M7ESYZ1SB4       a deleted node, with its tags and edges
ctx list --deleted             what there is to restore
ctx restore --backup           the backups of your store, newest first
ctx restore --backup latest    go back to the newest one; what is there now is kept
ctx undo                       take back the last change as a whole
"""

_LIST = ""


def configure(parser: argparse.ArgumentParser) -> None:
    told = "ids of deleted nodes, or their beginnings"
    completing(parser.add_argument("ids", nargs="*", metavar="ID", help=told), "deleted")
    parser.add_argument(
        "--backup",
        nargs="?",
        const=_LIST,
        metavar="NAME",
        help="go back to a backup of your store: its name, or `latest`; without: list them",
    )
    parser.add_argument(
        "--keep-newer",
        action="store_true",
        help="with --backup: also what was said since, as where the store is damaged",
    )
    dry_run(parser)
    yes_option(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.backup is not None:
        _restore_backup(options, settings, output)
        return
    if not options.ids:
        raise UsageError(
            "There is no ID.", hint="`ctx list --deleted` shows ids; `--backup` lists backups."
        )
    if options.dry_run or options.keep_newer:
        raise UsageError("--dry-run and --keep-newer go with --backup.")
    with opening.writing(settings, output) as memory:
        restored = restore(memory, [memory.graph.find_deleted(text) for text in options.ids])
    output.show(restored, render)


def _restore_backup(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.operations import store_backups

    if options.ids:
        raise UsageError("Give ids of nodes, or --backup with the name of one.")
    path = settings.database
    if options.backup == _LIST:
        output.show(store_backups.list_backups(path), render_backups)
        return
    backup = store_backups.find_backup(path, options.backup)
    with store.candidate(path, backup.path) as wanted:
        if not options.dry_run:
            nodes = count(wanted.nodes, "node")
            question = f"Replace the store by {backup.name} ({nodes})? It is kept beside it."
            output.confirm(question, yes=options.yes)
        with output.progress("Restoring") as tick:
            restored = store_backups.restore(
                path,
                settings.user_store.home,
                backup,
                wanted,
                keep_newer=options.keep_newer,
                dry_run=options.dry_run,
                tick=tick,
            )
    output.show(restored, render_restored)


def render(restored: RestoreResult) -> list[Block]:
    return [
        Line(f"Restored: {restored.short_ids[node.id]} {node.type}: {preview(node)}")
        for node in restored.nodes
    ]


def render_backups(found: BackupList) -> list[Block]:
    if not found.backups:
        return [Line("There are no backups yet. `ctx store backup` makes one.")]
    rows = [
        (
            each.name,
            since(each.at),
            "unreadable" if each.nodes is None else count(each.nodes, "node"),
            size(each.bytes),
            each.why,
        )
        for each in found.backups
    ]
    return listing(("name", "age", "nodes", "size", "why"), rows)


def render_restored(restored: RestoreBackupResult) -> list[Block]:
    verb = "Would go" if restored.dry_run else "Went"
    nodes = count(restored.nodes, "node")
    blocks: list[Block] = [Line(f"{verb} back to {restored.backup}: {nodes}.")]
    newer = count(restored.newer, "record")
    if restored.was_damaged:
        blocks.append(Line("The store was damaged."))
    if restored.taken:
        blocks.append(Line(f"{newer} that the backup does not have: taken along."))
    elif restored.newer:
        blocks.append(Line(f"{newer} that the backup does not have: left, see --keep-newer."))
    if restored.kept:
        blocks.append(Line(f"What was there before is kept: {restored.kept}"))
    if restored.waiting:
        blocks.append(Line(f"{count(restored.waiting, 'event')} in the spool: taken in as always."))
    return blocks
