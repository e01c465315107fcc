"""Backups of a database of truth: one file a day, `backups/store-20260120T100000Z.db`.

SQLite makes the copy, so other processes can write meanwhile. The copy is checked before it gets
its name, so a file with such a name is complete. The backups are in a folder beside the database.
Backups before a migration are beside the database itself (see `truth`).
"""

import os
import re
from contextlib import closing
from typing import NamedTuple

from ctx import clock, disk
from ctx.errors import DatabaseFailure, DiskFailure
from ctx.sqlite.connection import (
    connect,
    explain_errors,
    folder_of,
    path_text,
    size_of,
    temporary_file,
)
from ctx.sqlite.truth import connect_for_reading, copy

FOLDER = "backups"

_NAME = re.compile(r"\d{8}T\d{6}Z")
_BESIDE = re.compile(r"backup-(?:v(\d+)-)?(\d{8}T\d{6}Z)")
_DAY_MS = 86_400_000
_ROOM = 2
"""The free space that a copy needs, as a multiple of the database's size."""


class Backup(NamedTuple):
    path: str
    at: str
    """When the backup was made."""
    why: str
    """`daily`, `before migration`, or `by hand`."""
    bytes: int

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def folder_for(database: str) -> str:
    return os.path.join(folder_of(os.path.realpath(database)), FOLDER)


def daily_backups(database: str) -> list[Backup]:
    """The backups in the folder, newest first."""
    folder = folder_for(database)
    before, after = _name_around_time(database)
    backups = []
    for name in disk.names(folder):
        moment = name[len(before) : -len(after)]
        if name.startswith(before) and name.endswith(after) and _NAME.fullmatch(moment):
            path = os.path.join(folder, name)
            backups.append(Backup(path, _iso(moment), "daily", size_of(path)))
    return sorted(backups, key=lambda backup: backup.at, reverse=True)


def all_backups(database: str) -> list[Backup]:
    """All backups of a database, of every kind, newest first."""
    database = os.path.realpath(database)
    backups = daily_backups(database)
    prefix = f"{os.path.basename(database)}."
    for name in disk.names(folder_of(database)):
        if name.startswith(prefix) and (match := _BESIDE.fullmatch(name[len(prefix) :])):
            path = os.path.join(folder_of(database), name)
            why = "before migration" if match[1] else "by hand"
            backups.append(Backup(path, _iso(match[2]), why, size_of(path)))
    return sorted(backups, key=lambda backup: backup.at, reverse=True)


def make(database: str) -> Backup:
    """Copy a database while others write. A damaged copy is discarded."""
    database = os.path.realpath(database)
    folder = folder_for(database)
    with explain_errors(database), disk.explain_errors("making a backup"):
        disk.make_folder(folder)
        _require_room(folder, size_of(database) + size_of(f"{database}-wal"))
        before, after = _name_around_time(database)
        now = clock.iso(clock.now_ms())
        moment = now.replace("-", "").replace(":", "")
        path = os.path.join(folder, f"{before}{moment}{after}")
        with temporary_file(path) as temporary:
            with closing(connect_for_reading(database)) as source:
                copy(source, temporary)
            _require_whole(temporary, database)
            os.replace(temporary, path)
            disk.sync_folder(folder)
    return Backup(path, now, "daily", size_of(path))


def rotate(database: str, keep: int) -> None:
    """Delete the oldest backups. The newest one is always kept.

    Backups from the future were made with a wrong clock, or the clock is wrong now: they are
    neither deleted nor counted.
    """
    tomorrow = clock.iso(clock.now_ms() + _DAY_MS)
    for old in [backup for backup in daily_backups(database) if backup.at < tomorrow][
        max(1, keep) :
    ]:
        disk.discard(old.path)


def _require_room(folder: str, size: int) -> None:
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free < _ROOM * size:
        raise DiskFailure(
            f"There is too little room for a backup: {free:,} bytes are free.",
            hint=f"It takes {_ROOM * size:,} in {path_text(folder)}.",
        )


def _require_whole(temporary: str, database: str) -> None:
    with closing(connect(temporary, "mode=ro")) as made:
        problem = made.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise DatabaseFailure(
            f"{path_text(database)} is damaged: {problem}",
            hint="`ctx store recover` saves what can still be read.",
        )


def _name_around_time(database: str) -> tuple[str, str]:
    """The parts of a backup's name before and after the time."""
    stem, ending = os.path.splitext(os.path.basename(os.path.realpath(database)))
    return f"{stem}-", ending or ".db"


def _iso(moment: str) -> str:
    return f"{moment[:4]}-{moment[4:6]}-{moment[6:11]}:{moment[11:13]}:{moment[13:15]}Z"
