"""Open `code.db`, or create it if there is none that can be used.

It is derived data: a file of another version, or a damaged one, is rebuilt. It is updated in place,
so a refresh costs only what has changed; readers see the previous state meanwhile. `code_tables.py`
writes it, `lookup.py` reads it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection

from ctx import disk
from ctx.code import postings
from ctx.code.history import history_tables as history
from ctx.errors import CtxError, IndexCorrupt
from ctx.sqlite.connection import (
    closed_on_failure,
    connect,
    discard,
    execute_script,
    expect_mark,
    explain_errors,
    mark,
    transaction,
)

APPLICATION_ID = 0x63747863  # "ctxc"
VERSION = 6
"""Increased when the tables or their meaning change."""
ROOT = "root"
"""A note with the path of the indexed folder, as bytes."""


def open_for_writing(path: str) -> Connection:
    """Open the index; create it if it is missing, damaged, or of another version."""
    try:
        return _open(path, "mode=rw")
    except IndexCorrupt:
        discard(path)
        return _make(path)


def open_existing(path: str) -> Connection:
    """The same for a caller that adds to an existing index: refuse if it cannot be used."""
    return _open(path, "mode=rw")


def in_memory() -> Connection:
    """An empty index in memory."""
    with closed_on_failure(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _lay_out(connection)
        return connection


def open_for_reading(path: str) -> Connection | None:
    """The index as it is; None if there is none that can be read."""
    try:
        return _open(path, "mode=ro")
    except CtxError:
        return None


def _open(path: str, mode: str) -> Connection:
    if not os.path.isfile(path) or os.path.islink(path):
        raise IndexCorrupt(f"There is no index at {path}.")
    with explain_errors(path, IndexCorrupt), closed_on_failure(connect(path, mode)) as connection:
        expect_mark(connection, path, APPLICATION_ID, VERSION)
        connection.execute("SELECT count(*) FROM meta").fetchone()
        _tune(connection)
        return connection


def _make(path: str) -> Connection:
    with explain_errors(path, IndexCorrupt), disk.explain_errors("making the index of the code"):
        disk.make_folder(os.path.dirname(path))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, disk.FILE_MODE))
        with closed_on_failure(connect(path, "mode=rw")) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            _lay_out(connection)
            return connection


def _lay_out(connection: Connection) -> None:
    _tune(connection)
    with transaction(connection):
        # An index is created once, and importing this takes longer than opening an existing one.
        from importlib import resources

        schema = resources.files("ctx.code").joinpath("schema.sql").read_text("utf-8")
        execute_script(connection, schema)
        execute_script(connection, history.SCHEMA)
        execute_script(connection, postings.SCHEMA)
        mark(connection, APPLICATION_ID, VERSION)


def _tune(connection: Connection) -> None:
    # A power failure may lose the last refresh, but never the file: the next refresh repairs it.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -32000")
    connection.execute("PRAGMA temp_store = MEMORY")


@contextmanager
def writing(connection: Connection, path: str) -> Iterator[None]:
    with explain_errors(path, IndexCorrupt), transaction(connection):
        yield


def note(connection: Connection, key: str, value: str | int | bytes | None) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def read_note(connection: Connection, key: str) -> str | int | bytes | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def unresolved_files(connection: Connection) -> list[int]:
    """The ids of the files whose mentions are still to be resolved."""
    rows = connection.execute("SELECT id FROM files WHERE resolved = 0 ORDER BY id")
    return [file_id for (file_id,) in rows]


def checkpoint(connection: Connection) -> None:
    """Write the WAL back to the file, if there is no reader."""
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
