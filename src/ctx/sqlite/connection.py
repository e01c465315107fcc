"""SQLite connections, transactions, and readable errors."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection

from ctx import clock, disk
from ctx.errors import CtxError, DatabaseFailure, DiskFailure, IndexCorrupt

Change = Callable[[Connection], object]
"""A migration, or the build of a derived file. It runs inside a transaction."""

BUSY_MS = 5000
IMMUTABLE = "mode=ro&immutable=1"
JOURNALS = ("-wal", "-shm", "-journal")

_STALE_S = 86400


def connect(path: str, options: str, busy_ms: int = BUSY_MS) -> Connection:
    name = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Without an isolation level Python does not begin transactions.
    return sqlite3.connect(
        f"file://{name}?{options}", uri=True, isolation_level=None, timeout=busy_ms / 1000
    )


@contextmanager
def closed_on_failure(connection: Connection) -> Iterator[Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Run the block atomically; it is durable at the end.

    Transactions do not nest, because an inner block would end without being durable. Code that is
    part of a larger write takes a connection with an open transaction.
    """
    nested: bool = connection.in_transaction
    if nested:
        raise RuntimeError("a transaction is open already")
    try:
        # Only the write lock can be waited for; upgrading a reader fails at once.
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself if the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Read a consistent state while others write."""
    nested: bool = connection.in_transaction
    if nested:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        # SQLite may have ended the transaction.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def execute_script(connection: Connection, script: str) -> None:
    """Run several statements. `executescript` would commit an open transaction first."""
    statement = ""
    for part in script.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(statement)


@contextmanager
def explain_errors(path: str, damage: type[CtxError] = DatabaseFailure) -> Iterator[None]:
    """Turn SQLite errors into `CtxError`s with a hint.

    For a derived file, `damage` is `IndexCorrupt`. Constraint violations, misuse and interruption
    are not converted.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        if error_code(error) == sqlite3.SQLITE_INTERRUPT:
            raise
        raise _failure(path, error, damage) from error
    except UnicodeDecodeError as error:
        # Python cannot decode SQLite's message, because it quotes a damaged name.
        raise _failure(path, sqlite3.DatabaseError(str(error)), damage) from error


def error_code(error: sqlite3.Error) -> int:
    """SQLite's primary error code. Python's own errors have none: they mean invalid UTF-8."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG)
"""Error codes that SQLite has for a damaged file."""

_RECOVER = "`ctx store recover` saves what can still be read, and keeps the damaged file."


def _failure(path: str, error: sqlite3.DatabaseError, damage: type[CtxError]) -> CtxError:
    name = path_text(path)
    match error_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            what = f"Another process is writing to {name} and did not finish in time."
            return DatabaseFailure(what, hint="Wait for it to finish and try again.")
        case sqlite3.SQLITE_FULL:
            what = f"The disk is full while writing to {name}."
            return DiskFailure(what, hint="Free some space and run the command again.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            if refusal := _refusal(path):
                hint = f"`ls -ld {path_text(folder_of(path))} {name}` shows who may write there."
                return DiskFailure(f"{name} cannot be used: {refusal}.", hint=hint)
            hint = "Check that it is there, who owns it and its folder, and the disk itself."
            return DiskFailure(f"{name} cannot be used: {error}.", hint=hint)
        case sqlite3.SQLITE_NOTADB:
            hint = "If it was a store, `ctx store recover` may help; if not, check the path."
            return damage(
                f"{name} is not a database, or its beginning is damaged.",
                hint=hint if damage is DatabaseFailure else None,
            )
        case _:
            return damage(
                f"{name} is damaged: {error}.", hint=_RECOVER if damage is DatabaseFailure else None
            )


def _refusal(path: str) -> str:
    """The permission that this user lacks, which SQLite's message hardly shows."""
    if os.path.exists(path) and not os.access(path, os.R_OK):
        return "this user may not read it"
    if os.path.exists(path) and not os.access(path, os.W_OK):
        return "it is read-only for this user"
    # SQLite creates files beside a database while it writes.
    if os.path.isdir(folder_of(path)) and not os.access(folder_of(path), os.W_OK | os.X_OK):
        return "its folder is read-only for this user"
    return ""


def pragma(connection: Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def mark(connection: Connection, application_id: int, version: int) -> None:
    """Set the application id and version of a derived file."""
    connection.execute(f"PRAGMA application_id = {application_id:d}")
    connection.execute(f"PRAGMA user_version = {version:d}")


def expect_mark(connection: Connection, name: str, application_id: int, version: int) -> None:
    """Refuse a derived file with another application id or version."""
    marks = pragma(connection, "application_id"), pragma(connection, "user_version")
    if marks != (application_id, version):
        raise IndexCorrupt(f"The index {name} has another layout.")


def discard(path: str) -> None:
    """Remove a database and its journals."""
    for suffix in ("", *JOURNALS):
        disk.discard(path + suffix)


def integrity_problems(connection: Connection) -> list[str]:
    rows = connection.execute("PRAGMA integrity_check").fetchall()
    return [row[0] for row in rows if row[0] != "ok"]


@contextmanager
def temporary_file(path: str) -> Iterator[str]:
    """A temporary file beside `path` that the block renames; otherwise it is removed.

    Files that killed processes left more than a day ago are removed too.
    """
    for name in disk.names(folder_of(path)):
        if name.startswith(os.path.basename(path) + ".") and disk.TEMPORARY_SUFFIX in name:
            old = os.path.join(folder_of(path), name)
            with suppress(FileNotFoundError):
                if os.path.getmtime(old) < clock.wall_s() - _STALE_S:
                    disk.discard(old)
    temporary = f"{path}.{os.urandom(8).hex()}{disk.TEMPORARY_SUFFIX}"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE))
    try:
        yield temporary
    finally:
        for suffix in ("", *JOURNALS):
            disk.discard(temporary + suffix)


def folder_of(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def path_text(path: str) -> str:
    # A name that is not UTF-8 must not break an error message.
    return os.fsencode(path).decode("utf-8", "backslashreplace")
