"""`ctx store`"""

import argparse
import os

from ctx.cli import arguments, store_copy
from ctx.cli import options as shared
from ctx.cli.output import Block, Line, Output, age_text, count, listing, size
from ctx.cli.settings import Settings
from ctx.errors import DatabaseFailure
from ctx.operations import store
from ctx.operations.status import from_home
from ctx.operations.store import (
    StoreBackupResult,
    StoreCheck,
    StorePath,
    StoreRebuildResult,
    StoreRecovery,
    StoreRestoreResult,
    StoreStatus,
)
from ctx.sqlite.connection import path_text

EXAMPLES = """
ctx store                           where it is, its size, and its backups
ctx store check                     verify the file
ctx store backup                    copy it, while it is in use
ctx store restore ~/store.backup    restore a backup
ctx store recover --dry-run         what can be saved from a damaged store
ctx store copy --to ~/copy.db       copy it to another file, or to a server
ctx store path                      its location
"""

ALONE = "status"


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    shared.add_subcommand(
        group,
        "status",
        "show where the store is, its size, and its backups",
        "ctx store status\nctx store",
    )
    shared.add_subcommand(
        group,
        "check",
        "verify the file, and its tables against the records",
        "ctx store check\nctx store check --format json",
    )
    rebuild = shared.add_subcommand(
        group,
        "rebuild",
        "rebuild the tables and the text index from the records",
        "ctx store rebuild",
    )
    shared.yes_option(rebuild)
    backup = shared.add_subcommand(
        group,
        "backup",
        "copy the store, also while it is in use",
        "ctx store backup\nctx store backup ~/store.backup",
    )
    backup.add_argument(
        "file", nargs="?", metavar="FILE", help="where to (default: beside the store)"
    )
    restore = shared.add_subcommand(
        group,
        "restore",
        "replace the store with a backup; the old file is kept",
        "ctx store restore ~/store.backup\nctx store restore ~/store.backup --yes",
    )
    restore.add_argument("file", metavar="FILE", help="the backup")
    shared.yes_option(restore)
    recover = shared.add_subcommand(
        group,
        "recover",
        "recover a damaged store; the old file is kept",
        "ctx store recover --dry-run\nctx store recover",
    )
    arguments.dry_run(recover)
    copy = shared.add_subcommand(
        group,
        "copy",
        "copy a store to another file or to a PostgreSQL server, and back",
        store_copy.EXAMPLES.strip(),
    )
    store_copy.configure(copy)
    shared.add_subcommand(
        group, "path", "print the path of the store", "ctx store path\nctx store path --format json"
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    try:
        return _run(options, settings, output)
    except DatabaseFailure as error:
        from ctx.exchange.foreign import go_ctx

        if not go_ctx.is_go_store(settings.database):
            raise
        hint = "`ctx status` imports it, and keeps a copy."
        raise DatabaseFailure(error.message, hint=hint) from None


def _run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    path = settings.database
    match options.subcommand:
        case "status":
            output.show(store.status(path), render_status)
        case "check":
            with output.progress("Checking") as tick:
                checked = store.check(path, tick)
            output.show(checked, render_check)
            return 0 if checked.sound else 1
        case "rebuild":
            if not options.yes and (rows := store.unrecorded(path)):
                question = f"{count(rows, 'row')} without a record would be deleted. Continue?"
                output.confirm(question, yes=False)
            with output.progress("Rebuilding") as tick:
                output.show(store.rebuild(path, tick), render_rebuild)
        case "backup":
            target = _file(options.file, settings) if options.file else None
            output.show(store.back_up(path, target), render_backup)
        case "restore":
            with store.candidate(path, _file(options.file, settings)) as wanted:
                if store.locate(path).exists:
                    nodes = count(wanted.nodes, "node")
                    question = f"Replace the store by {path_text(wanted.source)} ({nodes})?"
                    output.confirm(question, yes=options.yes)
                output.show(store.restore(path, wanted), render_restore)
        case "recover":
            recover(path, output, dry_run=options.dry_run)
        case "copy":
            return store_copy.run(options, settings, output)
        case _:
            output.show(store.locate(path), render_path)
    return 0


def recover(path: str, output: Output, *, dry_run: bool = False, asks: bool = False) -> None:
    """Recover a damaged store. What is lost is shown before anything is replaced."""
    with output.progress("Reading") as tick:
        found = store.recover(path, dry_run=True, tick=tick)
    if found.recovered is None or dry_run:
        output.show(found, render_recovery)
        return
    is_asked = asks or (output.is_interactive and not found.recovered.is_complete)
    if is_asked or not found.recovered.is_complete:
        output.preview(render_recovery(found))
    if is_asked:
        output.confirm("Recover the store now? The damaged file is kept.", yes=False)
    with output.progress("Recovering") as tick:
        found = store.recover(path, dry_run=False, tick=tick)
    output.show(found, _render_replaced if is_asked else render_recovery)


def _file(name: str, settings: Settings) -> str:
    return os.path.abspath(os.path.join(settings.folder, settings.expanded(name)))


def render_status(found: StoreStatus) -> list[Block]:
    if not found.exists:
        return [Line(f"{from_home(found.path)} does not exist yet.")]
    backups = "none: `ctx store backup` makes one"
    if found.newest_backup:
        backups = f"{found.backups:,}, the newest {age_text(found.newest_backup)} old"
    return [Line(f"{from_home(found.path)} ({size(found.bytes)})"), Line(f"Backups: {backups}")]


def render_path(store: StorePath) -> list[Block]:
    return [Line(store.path)]


def render_check(checked: StoreCheck) -> list[Block]:
    if checked.sound:
        what = f"{count(checked.records, 'record')} and {count(checked.nodes, 'node')}"
        return [Line(f"Checked {what}: no damage found.")]
    if checked.problems:
        return [
            Line("The store is damaged:"),
            *listing(("problem",), [(problem,) for problem in checked.problems]),
            Line("To recover it: `ctx store recover`"),
        ]
    return [
        Line(f"{count(len(checked.differences), 'row')} differ from the records:"),
        *listing(("table", "row", "what"), checked.differences),
        Line("To rebuild the tables: `ctx store rebuild`"),
    ]


def render_rebuild(rebuilt: StoreRebuildResult) -> list[Block]:
    nodes = count(rebuilt.nodes, "node")
    return [Line(f"Rebuilt {nodes} from {count(rebuilt.records, 'record')}.")]


def render_backup(made: StoreBackupResult) -> list[Block]:
    return [Line(f"Backed up {count(made.nodes, 'node')} ({size(made.bytes)}): {made.backup}")]


def render_restore(restored: StoreRestoreResult) -> list[Block]:
    blocks: list[Block] = [
        Line(f"Restored {count(restored.nodes, 'node')} from {restored.source}.")
    ]
    if restored.kept:
        blocks.append(Line(f"The previous store is kept: {restored.kept}"))
    return blocks


def render_recovery(recovery: StoreRecovery) -> list[Block]:
    report = recovery.recovered
    if report is None:
        return [Line("The store is not damaged.")]
    blocks = [
        *_render_replaced(recovery)[:1],
        *(
            Line(f"  {number}. {step.name}: {step.told}.")
            for number, step in enumerate(recovery.steps, 1)
        ),
    ]
    if report.from_tables:
        made = count(report.from_tables, "record")
        blocks.append(Line(f"{made} rebuilt from the tables."))
    lost = [
        count(number, noun)
        for number, noun in (
            (len(report.lost_nodes), "node"),
            (report.lost_edges, "edge"),
            (report.lost_tags, "tag"),
            (report.lost_records, "record"),
        )
        if number
    ]
    if lost:
        blocks.append(Line(f"Lost: {', '.join(lost)}."))
        blocks += listing(("id", "type"), [(node.id, node.type) for node in report.lost_nodes])
    if not report.lists_all:
        blocks.append(Line("More may be lost: the file does not list any more what it had."))
    if report.is_complete:
        blocks.append(Line("Nothing was lost."))
    else:
        blocks.append(
            Line(
                "`ctx sync` fetches what other machines have, and"
                " `ctx import --from claude-code --transcripts` reads missing sessions."
            )
        )
    blocks += _render_replaced(recovery)[1:]
    if recovery.newest_backup:
        blocks.append(Line(f"The newest backup: {recovery.newest_backup}"))
    return blocks


def _render_replaced(recovery: StoreRecovery) -> list[Block]:
    report = recovery.recovered
    assert report is not None
    parts = ", ".join(
        (count(report.nodes, "node"), count(report.edges, "edge"), count(report.tags, "tag"))
    )
    verb = "Could recover" if recovery.dry_run else "Recovered"
    views = count(report.views, "view")
    blocks: list[Block] = [Line(f"{verb} {parts} and {views}: {count(report.records, 'record')}.")]
    if recovery.kept:
        blocks.append(Line(f"The damaged file is kept: {recovery.kept}"))
    return blocks
