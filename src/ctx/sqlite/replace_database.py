"""Replaces the content of a database that other processes may have open.

SQLite does it in one transaction: processes that have the database open continue with the new
content, and a crash leaves either the old or the new content. If a file were renamed over a
database in use, other processes would write to a deleted file, and the log of the old database
would be applied to the new one.

A file that SQLite cannot open has no users, and is renamed. Until that is done, its replacement has
a name of its own. After a crash, the next process that opens the database completes it.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from sqlite3 import Connection

from ctx import clock, disk, interrupts
from ctx.errors import DatabaseFailure
from ctx.sqlite.connection import (
    DAMAGE,
    IMMUTABLE,
    connect,
    error_code,
    explain_errors,
    folder_of,
    path_text,
    pragma,
    size_of,
    temporary_file,
)
from ctx.sqlite.truth import (
    DAMAGED,
    NEXT,
    connect_for_reading,
    dated_name,
    finish_replacing,
    free_moment,
)

_ATTEMPTS = 20
_PATIENCE_S = 30


class _DatabaseChanged(Exception):
    """Another process wrote after the copy was made."""


def replace(path: str, word: str, make: Callable[[str], str]) -> str | None:
    """Replace the content of a database; returns where the old content is kept.

    `make` receives a file with the old content and returns the file with the new one; it is called
    again if another process wrote meanwhile. `word` goes into the name of the kept file. None if
    there was nothing to keep.
    """
    # The journals are beside the real file, not beside a link to it.
    path = os.path.realpath(path)
    with explain_errors(path), disk.explain_errors("replacing a database"):
        finish_replacing(path)
        if not can_be_opened(path):
            return _move_aside(path, make(path))
        for _ in range(_ATTEMPTS):
            aside = dated_name(path, word, free_moment(path, word))
            with (
                temporary_file(path) as copy,
                closing(connect(path, "mode=rw")) as present,
                closing(connect(path, "mode=rw", _PATIENCE_S * 1000)) as holder,
            ):
                # Others wait meanwhile. The lock must be released before the new content can be
                # written, and another process may write first: that is detected, and the loop
                # repeats.
                holder.execute("BEGIN IMMEDIATE")
                version = pragma(present, "data_version")
                copy_pages(present, copy)
                new = make(copy)
                interrupts.defer()
                os.replace(copy, aside)
                disk.sync_folder(folder_of(path))
                holder.execute("ROLLBACK")
                with suppress(_DatabaseChanged):
                    _overwrite(path, new, present, version)
                    return aside
                disk.discard(aside)
        raise DatabaseFailure(
            f"Others keep writing to {path_text(path)}.", hint="Stop them and try again."
        )


def can_be_opened(path: str) -> bool:
    """Whether SQLite finds tables in a file. If not, nobody can be using it."""
    if not size_of(path):
        return False
    try:
        # A connection that may write would remove the log.
        with closing(connect_for_reading(path)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    except UnicodeDecodeError:
        # SQLite's message quotes a damaged name.
        return False
    except sqlite3.DatabaseError as error:
        if error_code(error) in DAMAGE:
            return False
        raise


def copy_pages(source: Connection, target: str) -> None:
    """Copy all pages, including damage, into a synced file."""
    with closing(connect(target, "mode=rw")) as copied:
        source.backup(copied)
    with open(target, "rb") as file:
        disk.sync(file.fileno())


def _overwrite(path: str, new: str, present: Connection, version: int) -> None:
    """Write all pages in one transaction, unless the database has changed."""
    begun = False
    give_up = clock.monotonic() + _PATIENCE_S
    # Without a log, the write lock keeps readers out, and the version cannot be read.
    has_log = os.path.exists(f"{path}-wal")

    def look(status: int, _remaining: int, _total: int) -> None:
        nonlocal begun
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            if clock.monotonic() > give_up:
                raise DatabaseFailure(f"Another process is writing to {path_text(path)}.")
        elif not begun:
            # The first page is written, so no other process can write; nothing is committed yet.
            begun = True
            if has_log and pragma(present, "data_version") != version:
                raise _DatabaseChanged

    with closing(connect(new, IMMUTABLE)) as source, closing(connect(path, "mode=rw")) as target:
        target.execute("PRAGMA synchronous = FULL")
        target.execute("PRAGMA fullfsync = ON")
        source.backup(target, pages=1, progress=look)


def _move_aside(path: str, new: str) -> str | None:
    ms = free_moment(path, DAMAGED)
    had_one = os.path.exists(path)
    # The time determines the name of the old file if another process finishes this.
    os.utime(new, (ms / 1000, ms / 1000))
    with open(new, "rb") as file:
        disk.sync(file.fileno())
    interrupts.defer()
    os.replace(new, f"{path}{NEXT}")
    disk.sync_folder(folder_of(path))
    finish_replacing(path)
    return dated_name(path, DAMAGED, ms) if had_one else None
