"""Backups of the user store: making one a day, listing them, and going back to one.

A restored backup replaces the store, and the old store is kept. If the old store is damaged, or on
request, its readable newer records are added to the restored one.
"""

import os
import sqlite3
from contextlib import closing
from typing import NamedTuple

from ctx import clock
from ctx.errors import CtxError, PathRefused, UsageError
from ctx.exchange import recovery, salvage
from ctx.hook_files import spool
from ctx.memory import stats, user_store
from ctx.operations import store as user_store_file
from ctx.operations.store import RestoreCandidate
from ctx.sqlite import database_backups
from ctx.sqlite.connection import size_of
from ctx.sqlite.database_backups import Backup
from ctx.sqlite.replace_database import replace
from ctx.sqlite.truth import connect_for_reading

LATEST = "latest"

_DAY_MS = 86_400_000


class BackupEntry(NamedTuple):
    """A backup and its number of nodes."""

    name: str
    path: str
    at: str
    why: str
    bytes: int
    nodes: int | None
    """None if it cannot be read."""


class BackupList(NamedTuple):
    """The answer of `ctx restore --backup`."""

    folder: str
    backups: tuple[BackupEntry, ...]
    """The newest first."""


class RestoreBackupResult(NamedTuple):
    """The answer of `ctx restore --backup NAME`."""

    dry_run: bool
    backup: str
    at: str
    nodes: int
    """In the store afterwards."""
    was_damaged: bool
    newer: int
    """Records of the current store that the backup lacks."""
    taken: int
    """How many of those were added to the restored store."""
    kept: str | None
    """Where the store that was there before is kept."""
    waiting: int
    """Events in the spool, which are processed as usual."""


def make_daily_backup(database: str, keep: int) -> Backup | None:
    """Make the backup of today if there is none yet; otherwise return None.

    The worker calls this in every round: if no backup is due, it only lists one folder.
    """
    if not keep or not size_of(database):
        return None
    made_at = (clock.parse_iso(each.at) or 0 for each in database_backups.daily_backups(database))
    # A backup from the future was made with a wrong clock.
    if any(abs(clock.now_ms() - each) < _DAY_MS for each in made_at):
        return None
    made = database_backups.make(database)
    database_backups.rotate(database, keep)
    return made


def list_backups(database: str) -> BackupList:
    entries = [
        BackupEntry(each.name, each.path, each.at, each.why, each.bytes, _nodes(each.path))
        for each in database_backups.all_backups(database)
    ]
    return BackupList(database_backups.folder_for(database), tuple(entries))


def find_backup(database: str, name: str) -> Backup:
    """The backup with a name: `latest`, a name, a part of one, or a path."""
    known = database_backups.all_backups(database)
    if name == LATEST and known:
        return known[0]
    matches = [each for each in known if each.name == name] or [
        each for each in known if name in each.name
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{len(matches)} backups have {name!r} in their names.",
            detail="\n".join(f"  {each.name}" for each in matches),
            hint="Use more of the name.",
        )
    if os.path.isfile(name):
        return Backup(os.path.abspath(name), "", "by hand", size_of(name))
    raise PathRefused(
        f"There is no backup {name!r}.", hint="`ctx restore --backup` lists what there is."
    )


def restore(
    database: str,
    home: str,
    backup: Backup,
    wanted: RestoreCandidate,
    *,
    keep_newer: bool,
    dry_run: bool,
) -> RestoreBackupResult:
    """Replace the store with a backup, and keep the old store."""
    is_damaged = os.path.exists(database) and not _is_intact(database)
    takes = keep_newer or is_damaged
    counts: list[tuple[int, int, int]] = []

    def make(present: str) -> str:
        counts.append(_with_newer(present, wanted.file, takes=takes))
        return wanted.file

    kept = None
    if not dry_run and os.path.exists(database):
        kept = replace(database, "replaced", make)
    elif not dry_run:
        user_store_file.restore(database, wanted)
        counts.append((0, 0, wanted.nodes))
    elif os.path.exists(database):
        make(database)
    else:
        counts.append((0, 0, wanted.nodes))
    newer, taken, nodes = counts[-1]
    waiting = len(spool.pending_names(home))
    return RestoreBackupResult(
        dry_run, backup.path, backup.at, nodes, is_damaged, newer, taken, kept, waiting
    )


def _with_newer(present: str, copy: str, *, takes: bool) -> tuple[int, int, int]:
    """Count the newer records of a store, add them to a copy if wanted, and count its nodes."""
    with (
        salvage.salvage(present) as found,
        user_store.writing(copy) as connection,
    ):
        newer = recovery.unknown_to(connection, found)
        taken = recovery.add_salvaged(connection, found) if takes else 0
        nodes = stats.count_nodes(connection)
        # Only the file itself is put in place, without its log.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return newer, taken, nodes


def _is_intact(database: str) -> bool:
    try:
        return user_store_file.check(database).sound
    except CtxError:
        return False


def _nodes(path: str) -> int | None:
    try:
        with closing(connect_for_reading(path)) as connection:
            return stats.count_nodes(connection)
    except (sqlite3.Error, UnicodeDecodeError):
        return None
