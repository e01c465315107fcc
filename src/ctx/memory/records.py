"""Records: immutable statements of change, the only way a graph changes.

A record makes one statement about one subject, a node or a view. It has a stamp that orders it
among all records of all authors, and the change it belongs to. A change is what one command writes
and `ctx undo` reverts.

    kind           subject  key               body
    node.put       node                       the fields that are set, and no others
    node.delete    node
    node.restore   node
    node.settle    node                       fields, over: a reviewed conflict
    tag.add        node     the tag           created_at, if it was imported
    tag.remove     node     the tag
    edge.put       from     TYPE and the to   id, metadata, created_at
    edge.delete    from     TYPE and the to
    view.put       view                       query, budget, …
    view.delete    view
    task.set       place                      task: the current task; missing if there is none
    undo           change                     the change is undone by this one

Unknown kinds were written by a newer version: they are kept and skipped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.ids import Ulid, short
from ctx.memory.model import from_json

BEYOND = 1 << 62
"""A stamp that no clock reaches, for records from documents: they win over all others."""

MOVE = "move"
"""The action of a change that moves nodes to another store."""

_COLUMNS = "id, stamp, change, action, kind, subject, key, target, body, session, author"


class Record(NamedTuple):
    id: Ulid
    stamp: int
    """The time by a clock that never goes back. The id orders equal stamps."""
    change: Ulid
    action: str
    """The verb of the change: `add`, `tag`, `undo`, …"""
    kind: str
    subject: str
    key: str
    target: str | None
    """The other end of an edge."""
    body: Mapping[str, Any]
    session: str
    author: str
    """The source: `cli`, an agent, an import."""

    @property
    def order(self) -> tuple[int, str]:
        return self.stamp, self.id


def edge_key(edge_type: str, to_id: str) -> str:
    return f"{edge_type} {to_id}"


def insert(connection: Connection, records: Iterable[Record]) -> None:
    places = ", ".join("?" * len(Record._fields))
    encode_string = _string_encoder()
    connection.executemany(
        f"INSERT INTO records ({_COLUMNS}) VALUES ({places})",
        (
            (*record[:8], _encode_object(record.body, encode_string), *record[9:])
            for record in records
        ),
    )


def insert_batch(
    connection: Connection, records: Sequence[tuple[Record, str]], batch: int
) -> list[Record]:
    """Insert the new records of a batch and return them. Each record has its body as text."""
    before = connection.total_changes
    insert_rows(connection, (row_of(record, body, batch) for record, body in records))
    if connection.total_changes - before == len(records):
        return [record for record, _ in records]
    rows = connection.execute("SELECT id FROM records WHERE batch = ?", (batch,))
    new = {row[0] for row in rows}
    return [record for record, _ in records if record.id in new]


def row_of(record: Record, body: str, batch: int) -> tuple[object, ...]:
    """A record in a batch as a row, with its body as text."""
    return (*record[:8], body, *record[9:], batch)


def insert_rows(connection: Connection, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert the rows of records that do not exist yet."""
    places = ", ".join("?" * (len(Record._fields) + 1))
    connection.executemany(
        f"INSERT OR IGNORE INTO records ({_COLUMNS}, batch) VALUES ({places})", rows
    )


def has(connection: Connection, record: Record) -> bool:
    """Whether the database has this record with the same values."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM records WHERE id = ?", (record.id,)
    ).fetchone()
    if row is None:
        return False
    stored = _record(row)
    return stored[:8] + stored[9:] == record[:8] + record[9:] and (
        as_json(stored.body) == as_json(record.body)
    )


def of_batch(connection: Connection, batch: int) -> list[Record]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM records WHERE batch = ?", (batch,))
    return [_record(row) for row in rows]


def records_with_ids(connection: Connection, ids: Iterable[str]) -> list[Record]:
    return [record for record_id in ids for record in _read(connection, "id = ?", (record_id,))]


def records_about(connection: Connection, subject: str, kinds: str = "") -> list[Record]:
    """All records about a node, a view or a change; `kinds` is a prefix such as `tag.`."""
    return _read(
        connection, "subject = ? AND kind >= ? AND kind < ?", (subject, kinds, f"{kinds}\x7f")
    )


def about_key(connection: Connection, subject: str, kinds: str, key: str) -> list[Record]:
    """The records about one tag or one edge of a node."""
    return _read(
        connection,
        "subject = ? AND key = ? AND kind >= ? AND kind < ?",
        (subject, key, kinds, f"{kinds}\x7f"),
    )


def records_of_edges_to(connection: Connection, target: str) -> list[Record]:
    """The records about edges to a node."""
    return _read(connection, "target = ?", (target,))


def keys_of_edges_to(connection: Connection, targets: Sequence[str]) -> list[tuple[str, str]]:
    """The edges to any of these nodes that records are about: each source node and key."""
    places = ", ".join("?" * len(targets))
    rows = connection.execute(
        f"SELECT DISTINCT subject, key FROM records WHERE target IN ({places})", targets
    )
    return [(row[0], row[1]) for row in rows]


def of_change(connection: Connection, change: str) -> list[Record]:
    return _read(connection, "change = ?", (change,))


def has_change(connection: Connection, change: str) -> bool:
    row = connection.execute("SELECT 1 FROM records WHERE change = ? LIMIT 1", (change,)).fetchone()
    return row is not None


def by_subject(connection: Connection, kinds: str = "") -> Iterator[tuple[str, list[Record]]]:
    """All records, grouped by subject."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM records WHERE kind >= ? AND kind < ?"
        " ORDER BY subject, key, stamp, id",
        (kinds, f"{kinds}\x7f"),
    )
    for subject, part in groupby(rows, key=lambda row: row[5]):
        yield subject, [_record(row) for row in part]


def initial_records(connection: Connection) -> list[Record]:
    """The records that every new store has."""
    return _read(connection, "stamp = ?", (0,))


def changes_beginning_with(connection: Connection, prefix: str) -> list[str]:
    """At most two changes with this prefix: enough to tell whether it is ambiguous."""
    rows = connection.execute(
        "SELECT DISTINCT change FROM records WHERE change >= ? AND change < ? AND stamp > 0"
        " LIMIT 2",
        (prefix, prefix + "~"),
    )
    return [row[0] for row in rows]


def changes_since(connection: Connection, stamp: int, action: str) -> list[str]:
    """The changes of one kind after a stamp."""
    rows = connection.execute(
        "SELECT DISTINCT change FROM records WHERE stamp > ? AND action = ?", (stamp, action)
    )
    return [row[0] for row in rows]


def first_of_change(connection: Connection, change: str) -> Record:
    # All records of a change may have the same stamp.
    return _read(
        connection,
        "id = (SELECT id FROM records WHERE change = ? ORDER BY stamp, id LIMIT 1)",
        (change,),
    )[0]


def end_of_change(connection: Connection, change: str) -> tuple[int, str]:
    """The order of the last record of a change; the lowest possible if it has none."""
    row = connection.execute(
        "SELECT stamp, id FROM records WHERE change = ? ORDER BY stamp DESC, id DESC LIMIT 1",
        (change,),
    ).fetchone()
    return (row[0], row[1]) if row else (0, "")


def count(connection: Connection) -> int:
    number: int = connection.execute("SELECT count(*) FROM records").fetchone()[0]
    return number


def ids(connection: Connection) -> set[str]:
    """The ids of all records."""
    return {row[0] for row in connection.execute("SELECT id FROM records")}


def nodes_put_in(connection: Connection, session: str) -> list[str]:
    """The nodes that were added or changed in a session."""
    rows = connection.execute(
        "SELECT DISTINCT subject FROM records WHERE session = ? AND kind = 'node.put'", (session,)
    )
    return [row[0] for row in rows]


def last_stamp(connection: Connection) -> int:
    """The stamp that the next one must be later than."""
    row = connection.execute("SELECT max(stamp) FROM records WHERE stamp < ?", (BEYOND,)).fetchone()
    return int(row[0] or 0)


def _read(connection: Connection, where: str, parameters: tuple[str | int, ...]) -> list[Record]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM records WHERE {where} ORDER BY stamp, id",
        parameters,
    )
    return [_record(row) for row in rows]


def _record(row: tuple[Any, ...]) -> Record:
    return Record._make((*row[:8], from_json(row[8]), *row[9:]))


def as_json(value: Mapping[str, Any]) -> str:
    """The canonical JSON of a value: equal values give equal bytes."""
    return _encode_object(value, _string_encoder()) if value else "{}"


def _encode_object(value: Mapping[str, Any], encode_string: Callable[[str], str]) -> str:
    """Encode an object. Most are small and have only texts, which is faster without an encoder."""
    pairs: list[str] = []
    for key in sorted(value):
        nested = value[key]
        if type(key) is not str:
            return _canonical_encoder()(value)
        if type(nested) is str:
            encoded = encode_string(nested)
        elif type(nested) is dict:
            encoded = _encode_object(nested, encode_string)
        else:
            encoded = _canonical_encoder()(nested)
        pairs.append(f"{encode_string(key)}:{encoded}")
    return f"{{{','.join(pairs)}}}"


@cache
def _string_encoder() -> Callable[[str], str]:
    from json.encoder import encode_basestring

    return encode_basestring


@cache
def _canonical_encoder() -> Callable[[Any], str]:
    from json import JSONEncoder

    return JSONEncoder(
        ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    ).encode


def describe(record: Record, node_id: str) -> str:
    """A one-line description of a record from the point of view of one of its nodes."""
    match record.kind:
        case "node.put":
            return ", ".join(_described_fields(record.body))
        case "node.delete":
            return "deleted"
        case "node.restore":
            return "restored"
        case "node.settle":
            return f"settled: {', '.join(map(str, record.body.get('fields', ())))}"
        case "tag.add":
            return f"+ {record.key}"
        case "tag.remove":
            return f"- {record.key}"
        case "edge.put" | "edge.delete":
            edge_type, _, to_id = record.key.partition(" ")
            sign = "+" if record.kind == "edge.put" else "-"
            if record.subject == node_id:
                return f"{sign} {edge_type} → {short(to_id)}"
            return f"{sign} {short(record.subject)} {edge_type} → this"
        case "view.put":
            return f"view {record.subject}: {record.body.get('query', '')[:60]}"
        case "view.delete":
            return f"view {record.subject} deleted"
        case "task.set":
            return f"current task: {record.body.get('task', 'none')}"
        case "undo":
            return f"took back {record.subject}"
        case kind:
            return kind


def _described_fields(body: Mapping[str, Any]) -> Iterator[str]:
    for name in ("type", "content", "summary"):
        if name in body:
            value = " ".join(str(body[name] or "").split())
            yield f"{name}: {value[:60]}{'…' * (len(value) > 60)}"
    for key, value in body.get("metadata", {}).items():
        yield f"meta {key}: {'' if value is None else str(value)[:60]}"
