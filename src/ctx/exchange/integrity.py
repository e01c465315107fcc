"""Checks the user store: the database file, and the tables against the records.

The tables are derived from the records. The check replays the records into empty tables with the
same schema; a repair replaces the wrong tables with these.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.memory import records
from ctx.memory.materialise import fill_tables, materialise_all
from ctx.memory.migrations import MIGRATIONS
from ctx.sqlite.connection import integrity_problems, transaction

DERIVED = {
    "nodes": ("id",),
    "tags": ("node_id", "tag"),
    "edges": ("from_id", "to_id", "type"),
    "outside": ("from_id", "to_id", "type"),
    "views": ("name",),
}
"""The tables that are derived from the records, with their keys."""

UNRECORDED = {
    table: f"NOT EXISTS (SELECT 1 FROM records WHERE {recorded})"
    for table, recorded in {
        "nodes": "kind = 'node.put' AND subject = nodes.id",
        "tags": "kind = 'tag.add' AND subject = tags.node_id AND key = tags.tag",
        "edges": "kind = 'edge.put' AND subject = from_id AND key = edges.type || ' ' || to_id",
        "outside": "kind = 'edge.put' AND subject = from_id AND key = outside.type || ' ' || to_id",
        "views": "kind = 'view.put' AND subject = views.name",
    }.items()
}
"""The condition for the rows of each table that have no record."""

_SEARCH = "nodes_fts"
_LAST: tuple[str, ...] = ("\U0010ffff",)


class TableDifference(NamedTuple):
    """A row that does not match the records."""

    table: str
    key: str
    what: str


@contextmanager
def private_copy(connection: Connection) -> Iterator[Connection]:
    """A private copy of a database, which others may change meanwhile.

    The copy is a temporary database without a name: SQLite keeps it in memory while it is small.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as copy:
        connection.backup(copy)
        yield copy


def problems(copy: Connection) -> list[str]:
    """Problems of the file: its pages and foreign keys."""
    lines = integrity_problems(copy)
    rows = copy.execute("PRAGMA foreign_key_check").fetchall()
    lines += [f"Row {row[1]} of {row[0]} has no row in {row[2]}." for row in rows]
    return lines


def differences(copy: Connection, tick: clock.Tick = clock.no_tick) -> list[TableDifference]:
    """The rows that do not match the records."""
    with closing(empty_database()) as replayed:
        wrong = list(_schema_differences(copy, replayed))
        # No text is searched here. Edges are looked up by their ends while they are inserted.
        for kind, name in replayed.execute(
            "SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL AND (type = 'trigger'"
            " OR type = 'index' AND tbl_name NOT IN ('edges', 'outside'))"
        ).fetchall():
            replayed.execute(f"DROP {kind} {name}")
        fill_tables(replayed, records.by_subject(copy), records.count(copy), tick)
        for table in DERIVED:
            wrong += _compare_tables(table, copy, replayed)
        return wrong


def _schema_differences(copy: Connection, made: Connection) -> Iterator[TableDifference]:
    """Missing or wrong indexes and triggers."""
    query = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type IN ('index', 'trigger')"
    there = {row[0]: row[2] for row in copy.execute(query)}
    for name, table, sql in made.execute(query):
        if there.get(name, "") != sql:
            yield TableDifference(table, name, "another make" if name in there else "missing")
    try:
        copy.execute(f"INSERT INTO {_SEARCH}({_SEARCH}, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError:
        yield TableDifference(_SEARCH, "", "it does not match the nodes")


def count_unrecorded(connection: Connection) -> int:
    """How many rows have no record."""
    counts = (
        connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]
        for table, condition in UNRECORDED.items()
    )
    return sum(counts)


def rebuild(connection: Connection, tick: clock.Tick = clock.no_tick) -> None:
    """Rebuild the tables and their indexes from the records in one transaction."""
    with closing(empty_database()) as made:
        statements = made.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name IN (?, ?, ?, ?, ?, ?)"
            # A trigger of `nodes` uses the text index.
            " ORDER BY type = 'trigger', rowid",
            (*DERIVED, _SEARCH),
        ).fetchall()
        kept = made.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'records'"
            " AND sql IS NOT NULL"
        ).fetchall()
    # Dropping the tables must not cascade to other tables.
    connection.execute("PRAGMA foreign_keys = OFF")
    with transaction(connection):
        for table in (_SEARCH, *DERIVED):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for name, statement in kept:
            connection.execute(f"DROP INDEX IF EXISTS {name}")
            connection.execute(statement)
        for (statement,) in statements:
            connection.execute(statement)
        materialise_all(connection, tick)
    connection.execute("PRAGMA foreign_keys = ON")


def empty_database() -> Connection:
    """An empty database with the current schema."""
    made = sqlite3.connect("", isolation_level=None)
    made.execute("PRAGMA synchronous = OFF")
    made.execute("BEGIN")
    for migration in MIGRATIONS:
        migration(made)
    for table in ("records", *DERIVED):
        made.execute(f"DELETE FROM {table}")
    return made


def _compare_tables(
    table: str, copy: Connection, replayed: Connection
) -> Iterator[TableDifference]:
    """The rows of both tables side by side, ordered by key."""
    key = DERIVED[table]
    columns = [row[1] for row in replayed.execute(f"PRAGMA table_info({table})")]
    others = [column for column in columns if column not in (*key, "rowid")]
    query = f"SELECT {', '.join((*key, *others))} FROM {table} ORDER BY {', '.join(key)}"
    there, expected_rows = copy.execute(query), replayed.execute(query)
    row, right = there.fetchone(), expected_rows.fetchone()
    while row or right:
        if row == right:
            row, right = there.fetchone(), expected_rows.fetchone()
            continue
        # A key that is missing on one side sorts last.
        name, right_name = (
            candidate[: len(key)] if candidate else _LAST for candidate in (row, right)
        )
        if name < right_name:
            yield TableDifference(table, " ".join(name), "it has no record")
            row = there.fetchone()
        elif name > right_name:
            yield TableDifference(table, " ".join(right_name), "missing")
            right = expected_rows.fetchone()
        else:
            fields = zip((*key, *others), row, right, strict=True)
            wrong = [column for column, value, should in fields if value != should]
            if wrong:
                yield TableDifference(table, " ".join(name), f"another {', '.join(wrong)}")
            row, right = there.fetchone(), expected_rows.fetchone()
