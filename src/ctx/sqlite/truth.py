"""Databases that are migrated after a backup and never rebuilt.

Only SQLite opens such a file, even for its first bytes: closing any other handle would drop the
locks of all connections that this process has to it.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from sqlite3 import Connection

from ctx import clock, disk
from ctx.errors import CtxError, DatabaseFailure, DiskFailure, NewerFormat
from ctx.sqlite.connection import (
    BUSY_MS,
    IMMUTABLE,
    Change,
    closed_on_failure,
    connect,
    error_code,
    explain_errors,
    folder_of,
    integrity_problems,
    path_text,
    pragma,
    size_of,
    temporary_file,
    transaction,
)

BACKUPS_KEPT = 5
NEXT = ".next"
DAMAGED = "damaged"
"""The suffix of a file that is about to replace a damaged database."""

_LONG_LOG = 1 << 20
_CACHE = "PRAGMA cache_size = -32000"
"""At most 32 MB of pages, for all that one answer reads. With the default of 2 MB, most pages of a
large store are read again for each statement."""


def open_truth(
    path: str, *, application_id: int, migrations: Sequence[Change], busy_ms: int = BUSY_MS
) -> Connection:
    """Open a database of truth, which is created or migrated if needed.

    `migrations[0]` creates version 1. Each missing migration runs once, in its own transaction: an
    interrupted upgrade leaves a complete database of the version that was reached, and the next
    process continues from there.
    """
    with explain_errors(path), disk.explain_errors("opening a database"):
        _require_regular_file(path)
        _finish_interrupted_replacement(path)
        disk.make_folder(folder_of(path))
        try:
            return _open_database(path, application_id, migrations, busy_ms)
        except sqlite3.OperationalError as error:
            if not _lacks_shared_memory(error):
                raise
            # Switch WAL off for good. With exclusive locking, SQLite can still read the log.
            with closing(connect(path, "mode=rw", busy_ms)) as connection:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA journal_mode = DELETE")
            return _open_database(path, application_id, migrations, busy_ms)


def read_truth(
    path: str, *, application_id: int, migrations: Sequence[Change], busy_ms: int = BUSY_MS
) -> Connection:
    """Open a database without ever writing, also on a read-only disk."""
    _require_regular_file(path)
    _finish_interrupted_replacement(path)
    # Refuse another program's file before SQLite creates shared memory files beside it.
    if application_id_of(path) not in (None, application_id):
        raise _foreign(path)
    with explain_errors(path), closed_on_failure(connect_for_reading(path, busy_ms)) as connection:
        if _version(connection, path, application_id, len(migrations)) < len(migrations):
            raise DatabaseFailure(
                f"The database {path_text(path)} was written by an older ctx.",
                hint="Run a command that may write to it; that brings it up to date.",
            )
        return connection


def _require_regular_file(path: str) -> None:
    """Refuse anything but a regular file: opening a FIFO would block."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise DatabaseFailure(
            f"{path_text(path)} is not a file.", hint="Move it elsewhere, or choose another place."
        )


def connect_for_reading(path: str, busy_ms: int = BUSY_MS) -> Connection:
    """A read-only connection to any database."""
    try:
        with closed_on_failure(connect(path, "mode=ro", busy_ms)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            connection.execute(_CACHE)
            return connection
    except sqlite3.OperationalError as error:
        # Reading in WAL mode needs a shared memory file, which a read-only folder refuses. Without
        # a log, the database file is complete.
        if size_of(path + "-wal") or not _lacks_shared_memory(error):
            raise
    return connect(path, IMMUTABLE, busy_ms)


def check_truth(path: str) -> list[str]:
    """The problems of a database; empty if none. Never raises.

    SQLite has no checksums: a changed byte inside a text is not detected.
    """
    try:
        with explain_errors(path), closing(connect_for_reading(path)) as connection:
            rows = connection.execute("PRAGMA foreign_key_check").fetchall()
            orphans = [f"Row {row[1]} of {row[0]} has no row in {row[2]}." for row in rows]
            return integrity_problems(connection) + orphans
    except CtxError as error:
        return [error.message]


def application_id_of(path: str) -> int | None:
    """The application id in a database's header; None if there is no database.

    Nothing is locked, created or recovered, so this is safe for the file of another program. Our
    databases have their id in the file, not only in the write-ahead log, from the first commit on.
    """
    try:
        with closing(connect(path, IMMUTABLE)) as connection:
            # SQLite takes an empty file for an empty database, even if it has grown since: it read
            # the size when it connected. So ask the connection for the size.
            pages = pragma(connection, "page_count")
            return pragma(connection, "application_id") if pages else None
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None


def copy(source: Connection, target: str) -> None:
    """Copy a database into a plain file while others write."""
    # Python's backup() waits for the read lock without a timeout, so take it first.
    source.execute("BEGIN")
    source.execute("SELECT 1 FROM sqlite_master").fetchone()
    with closing(connect(target, "mode=rw")) as copied:
        source.backup(copied)
        # Without a log, so that it can be read on a read-only disk.
        copied.execute("PRAGMA journal_mode = DELETE")
    source.execute("COMMIT")
    with open(target, "rb") as file:
        disk.sync(file.fileno())


def commit_without_sync(connection: Connection) -> None:
    """Make later commits atomic but not durable, for data that can be lost."""
    # Without a log, only a sync keeps the file consistent.
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        connection.execute("PRAGMA synchronous = NORMAL")


def shorten_log(connection: Connection, path: str) -> None:
    """Checkpoint a long log, if no other process is reading. This is the last thing that a
    connection does.

    SQLite checkpoints when the last connection closes, unless that connection only reads. If it
    always only reads, the log would grow without limit, and every process that opens the file would
    read all of it.
    """
    if size_of(f"{path}-wal") > _LONG_LOG:
        connection.execute("PRAGMA busy_timeout = 0")
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def dated_name(path: str, word: str, ms: int) -> str:
    """The name of a file beside a database: `store.db.backup-20260120T100000Z`."""
    return f"{path}.{word}-{clock.iso(ms).replace('-', '').replace(':', '')}"


def free_moment(path: str, word: str) -> int:
    """The current second, or the next one for which no such file exists."""
    ms = clock.now_s() * 1000
    while os.path.lexists(dated_name(path, word, ms)):
        ms += 1000
    return ms


def backups(path: str) -> list[str]:
    """The backups made before migrations, oldest first."""
    prefix = os.path.basename(path) + ".backup-v"
    names = [name for name in disk.names(folder_of(path)) if name.startswith(prefix)]
    names.sort(key=lambda name: name.rsplit("-", 1)[1])
    return [os.path.join(folder_of(path), name) for name in names]


def finish_replacing(path: str) -> None:
    """Move the waiting file into place, also if another process started that."""
    waiting = f"{path}{NEXT}"
    with disk.explain_errors("replacing a database"):
        try:
            fd = os.open(waiting, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            # Only needed after an interrupted repair.
            from ctx import locks

            locks.lock(fd)
            status = os.fstat(fd)
            # Of several waiting processes, the first one does it.
            if not os.path.exists(waiting) or not os.path.samestat(status, os.stat(waiting)):
                return
            aside = dated_name(path, DAMAGED, int(status.st_mtime) * 1000)
            # Move the log first: without it the old file cannot be mistaken for a complete one, and
            # without the file SQLite would delete the log.
            for suffix in ("-wal", "-journal"):
                if size_of(path + suffix):
                    os.rename(path + suffix, aside + suffix)
                disk.discard(path + suffix)
            if os.path.lexists(path):
                os.rename(path, aside)
            disk.discard(f"{path}-shm")
            os.replace(waiting, path)
            disk.sync_folder(folder_of(path))
        finally:
            os.close(fd)


def _finish_interrupted_replacement(path: str) -> None:
    # The journals are beside the real file, not beside a link to it.
    real = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.exists(f"{real}{NEXT}"):
        finish_replacing(real)


def _open_database(
    path: str, application_id: int, migrations: Sequence[Change], busy_ms: int
) -> Connection:
    # Refuse another program's file before SQLite might recover or checkpoint it. If the header is
    # unreadable, a journal may still repair it, which is SQLite's task.
    if application_id_of(path) not in (None, application_id):
        raise _foreign(path)
    # In this order: a new database has content before its log has.
    alone, fresh = not size_of(path + "-wal"), not size_of(path)
    if fresh and not alone:
        raise sqlite3.DatabaseError("it is empty, and its log is not")
    with closed_on_failure(connect(path, "mode=rwc", busy_ms)) as connection:
        if fresh:
            # SQLite gives its journals the same permissions.
            os.chmod(path, disk.FILE_MODE)
        # Commits must be durable, not only atomic: one sync each.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        # A migration may replace a table, and dropping the old one must not cascade.
        connection.execute("PRAGMA foreign_keys = OFF")
        _migrate(connection, path, application_id, migrations)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(_CACHE)
        if alone:
            _check_wal_works(connection)
        return connection


def _check_wal_works(connection: Connection) -> None:
    """Raise the error that a write would. SQLite reports "wal" even if its shared memory does not
    work."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        try:
            with transaction(connection):
                pass
        except sqlite3.OperationalError as error:
            # The process that holds the lock has proved it.
            if error_code(error) != sqlite3.SQLITE_BUSY:
                raise


def _migrate(
    connection: Connection, path: str, application_id: int, migrations: Sequence[Change]
) -> None:
    """Run the missing migrations. Several processes may share the work; one of them makes the
    backup.

    During an upgrade, `user_version` is already the target version, which shows that the backup
    exists. A process that needs only a version in between ends the upgrade, so that its own writes
    get a backup too.
    """
    newest = len(migrations)
    while (
        _version(connection, path, application_id, newest) < newest
        or pragma(connection, "user_version") > newest
    ):
        with transaction(connection):
            # Another process may have migrated during the wait for the lock.
            version = _version(connection, path, application_id, newest)
            if not version:
                _begin(connection, application_id)
            elif pragma(connection, "user_version") <= version < newest:
                _back_up(path, version)
            connection.execute(f"PRAGMA user_version = {newest:d}")
            if version < newest:
                _apply(connection, path, version + 1, migrations[version])
        if not version:
            _enter_wal(connection, path)


def _begin(connection: Connection, application_id: int) -> None:
    connection.execute(f"PRAGMA application_id = {application_id:d}")
    connection.execute(
        "CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
    )
    # Hold the lock past the commit, until `_enter_wal`.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")


def _enter_wal(connection: Connection, path: str) -> None:
    """Switch to WAL, so that readers can work while one process writes.

    This is tried only once, for version 1: trying it at each opening would show other processes a
    mode that this file system may not support. SQLite does not wait for the lock here, so the lock
    is still held.
    """
    disk.sync_folder(folder_of(path))
    # This must come first, or SQLite would keep the file locked for this connection. The lock is
    # released with the next statement.
    connection.execute("PRAGMA locking_mode = NORMAL")
    connection.execute("PRAGMA journal_mode = WAL")


def _apply(connection: Connection, path: str, number: int, migration: Change) -> None:
    """Run one migration and record it, in the open transaction."""
    name = getattr(migration, "__name__", f"to version {number}")
    what = f"The migration {name} of {path_text(path)}"
    try:
        migration(connection)
    except sqlite3.Error as error:
        what = f"{what} failed and was undone: {error}."
        full = error_code(error) == sqlite3.SQLITE_FULL
        raise (DiskFailure(what) if full else DatabaseFailure(what)) from error
    if not connection.in_transaction:
        raise RuntimeError(f"{name} ended the transaction, as executescript() does")
    now = clock.iso(clock.now_ms())
    connection.execute("INSERT INTO schema_version VALUES (?, ?)", (number, now))
    if row := connection.execute("PRAGMA foreign_key_check").fetchone():
        orphan = f"row {row[1]} of {row[0]} without its row in {row[2]}"
        raise DatabaseFailure(f"{what} leaves {orphan}, and was undone.")


def _version(connection: Connection, path: str, application_id: int, newest: int) -> int:
    """The version of our database; 0 for an empty one."""
    if pragma(connection, "application_id") != application_id:
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            return 0
        # Another process may have created it between the two checks.
        if pragma(connection, "application_id") != application_id:
            raise _foreign(path)
    version = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0] or 0
    if version > newest:
        what = f"has version {version}; this ctx reads up to version {newest}"
        raise NewerFormat(f"The database {path_text(path)} {what}.")
    return int(version)


def _back_up(path: str, version: int) -> None:
    """Back up a database whose write lock is held."""
    with temporary_file(path) as temporary:
        # SQLite cannot copy from the connection that holds the write lock.
        with closing(connect_for_reading(path)) as source:
            copy(source, temporary)
        os.replace(temporary, dated_name(path, f"backup-v{version:03d}", clock.now_ms()))
        disk.sync_folder(folder_of(path))
    for old in backups(path)[:-BACKUPS_KEPT]:
        disk.discard(old)


def _lacks_shared_memory(error: sqlite3.DatabaseError) -> bool:
    """Whether the file system may lack support for WAL, rather than the database being damaged."""
    return error_code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or getattr(
        error, "sqlite_errorname", ""
    ).startswith("SQLITE_IOERR_SHM")


def _foreign(path: str) -> DatabaseFailure:
    return DatabaseFailure(
        f"{path_text(path)} is a database of another program; it was not touched.",
        hint="Move it elsewhere, or choose another place for the store.",
    )
