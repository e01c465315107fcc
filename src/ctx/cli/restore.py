"""`ctx restore`"""

import argparse

from ctx.cli import opening
from ctx.cli.arguments import dry_run
from ctx.cli.nodes import preview
from ctx.cli.options import flag, session_option, yes_option
from ctx.cli.output import Block, Line, Output, age_text, count, listing, size
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.operations import store
from ctx.operations.delete import RestoreResult, restore
from ctx.operations.store_backups import BackupList, RestoreBackupResult

EXAMPLES = """
ctx restore 01M7ESYZ1SB4       a deleted node, with its tags and edges
ctx list --deleted             deleted nodes
ctx restore --backup           the backups of your store, newest first
ctx restore --backup latest    restore the newest one; the current store is kept
ctx undo                       undo the last change
"""

_LIST = ""


def configure(parser: argparse.ArgumentParser) -> None:
    help_text = "ids of deleted nodes, or their beginnings"
    parser.add_argument("ids", nargs="*", metavar="ID", help=help_text)
    parser.add_argument(
        "--backup",
        nargs="?",
        const=_LIST,
        metavar="NAME",
        help="restore a backup of your store: its name, or `latest`; without: list them",
    )
    flag(parser, "--keep-newer", "with --backup: keep changes made after the backup")
    dry_run(parser)
    yes_option(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.backup is not None:
        _restore_backup(options, settings, output)
        return
    if not options.ids:
        raise UsageError(
            "No id given.", hint="`ctx list --deleted` shows ids; `--backup` lists backups."
        )
    if options.dry_run or options.keep_newer:
        raise UsageError("--dry-run and --keep-newer need --backup.")
    with opening.writing(settings, output) as memory:
        restored = restore(memory, [memory.graph.find_deleted(text) for text in options.ids])
    output.show(restored, render)


def _restore_backup(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.operations import store_backups

    if options.ids:
        raise UsageError("Give node ids or --backup, not both.")
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
        restored = store_backups.restore(
            path,
            settings.user_store.home,
            backup,
            wanted,
            keep_newer=options.keep_newer,
            dry_run=options.dry_run,
        )
    output.show(restored, render_restored)


def render(restored: RestoreResult) -> list[Block]:
    return [
        Line(f"Restored: {restored.short_ids[node.id]} {node.type}: {preview(node)}")
        for node in restored.nodes
    ]


def render_backups(listed: BackupList) -> list[Block]:
    if not listed.backups:
        return [Line("No backups yet. To make one: `ctx store backup`")]
    rows = [
        (
            each.name,
            age_text(each.at),
            "unreadable" if each.nodes is None else count(each.nodes, "node"),
            size(each.bytes),
            each.why,
        )
        for each in listed.backups
    ]
    return listing(("name", "age", "nodes", "size", "why"), rows)


def render_restored(restored: RestoreBackupResult) -> list[Block]:
    verb = "Would restore" if restored.dry_run else "Restored"
    nodes = count(restored.nodes, "node")
    blocks: list[Block] = [Line(f"{verb} {restored.backup}: {nodes}.")]
    newer = count(restored.newer, "record")
    if restored.was_damaged:
        blocks.append(Line("The store was damaged."))
    if restored.taken:
        blocks.append(Line(f"{newer} newer than the backup: kept."))
    elif restored.newer:
        blocks.append(Line(f"{newer} newer than the backup: dropped (see --keep-newer)."))
    if restored.kept:
        blocks.append(Line(f"The previous store is kept: {restored.kept}"))
    if restored.waiting:
        blocks.append(Line(f"{count(restored.waiting, 'event')} waiting to be processed."))
    return blocks
