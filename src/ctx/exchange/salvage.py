"""Reads what is left in a damaged store, into a scratch database.

SQL reads a table up to the first damaged page. The rows behind it are found by their row numbers
and from the end of the table. Then `sqlite3 FILE .recover` adds what it finds, and the newest good
backup fills the gaps.

Only valid records remain: a damaged byte, or the author of the file, may have written anything.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import Any

import msgspec

from ctx.exchange.integrity import empty_database
from ctx.ids import is_ulid, new_ulid
from ctx.memory import records, valid_records
from ctx.memory.records import Record
from ctx.sqlite.connection import temporary_file
from ctx.sqlite.recover_command import LOST, insert_recovered
from ctx.sqlite.replace_database import can_be_opened
from ctx.sqlite.truth import connect_for_reading

WITHOUT_RECORDS = (
    *("pending", "commands", "receipts", "events", "sessions", "symbol_changes"),
    *("event_log", "model_answers", "excerpts", "session_commands", "session_teams"),
)
"""The tables that do not follow from records, and are recovered. The others can be lost: the next
sync reads all batches again, and contexts are made again."""

INDEXED = {
    "records": "id",
    "nodes": "type, id",
    "edges": "from_id, to_id, type",
    "outside": "to_id, from_id, type",
    "tags": "tag, node_id",
}
"""Columns that an index has, so that they can be read where the rows cannot."""

_HIGHEST_ROW = 1 << 40
_MOST_TRIES = 10_000
_HEADER = 100
_PAGE = 4096
_COLUMNS = ", ".join(Record._fields)
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)


class Salvage:
    """The rows that could be read, and the keys of those that the file had."""

    def __init__(self, rows: Connection) -> None:
        self.rows = rows
        self.known: dict[str, set[tuple[str, ...]]] = {table: set() for table in INDEXED}
        self.lists_all = True
        """Whether `known` is all that the file had."""
        self.read_by_sql = 0
        """How many records SQL can still reach."""
        self.problem = ""
        """Why `.recover` added nothing, or not all."""

    @property
    def is_empty(self) -> bool:
        return not any(map(self.count, ("records", "nodes")))

    @property
    def lost_records(self) -> int:
        """How many records are listed in an index but not here."""
        return len({record_id for (record_id,) in self.known["records"]} - records.ids(self.rows))

    def count(self, table: str) -> int:
        number: int = self.rows.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return number

    def fill_from(self, backup: Connection) -> int:
        """Add rows from a backup that are missing; the number of records added."""
        before = records.count(self.rows)
        for table in ("records", *WITHOUT_RECORDS):
            # An older backup has no such table.
            if columns_of(backup, table):
                copy_rows(backup, self.rows, table)
        return records.count(self.rows) - before


@contextmanager
def salvage(path: str) -> Iterator[Salvage]:
    """Everything that can be read in a store's file and its write-ahead log."""
    with closing(empty_database()) as rows, temporary_file(path) as copy:
        # Inserting a row must do nothing else. An index reads JSON, which may be damaged.
        for kind, name in rows.execute(
            "SELECT type, name FROM sqlite_master WHERE type = 'trigger'"
            " OR type = 'index' AND tbl_name <> 'records' AND sql NOT LIKE '%UNIQUE%'"
        ).fetchall():
            rows.execute(f"DROP {kind} {name}")
        found = Salvage(rows)
        _copy(path, copy, rows)
        _read(copy, found)
        found.read_by_sql = records.count(rows)
        found.problem = insert_recovered(copy, rows, [*INDEXED, "views", *WITHOUT_RECORDS])
        if columns_of(rows, LOST):
            _take_lost_records(rows)
        _remove_invalid_records(rows)
        yield found


def _copy(path: str, copy: str, rows: Connection) -> None:
    """Copy a store with its log. Where SQLite refuses the copy, it gets a new header."""
    shutil.copyfile(path, copy)
    if os.path.exists(f"{path}-wal"):
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        # SQLite would delete the log of an empty file.
        if not os.path.getsize(copy):
            os.truncate(copy, _PAGE)
    if not can_be_opened(copy):
        header = bytearray(rows.serialize()[:_HEADER])
        # Do not trust the number of pages, and assume that none is free.
        header[24:28] = b"\xff" * 4
        header[32:40] = bytes(8)
        with open(copy, "r+b") as file:
            file.write(header)


def _read(copy: str, found: Salvage) -> None:
    try:
        with closing(connect_for_reading(copy)) as damaged:
            for table in (*INDEXED, "views", *WITHOUT_RECORDS):
                if columns_of(damaged, table):
                    _copy_readable(damaged, found.rows, table)
            for table, columns in INDEXED.items():
                _read_keys(damaged, table, columns, found)
    except _UNREADABLE:
        found.lists_all = False


def columns_of(connection: Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def copy_rows(source: Connection, target: Connection, table: str) -> None:
    """Copy the rows of a table that the target lacks, as far as both have the same columns."""
    select, insert = _copying(source, target, table)
    target.executemany(insert, source.execute(select))


def _copying(source: Connection, target: Connection, table: str) -> tuple[str, str]:
    """The statements that read and insert the rows of a table."""
    names = [name for name in columns_of(source, table) if name in columns_of(target, table)]
    shared, places = ", ".join(names), ", ".join("?" * len(names))
    return (
        f"SELECT {shared} FROM {table}",
        f"INSERT OR IGNORE INTO {table} ({shared}) VALUES ({places})",
    )


def _copy_readable(damaged: Connection, rows: Connection, table: str) -> None:
    """Copy all rows that SQL can reach."""
    select, insert = _copying(damaged, rows, table)

    def is_copied(which: str, bounds: tuple[int, ...] = ()) -> bool:
        try:
            rows.executemany(insert, damaged.execute(f"{select} {which}", bounds))
        except _UNREADABLE:
            return False
        return True

    if is_copied(""):
        return
    if keys := _row_keys(rows, table):
        is_copied(f"ORDER BY {', '.join(f'{key} DESC' for key in keys)}")
        return
    is_copied("ORDER BY rowid DESC")
    low, width = 0, _HIGHEST_ROW
    for _ in range(_MOST_TRIES):
        if low >= _HIGHEST_ROW:
            break
        # Without the limit, the last row would be lost if the page behind it is damaged.
        which = "WHERE rowid BETWEEN ? AND ? LIMIT ?"
        if is_copied(which, (low, low + width - 1, width)):
            low, width = low + width, 2 * width
        elif width > 1:
            width //= 2
        else:
            low += 1


def _row_keys(rows: Connection, table: str) -> list[str]:
    """The key of a table without row numbers."""
    query = "SELECT instr(sql, 'WITHOUT ROWID') FROM sqlite_master WHERE name = ?"
    if not rows.execute(query, (table,)).fetchone()[0]:
        return []
    columns = rows.execute(f"PRAGMA table_info({table})").fetchall()
    return [name for _, name, *_, place in columns if place]


def _read_keys(damaged: Connection, table: str, columns: str, found: Salvage) -> None:
    """Read the keys in an index, from both ends."""
    query = f"SELECT {columns} FROM {table} ORDER BY "
    for order in (columns, columns.replace(",", " DESC,") + " DESC"):
        try:
            for row in damaged.execute(query + order):
                if all(type(key) is str for key in row):
                    found.known[table].add(row)
        except _UNREADABLE:
            found.lists_all = False


def _take_lost_records(rows: Connection) -> None:
    """Take what could be records from the rows whose table is unknown."""
    if f"c{len(Record._fields) - 1}" in columns_of(rows, LOST):
        values = ", ".join(f"c{number}" for number in range(len(Record._fields)))
        rows.execute(
            f"INSERT OR IGNORE INTO records ({_COLUMNS}) SELECT {values} FROM {LOST}"
            f" WHERE nfield = {len(Record._fields)} AND length(c0) = {len(new_ulid())}"
        )


def _remove_invalid_records(rows: Connection) -> None:
    query = f"SELECT rowid, {_COLUMNS} FROM records"
    invalid = [(row[0],) for row in rows.execute(query) if not _is_record(row[1:])]
    rows.executemany("DELETE FROM records WHERE rowid = ?", invalid)


def _is_record(row: tuple[Any, ...]) -> bool:
    """Whether the values are a valid record."""
    try:
        record = msgspec.convert((*row[:8], json.loads(row[8]), *row[9:]), Record)
    except (TypeError, ValueError, RecursionError):
        return False
    if record.kind == "task.set":
        return isinstance(record.body.get("task", ""), str)
    return (
        is_ulid(record.id)
        and is_ulid(record.change)
        and record.stamp >= 0
        and valid_records.fits_user_store(record)
    )
