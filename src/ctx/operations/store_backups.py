"""Backups of the user store: making one a day, listing them, and going back to one.

What was said since a backup is in the store that it takes the place of, which is kept. Where that
one is damaged, or where it is asked for, what can be read there and is newer is taken along.
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
from ctx.operations import store as looking_after
from ctx.operations.store import RestoreCandidate
from ctx.sqlite import database_backups
from ctx.sqlite.connection import explained, size_of
from ctx.sqlite.database_backups import Backup
from ctx.sqlite.replace_database import replace
from ctx.sqlite.truth import connect_for_reading

LATEST = "latest"

_DAY_MS = 86_400_000


class BackupEntry(NamedTuple):
    """A backup, and what is in it."""

    name: str
    path: str
    at: str
    why: str
    bytes: int
    nodes: int | None
    """None where it cannot be read."""


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
    """In the store as it is then."""
    was_damaged: bool
    newer: int
    """Records of the present store that the backup does not have."""
    taken: int
    """How many of those were taken along."""
    kept: str | None
    """Where the store that was there before is kept."""
    waiting: int
    """Events in the spool, which are taken in as always."""


def daily(database: str, keep: int) -> Backup | None:
    """Today's backup, if there is none yet; None where nothing was to do.

    A worker asks on every round: where it is not due, this looks at the names in one folder.
    """
    if not keep or not size_of(database):
        return None
    made_at = (clock.parse_iso(each.at) or 0 for each in database_backups.daily(database))
    # One from the future was made while the clock was wrong.
    if any(abs(clock.now_ms() - each) < _DAY_MS for each in made_at):
        return None
    made = database_backups.make(database)
    database_backups.rotate(database, keep)
    return made


def list_backups(database: str) -> BackupList:
    found = [
        BackupEntry(each.name, each.path, each.at, each.why, each.bytes, _nodes(each.path))
        for each in database_backups.every(database)
    ]
    return BackupList(database_backups.folder_for(database), tuple(found))


def find_backup(database: str, name: str) -> Backup:
    """The backup that a person means: `latest`, its name or a part of that, or a path."""
    known = database_backups.every(database)
    if name == LATEST and known:
        return known[0]
    found = [each for each in known if each.name == name] or [
        each for each in known if name in each.name
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{len(found)} backups have {name!r} in their names.",
            detail="\n".join(f"  {each.name}" for each in found),
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
    tick: clock.Tick = clock.no_tick,
) -> RestoreBackupResult:
    """Put a backup in the place of the store, and keep what was there."""
    is_damaged = os.path.exists(database) and not _is_whole(database)
    takes = keep_newer or is_damaged
    told: list[tuple[int, int, int]] = []

    def make(present: str) -> str:
        told.append(_with_newer(present, wanted.file, takes=takes, tick=tick))
        return wanted.file

    kept = None
    if not dry_run and os.path.exists(database):
        kept = replace(database, "replaced", make)
    elif not dry_run:
        looking_after.restore(database, wanted)
        told.append((0, 0, wanted.nodes))
    elif os.path.exists(database):
        make(database)
    else:
        told.append((0, 0, wanted.nodes))
    newer, taken, nodes = told[-1]
    waiting = len(spool.waiting(home))
    return RestoreBackupResult(
        dry_run, backup.path, backup.at, nodes, is_damaged, newer, taken, kept, waiting
    )


def _with_newer(present: str, copy: str, *, takes: bool, tick: clock.Tick) -> tuple[int, int, int]:
    """Put what a store knows and a copy does not into the copy: newer, taken, nodes then."""
    found = salvage.salvage(present, tick)
    with explained(copy), closing(user_store.open_for_writing(copy)) as connection:
        newer = recovery.unknown_to(connection, found)
        taken = recovery.take_in(connection, found) if takes else 0
        nodes = stats.count_nodes(connection)
        # Whoever puts it in place reads the file alone.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return newer, taken, nodes


def _is_whole(database: str) -> bool:
    try:
        return looking_after.check(database).sound
    except CtxError:
        return False


def _nodes(path: str) -> int | None:
    try:
        with closing(connect_for_reading(path)) as connection:
            return stats.count_nodes(connection)
    except (sqlite3.Error, UnicodeDecodeError):
        return None
