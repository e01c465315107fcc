"""Removes a text from the database of the user store, including all copies of it.

The records are changed, which nothing else ever does, and the rows that they are about are derived
again. Rows without a record are changed in place. Then the text index is rebuilt, and the whole
file is rewritten, so that nothing is left in free pages.

Session names are renamed in every table alike, so that a session stays connected to its events and
nodes. Two sessions that get the same name become one. Ids, kinds and times are not changed.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, terms
from ctx.errors import DatabaseFailure
from ctx.memory import event_log, record_versions
from ctx.memory.materialise import index_words, materialise
from ctx.memory.records import Record, as_json
from ctx.redaction.needle import Needle
from ctx.sqlite.connection import transaction

_FIXED = ("type", "created_at", "updated_at", "id", "over", "outside", "budget", "file")
"""Fields of a record's body that are not free text."""
_NAMES = frozenset(
    "project folder repository branch transcript path tool session id key goes_on_from lead"
    " tool_use step first steps synthesised".split()
)
"""Columns with names and paths, which must not contain brackets."""
_PATIENCE_S = 10.0
_TURN_MS = 100
_PART = 500


class _Table(NamedTuple):
    """A table whose rows have no records."""

    key: tuple[str, ...]
    texts: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    inner_keys: bool = False
    """Whether the keys of its JSON are user text."""


_TABLE_LABELS = {
    "pending": _Table(("key",), ("key", "value")),
    "receipts": _Table(("id",), ("id", "session", "project"), ("items",)),
    "events": _Table(
        ("id",),
        ("id", "session", "folder", "tool", "tool_use", "reason"),
        ("body",),
        inner_keys=True,
    ),
    "sessions": _Table(
        ("id",),
        (
            *("id", "project", "folder", "repository", "branch", "client", "transcript"),
            *("goes_on_from", "request", "synthesised"),
        ),
    ),
    "symbol_changes": _Table(
        ("session", "path", "name", "kind"), ("session", "path", "name", "signature", "project")
    ),
    "excerpts": _Table(("id",), ("session", "project", "step", "text")),
    "event_log": _Table(("id",), ("session", "type"), ("data",)),
    "commands": _Table(("id",), ("id", "session", "name", "problem")),
    "model_answers": _Table(
        ("session", "kind", "first"), ("session", "first", "steps", "model", "problem"), ("body",)
    ),
    "session_commands": _Table(
        ("session", "command"), ("session", "command", "problem", "replaced_by")
    ),
    "session_teams": _Table(("session", "team"), ("session", "team", "name", "lead")),
    "sync_targets": _Table(("id",), ("problem",)),
    "sync_replicas": _Table(("target", "replica"), ("machine",)),
}
# These tables repeat what the records contain. Rows without a record are changed directly.
_DERIVED = {
    "nodes": _Table(("id",), ("content", "summary"), ("metadata",), inner_keys=True),
    "edges": _Table(("from_id", "to_id", "type"), (), ("metadata",), inner_keys=True),
    "outside": _Table(("from_id", "to_id", "type"), (), ("metadata",), inner_keys=True),
    "views": _Table(("name",), ("name", "query")),
}


def find(connection: Connection, needle: Needle, tick: clock.Tick = clock.no_tick) -> Counter[str]:
    """How many rows contain it, by table."""
    counts: Counter[str] = Counter()
    counts["records"] = sum(1 for _ in _records(connection, needle, tick))
    for table, what in _tables(connection):
        counts[table] = sum(1 for _ in _rows(connection, needle, table, what))
    counts["tags"] = len(_tags(connection, needle))
    counts["contexts"] = len(_contexts(connection, needle))
    return +counts


def scrub(connection: Connection, needle: Needle, tick: clock.Tick = clock.no_tick) -> Counter[str]:
    """Remove it from every row; the number of changed rows, by table.

    All rows are changed, or none. `wipe` handles free pages and the log.
    """
    connection.execute("PRAGMA secure_delete = ON")
    with transaction(connection):
        counts = find(connection, needle, tick)
        if not counts:
            return counts
        changed = list(_records(connection, needle, clock.no_tick))
        connection.executemany(
            "UPDATE records SET subject = ?, key = ?, body = ?, session = ?, author = ?"
            " WHERE id = ?",
            [
                (new.subject, new.key, as_json(new.body), new.session, new.author, new.id)
                for _, new in changed
            ],
        )
        materialise(connection, [record for pair in changed for record in pair])
        record_versions.note_scrub(connection, [new.id for _, new in changed])
        for table, what in _tables(connection):
            if not counts[table]:
                continue
            # The rows of records are clean now. Only rows without a record can still contain it.
            rows = list(_rows(connection, needle, table, what))
            for where, values in rows:
                _update(connection, table, what, where, values)
            if rows and table == "views":
                connection.execute("UPDATE views SET compiled = NULL")
            if rows and table == "nodes":
                _find_words_anew(connection)
            if table == "excerpts":
                _index_excerpts(connection, [where[0] for where, _ in rows])
        for node_id, tag in _tags(connection, needle):
            connection.execute(
                "UPDATE OR REPLACE tags SET tag = ? WHERE node_id = ? AND tag = ?",
                (needle.name(tag), node_id, tag),
            )
        # Cached contexts may contain it.
        connection.execute("DELETE FROM contexts")
        # Processes that read it before and are about to write must notice the scrub.
        event_log.add(connection, event_log.SCRUBBED, "", {})
    return counts


def wipe(connection: Connection) -> bool:
    """Rewrite the file and empty its write-ahead log; False if another process prevented it.

    The text indexes are rebuilt first: SQLite keeps the words of deleted texts in them for a while.
    While another process reads, the log cannot be emptied.
    """
    deadline = clock.monotonic() + _PATIENCE_S
    connection.execute(f"PRAGMA busy_timeout = {_TURN_MS}")
    connection.execute("PRAGMA secure_delete = ON")
    is_anew = False
    while True:
        try:
            if not is_anew:
                with transaction(connection):
                    _index_words(connection)
                connection.execute("VACUUM")
            is_anew = True
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            busy = 1
        if not busy:
            return True
        if clock.monotonic() > deadline:
            return False
        clock.sleep(_TURN_MS / 1000)


def scrub_copy(connection: Connection, needle: Needle) -> Counter[str]:
    """Scrub a backup, which no other process has open."""
    counts = scrub(connection, needle)
    if not wipe(connection):
        raise DatabaseFailure("Another process is reading a backup.", hint="Try again.")
    return counts


def replace_in_copy(connection: Connection, scrubbed: Sequence[Record]) -> None:
    """Replace records in a backup, which no other process has open."""
    with transaction(connection):
        has_changed = record_versions.replace_in_copy(connection, scrubbed)
    if has_changed and not wipe(connection):
        raise DatabaseFailure("Another process is reading a backup.", hint="Try again.")


def foreign_tables(connection: Connection, needle: Needle) -> list[str]:
    """The tables that contain it and that ctx did not create."""
    known = {*_TABLE_LABELS, *_DERIVED, "records", "tags", "contexts", "schema_version"}
    # These have only ids.
    known |= {
        f"sync_{each}"
        for each in ("batches", "records", "versions", "confirmed", "changes", "unread")
    }
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    names = [row[0] for row in connection.execute(query)]
    others = [name for name in names if name not in known and "_fts" not in name]
    return [name for name in others if needle.is_in(name) or _has_value(connection, name, needle)]


def _has_value(connection: Connection, table: str, needle: Needle) -> bool:
    rows = connection.execute('SELECT * FROM "{}"'.format(table.replace('"', '""')))
    return any(needle.is_in(value) for row in rows for value in row if isinstance(value, str))


# Matching rows


def changed_record(record: Sequence[Any], needle: Needle) -> Sequence[Any] | None:
    """A record without it; None if the record does not contain it. The body may be text or a value.

    The record is an array, as in batches. Fields that a newer version appended are kept.
    """
    kind, subject, key, body, session, author = (record[n] for n in (4, 5, 6, 8, 9, 10))
    changed = list(record)
    if kind.startswith(("view.", "task.")):
        changed[5] = needle.name(subject)
    if kind.startswith("tag."):
        changed[6] = needle.name(key)
    changed[8] = _body(body, needle)
    changed[9] = needle.name(session)
    changed[10] = needle.scrubbed(author)
    return changed if changed != list(record) else None


def _records(
    connection: Connection, needle: Needle, tick: clock.Tick
) -> Iterator[tuple[Record, Record]]:
    """The records that contain it, before and after."""
    total = connection.execute("SELECT count(*) FROM records").fetchone()[0]
    rows = connection.execute(
        "SELECT id, stamp, change, action, kind, subject, key, target, body, session, author"
        " FROM records ORDER BY id"
    )
    for number, row in enumerate(rows):
        if not number % _PART:
            tick(number, total)
        if needle.is_word and not any(map(needle.is_in, (*row[5:7], *row[8:11]))):
            continue
        if (changed := changed_record(row, needle)) is not None:
            yield _record(row), _record(changed)


def _record(row: Sequence[Any]) -> Record:
    return Record._make((*row[:8], json.loads(row[8]), *row[9:]))


def _body(text: str, needle: Needle) -> str:
    """The scrubbed body of a record."""
    try:
        before = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(before, dict):
        return text
    after = dict(before)
    for name, value in before.items():
        if name in _FIXED:
            continue
        if name == "metadata" and isinstance(value, dict):
            after[name] = needle.scrubbed_json({"": value}, keys=True)[""]
            # This name identifies the document of a node.
            if isinstance(file := value.get("file"), str):
                after[name]["file"] = needle.name(file)
        elif name == "task" and isinstance(value, str):
            after[name] = needle.name(value)
        else:
            after[name] = needle.scrubbed_json(value, keys=False)
    return as_json(after) if after != before else text


def _tables(connection: Connection) -> Iterator[tuple[str, _Table]]:
    """The existing tables: a backup may have an older schema."""
    for table, what in {**_TABLE_LABELS, **_DERIVED}.items():
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if columns.issuperset(what.key):
            texts, json_ = (tuple(c for c in part if c in columns) for part in what[1:3])
            yield table, what._replace(texts=texts, json=json_)


def _rows(
    connection: Connection, needle: Needle, table: str, what: _Table
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The rows that contain it: their keys and their new columns."""
    columns = (*what.texts, *what.json)
    query = f"SELECT {', '.join((*what.key, *columns))} FROM {table}"
    for row in connection.execute(query):
        where, before = row[: len(what.key)], row[len(what.key) :]
        after = tuple(
            value
            if not isinstance(value, str)
            else _json(value, needle, what)
            if name in what.json
            else needle.name(value)
            if name in _NAMES
            else needle.scrubbed(value)
            for name, value in zip(columns, before, strict=True)
        )
        if after != before:
            yield where, after


def _json(text: str, needle: Needle, what: _Table) -> str:
    if needle.is_word and not needle.is_in(text):
        return text
    try:
        before = json.loads(text)
        after = needle.scrubbed_json(before, keys=what.inner_keys)
    except (ValueError, RecursionError):
        return needle.scrubbed(text)
    return text if after == before else json.dumps(after, ensure_ascii=False, separators=(",", ":"))


def _update(
    connection: Connection,
    table: str,
    what: _Table,
    where: tuple[Any, ...],
    values: tuple[Any, ...],
) -> None:
    columns = ", ".join(f"{name} = ?" for name in (*what.texts, *what.json))
    names = " AND ".join(f"{name} = ?" for name in what.key)
    connection.execute(f"UPDATE OR REPLACE {table} SET {columns} WHERE {names}", (*values, *where))


def _find_words_anew(connection: Connection) -> None:
    rows = connection.execute("SELECT id, content, summary FROM nodes").fetchall()
    connection.executemany(
        "UPDATE nodes SET terms = ? WHERE id = ?",
        [
            (terms.column(f"{content}\n{summary}" if summary else content), node_id)
            for node_id, content, summary in rows
        ],
    )


def _index_words(connection: Connection) -> None:
    index_words(connection)
    # A backup may have an older schema.
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'excerpts_fts'").fetchone():
        connection.execute("INSERT INTO excerpts_fts(excerpts_fts) VALUES ('rebuild')")


def _index_excerpts(connection: Connection, numbers: Sequence[Any]) -> None:
    for number in numbers:
        row = connection.execute("SELECT text FROM excerpts WHERE id = ?", (number,)).fetchone()
        connection.execute(
            "UPDATE excerpts SET terms = ? WHERE id = ?", (terms.column(row[0]), number)
        )


def _tags(connection: Connection, needle: Needle) -> list[tuple[str, str]]:
    rows = connection.execute("SELECT node_id, tag FROM tags")
    return [(node_id, tag) for node_id, tag in rows if needle.is_in(tag)]


def _contexts(connection: Connection, needle: Needle) -> list[str]:
    # The index of a project has none.
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'contexts'").fetchone():
        return []
    rows = connection.execute("SELECT place, coalesce(project, ''), text, items FROM contexts")
    return [row[0] for row in rows if any(map(needle.is_in, row))]
