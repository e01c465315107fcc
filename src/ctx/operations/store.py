"""Maintain the file of the user store: check, rebuild, back up, restore, recover."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from ctx import clock, disk, interrupts
from ctx.errors import DatabaseFailure, PathRefused, UsageError
from ctx.exchange import integrity, recovery, salvage
from ctx.exchange.integrity import TableDifference
from ctx.exchange.recovery import RecoveryReport
from ctx.hook_files import spool
from ctx.memory import records, stats, user_store
from ctx.sqlite import database_backups, truth
from ctx.sqlite.connection import (
    IMMUTABLE,
    connect,
    explain_errors,
    folder_of,
    path_text,
    size_of,
    temporary_file,
)
from ctx.sqlite.replace_database import can_be_opened, copy_pages, replace


class StorePath(NamedTuple):
    """The answer of `ctx store path`."""

    path: str
    exists: bool
    bytes: int


class StoreStatus(NamedTuple):
    """The answer of `ctx store status`."""

    path: str
    exists: bool
    bytes: int
    backups: int
    newest_backup: str | None
    """When the newest backup was made."""


class StoreCheck(NamedTuple):
    """The answer of `ctx store check`."""

    path: str
    sound: bool
    records: int
    nodes: int
    problems: tuple[str, ...]
    """What is wrong with the file."""
    differences: tuple[TableDifference, ...]
    """Tables that differ from what the records give."""


class StoreRebuildResult(NamedTuple):
    """The answer of `ctx store rebuild`."""

    path: str
    records: int
    nodes: int


class StoreBackupResult(NamedTuple):
    """The answer of `ctx store backup`."""

    path: str
    backup: str
    nodes: int
    bytes: int


class RestoreCandidate(NamedTuple):
    """A checked copy of a backup, which can replace the store."""

    source: str
    file: str
    nodes: int


class StoreRestoreResult(NamedTuple):
    """The answer of `ctx store restore`."""

    path: str
    source: str
    nodes: int
    kept: str | None
    """Where the store that was there before is kept."""


class StoreRecovery(NamedTuple):
    """The answer of `ctx store recover`."""

    path: str
    dry_run: bool
    damaged: bool
    recovered: RecoveryReport | None
    kept: str | None
    """Where the damaged file is kept."""
    newest_backup: str | None
    steps: tuple["RecoveryStep", ...] = ()
    """The steps of the recovery, in order."""


class RecoveryStep(NamedTuple):
    """One step of a recovery."""

    name: str
    told: str


def locate(path: str) -> StorePath:
    return StorePath(path, user_store.store_exists(path), size_of(path))


def status(path: str) -> StoreStatus:
    """Where the store is, how large, and how old its newest backup; the file is not opened."""
    backups = database_backups.all_backups(path)
    newest = max((each.at for each in backups), default=None)
    return StoreStatus(*locate(path), len(backups), newest)


def check(path: str, tick: clock.Tick = clock.no_tick) -> StoreCheck:
    """Whether the file is intact, and the tables follow from the records."""
    try:
        with (
            user_store.reading(path) as connection,
            integrity.private_copy(connection) as copy,
        ):
            problems = tuple(integrity.problems(copy))
            differences = () if problems else tuple(integrity.differences(copy, tick))
            records, nodes = (
                copy.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("records", "nodes")
            )
    except DatabaseFailure as error:
        if truth.application_id_of(path) not in (None, user_store.APPLICATION_ID):
            raise
        return StoreCheck(path, False, 0, 0, (error.message,), ())
    sound = not problems and not differences
    return StoreCheck(path, sound, records, nodes, problems, differences)


def unrecorded(path: str) -> int:
    """How many rows of the tables have no record."""
    with user_store.reading(path) as connection:
        return integrity.count_unrecorded(connection)


def rebuild(path: str, tick: clock.Tick = clock.no_tick) -> StoreRebuildResult:
    """Rebuild the tables from the records."""
    with user_store.writing(path) as connection:
        integrity.rebuild(connection, tick)
        records, nodes = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("records", "nodes")
        )
    return StoreRebuildResult(path, records, nodes)


def back_up(path: str, target: str | None) -> StoreBackupResult:
    """Copy the store, also while others write to it; never overwrite an existing file."""
    if not size_of(path):
        raise DatabaseFailure(f"There is no store at {path_text(path)} yet.")
    # Beside the real file, not beside a link to it: recovery looks for backups there.
    backup = target or folder_of(os.path.realpath(path))
    if os.path.isdir(backup):
        name = os.path.join(backup, os.path.basename(os.path.realpath(path)))
        backup = truth.dated_name(name, "backup", truth.free_moment(name, "backup"))
    with (
        explain_errors(path),
        disk.explain_errors("making a backup"),
        temporary_file(backup) as temporary,
    ):
        _refuse_existing(backup)
        with user_store.reading(path) as connection:
            nodes = stats.count_nodes(connection)
            truth.copy(connection, temporary)
        if problems := truth.check_truth(temporary):
            raise DatabaseFailure(
                f"{path_text(path)} is damaged: {problems[0]}",
                hint="`ctx store recover` saves what can still be read.",
            )
        _refuse_existing(backup)
        interrupts.defer()
        os.replace(temporary, backup)
        disk.sync_folder(folder_of(backup))
    return StoreBackupResult(path, backup, nodes, size_of(backup))


def _refuse_existing(path: str) -> None:
    if os.path.lexists(path):
        raise PathRefused(f"{path_text(path)} already exists.", hint="Choose another name.")


@contextmanager
def candidate(path: str, source: str) -> Iterator[RestoreCandidate]:
    """A checked and migrated copy of a backup; the backup itself is not changed."""
    path = os.path.realpath(path)
    require_plain_file(source)
    if os.path.exists(path) and os.path.samefile(path, source):
        raise UsageError("That is the store itself.", hint="Give the path of a backup.")
    if truth.application_id_of(source) != user_store.APPLICATION_ID:
        raise DatabaseFailure(
            f"{path_text(source)} is not a store of ctx.",
            hint="`ctx import` reads files of other programs.",
        )
    with disk.explain_errors("reading a backup"):
        disk.make_folder(folder_of(path))
        with temporary_file(path) as copy:
            with (
                explain_errors(source),
                closing(
                    connect(source, "mode=ro" if size_of(f"{source}-wal") else IMMUTABLE)
                ) as connection,
            ):
                truth.copy(connection, copy)
            if problems := truth.check_truth(copy):
                raise DatabaseFailure(
                    f"{path_text(source)} is damaged: {problems[0]}", hint="Choose another backup."
                )
            with explain_errors(source), closing(user_store.open_for_writing(copy)) as connection:
                nodes = stats.count_nodes(connection)
            for made in truth.backups(copy):
                disk.discard(made)
            yield RestoreCandidate(source, copy, nodes)


def require_plain_file(path: str) -> None:
    try:
        plain = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise PathRefused(f"{path_text(path)} cannot be read: {error.strerror}.") from error
    if not plain:
        raise PathRefused(f"{path_text(path)} is not a plain file.")


def restore(path: str, wanted: RestoreCandidate) -> StoreRestoreResult:
    """Replace the store with a backup, and keep the old store."""
    kept = replace(path, "replaced", lambda _: wanted.file)
    return StoreRestoreResult(path, wanted.source, wanted.nodes, kept)


def recover(path: str, *, dry_run: bool, tick: clock.Tick = clock.no_tick) -> StoreRecovery:
    """Create a new store from the readable parts of a damaged one, and keep the damaged one."""
    path = os.path.realpath(path)
    newest = newest_backup(path)
    if not user_store.store_exists(path):
        raise DatabaseFailure(f"There is no store at {path_text(path)}.", hint=_restore(newest))
    if _is_intact(path):
        return StoreRecovery(path, dry_run, False, None, None, newest)
    recovered: list[RecoveryReport] = []
    steps: list[RecoveryStep] = []

    def make(damaged: str) -> str:
        with salvage.salvage(damaged) as found:
            steps[:] = _fill_from_backup(path, found)
            if found.is_empty:
                raise DatabaseFailure(
                    f"Nothing can be read in {path_text(path)}.", hint=_restore(newest)
                )
            # `make` may run twice if another process writes; a new store begins with an empty file.
            os.truncate(new, 0)
            recovered.append(recovery.make_store(found, new, tick))
        return new

    with disk.explain_errors("recovering the store"), temporary_file(path) as new:
        if not dry_run:
            kept = replace(path, "damaged", make)
        else:
            kept = None
            with temporary_file(path) as copy:
                make(_readable(path, copy))
    return StoreRecovery(path, dry_run, True, recovered[-1], kept, newest, tuple(steps))


def _fill_from_backup(path: str, found: salvage.Salvage) -> list[RecoveryStep]:
    """Add missing rows from the newest good backup, and describe the steps."""
    by_sql = f"{found.read_by_sql:,} records"
    more = f"{records.count(found.rows) - found.read_by_sql:,} more records"
    steps = [
        RecoveryStep("readable records", by_sql),
        RecoveryStep("sqlite3 .recover", found.problem or more),
    ]
    since = ""
    for backup in database_backups.all_backups(path):
        known = records.ids(found.rows)
        if truth.check_truth(backup.path):
            steps.append(RecoveryStep("newest backup", f"{backup.name} cannot be read either"))
            continue
        with closing(truth.connect_for_reading(backup.path)) as connection:
            missing = found.fill_from(connection)
            newer = len(known - records.ids(connection))
        since = f"{newer:,} records are newer than it; "
        steps.append(RecoveryStep("newest backup", f"{backup.name}: {missing:,} records from it"))
        break
    else:
        steps.append(RecoveryStep("newest backup", "there is no readable backup"))
    waiting = len(spool.pending_names(folder_of(path)))
    steps.append(
        RecoveryStep(
            "records and spool since", f"{since}{waiting:,} events waiting to be processed"
        )
    )
    return steps


def _is_intact(path: str) -> bool:
    try:
        return check(path).sound
    except DatabaseFailure:
        # Another program's file, or our store with a damaged header: only our store has records.
        with salvage.salvage(path) as found:
            if not found.is_empty:
                return False
        raise


def _readable(path: str, copy: str) -> str:
    if not can_be_opened(path):
        return path
    with explain_errors(path), closing(truth.connect_for_reading(path)) as connection:
        copy_pages(connection, copy)
    return copy


def newest_backup(path: str) -> str | None:
    """The newest backup of a store, whoever made it."""
    backups = database_backups.all_backups(path)
    return backups[0].path if backups else None


def _restore(backup: str | None) -> str:
    if backup is None:
        return "There is no backup beside it either. Move it away to start with an empty store."
    return f"`ctx store restore {path_text(backup)}` restores the newest backup."
