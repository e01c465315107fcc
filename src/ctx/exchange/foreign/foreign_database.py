"""Opens another program's SQLite file without changing anything."""

import contextlib
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from sqlite3 import Connection
from typing import Any

from ctx import disk
from ctx.errors import DatabaseFailure, DiskFailure, PathRefused
from ctx.sqlite.connection import IMMUTABLE, connect, error_code, path_text, size_of

HEADER = b"SQLite format 3\0"
_WAL_VERSION = 2
_LARGEST_VALUE = 256 * 1024 * 1024

Row = Mapping[str, Any]


@contextmanager
def open_snapshot(path: str) -> Iterator[Connection]:
    """A consistent snapshot of the database, even if its program keeps writing."""
    require_file(path)
    with ExitStack() as closing:
        with explain_errors(path):
            connection = _connect_read_only(os.path.realpath(path), closing)
            connection.text_factory = _lenient
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            for guard in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {guard}")
            connection.execute("BEGIN")
        yield connection


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn an SQLite error about the file into an error with a hint.

    Use it only around reading this file: errors of the store belong to another file.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _failure(path, error) from error
    except UnicodeDecodeError as error:
        # Python cannot read SQLite's own message, because it quotes a damaged name.
        raise _failure(path, sqlite3.DatabaseError("the database is malformed")) from error


def require_file(path: str) -> None:
    """Check that it is a plain file or a link to one."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise PathRefused(
            f"{path_text(path)} does not exist.", hint="Give the path of the file to import."
        ) from None
    except OSError as error:
        raise disk.failure("looking for what to import", error) from error
    if not stat.S_ISREG(mode):
        raise PathRefused(
            f"{path_text(path)} is not a plain file.", hint="Give the path of a file."
        )


def _connect_read_only(path: str, closing: ExitStack) -> Connection:
    """A connection that does not create files beside the database either.

    With a log beside it, SQLite reads both and writes neither. Without one, SQLite would create the
    log's files for a database in WAL mode. But then no process has it open, and it can be opened as
    immutable. If SQLite would have to write (to roll back an unfinished transaction, or in a
    read-only folder), a copy is used.
    """
    unused = not os.path.exists(path + "-wal") and _is_wal(path)
    mode = IMMUTABLE if unused else "mode=ro"
    connection = closing.enter_context(contextlib.closing(connect(path, mode)))
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        refusals = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)
        if unused or error_code(error) not in refusals:
            raise
        with disk.explain_errors("copying a database"):
            folder = closing.enter_context(tempfile.TemporaryDirectory())
            copy = os.path.join(folder, "copy.db")
            shutil.copyfile(path, copy)
            for journal in ("-wal", "-journal"):
                if size_of(path + journal):
                    shutil.copyfile(path + journal, copy + journal)
        return closing.enter_context(contextlib.closing(connect(copy, "mode=rw")))
    return connection


def _is_wal(path: str) -> bool:
    with disk.explain_errors("reading a database"), open(path, "rb") as file:
        header = file.read(20)
    return header.startswith(HEADER) and _WAL_VERSION in header[18:20]


def _lenient(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _failure(path: str, error: sqlite3.DatabaseError) -> DatabaseFailure | DiskFailure:
    name = path_text(path)
    match error_code(error):
        case sqlite3.SQLITE_NOTADB:
            return DatabaseFailure(
                f"{name} is not a SQLite database.",
                hint="Nothing was imported. Check that it is the right file.",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseFailure(
                f"Another program is writing to {name}.",
                hint="Nothing was imported. Wait for it to finish and try again.",
            )
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_READONLY:
            return DiskFailure(
                f"{name} cannot be read: {error}.", hint="Check who owns it, and the disk itself."
            )
        case _:
            return DatabaseFailure(
                f"{name} cannot be read to its end: {error}.",
                hint="Nothing was imported. `sqlite3 FILE .recover` may save what is left of it.",
            )


def columns(connection: Connection) -> dict[str, list[str]]:
    """The tables and the names of their columns.

    Views and virtual tables are ignored, because they could contain anything.
    """
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    ).fetchall()
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
        for (name,) in names
    }


def rows(
    connection: Connection,
    table: str,
    present: Sequence[str],
    wanted: Mapping[str, Sequence[str]],
    order: Sequence[str] = (),
) -> Iterator[Row]:
    """The rows of a table, with the wanted columns under our names.

    A column may have had several names over time. A missing column is None.
    """
    if not present:
        return
    chosen = {
        name: next((known for known in known_as if known in present), None)
        for name, known_as in wanted.items()
    }
    selected = ", ".join(_quoted(column) if column else "NULL" for column in chosen.values())
    sorted_by = [_quoted(column) for name in order if (column := chosen[name])]
    clause = f" ORDER BY {', '.join(sorted_by)}" if sorted_by else ""
    for row in connection.execute(f"SELECT {selected} FROM {_quoted(table)}{clause}"):
        yield dict(zip(chosen, row, strict=True))


def count(connection: Connection, table: str) -> int:
    total: int = connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()[0]
    return total


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
