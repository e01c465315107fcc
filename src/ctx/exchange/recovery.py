"""Makes a store of what was salvaged from a damaged one.

The records make the new store. Rows that lost their record get a new one.

Losses are reported as far as an index of the damaged file lists them. A missing row is never
treated as deleted: if the record of a deletion is lost, the node is restored.
"""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import CtxError
from ctx.exchange.integrity import UNRECORDED
from ctx.exchange.salvage import INDEXED, WITHOUT_RECORDS, Salvage, copy_rows
from ctx.ids import NodeId, Ulid, is_ulid
from ctx.memory import records, replay, user_store, valid_records
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.materialise import materialise, materialise_all
from ctx.memory.records import Record
from ctx.sqlite.connection import transaction

_WHO = ChangeAuthor("cli", "ctx")
_INVALID = (CtxError, AttributeError, TypeError, ValueError, RecursionError)
"""Errors of a row that a damaged byte has made invalid."""


class LostNode(NamedTuple):
    id: NodeId
    type: str
    """Empty if unknown."""


class RecoveryReport(NamedTuple):
    """What the new store contains, and what is lost."""

    records: int
    nodes: int
    edges: int
    tags: int
    views: int
    from_tables: int
    """Records that were made from rows of the tables."""
    lost_records: int
    lost_nodes: tuple[LostNode, ...]
    lost_edges: int
    lost_tags: int
    lists_all: bool
    """Whether the damaged file still lists all that it had. If not, more may be lost."""

    @property
    def is_complete(self) -> bool:
        lost = self.lost_records or self.lost_nodes or self.lost_edges or self.lost_tags
        return self.lists_all and not lost


def make_store(found: Salvage, path: str, tick: clock.Tick = clock.no_tick) -> RecoveryReport:
    """Make a new store from everything that was salvaged."""
    with closing(user_store.open_for_writing(path)) as connection:
        with transaction(connection):
            # The salvaged records include those of every new store, unless they are lost.
            records.insert(connection, _unknown(connection, found))
            connection.execute("DELETE FROM views")
            materialise_all(connection, tick)
            _insert_rows_without_records(connection, found)
        adopted = _record_salvaged_rows(connection, found)
        return _report(connection, found, adopted)


def unknown_to(connection: Connection, found: Salvage) -> int:
    """How many salvaged records a store does not have."""
    return len(_unknown(connection, found))


def add_salvaged(connection: Connection, found: Salvage) -> int:
    """Add salvaged data to an existing store; the number of new records."""
    with transaction(connection):
        new = _unknown(connection, found)
        records.insert(connection, new)
        materialise(connection, new)
        _insert_rows_without_records(connection, found)
    return len(new) + _record_salvaged_rows(connection, found)


def _unknown(connection: Connection, found: Salvage) -> list[Record]:
    unknown = records.ids(found.rows) - records.ids(connection)
    return records.records_with_ids(found.rows, unknown)


def _insert_rows_without_records(connection: Connection, found: Salvage) -> None:
    for table in WITHOUT_RECORDS:
        copy_rows(found.rows, connection, table)


def _record_salvaged_rows(connection: Connection, found: Salvage) -> int:
    """Make records for rows that have none."""
    with changing(Graph(connection), "recover", _WHO) as change:
        _record_nodes(change, found)
        for node_id, tag, at in _unrecorded(found, "tags", "node_id, tag, created_at"):
            with suppress(*_INVALID):
                change.tag(_node(node_id), tag, at)
        columns = "id, from_id, to_id, type, created_at, metadata"
        for table in ("edges", "outside"):
            for edge_id, from_id, to_id, edge_type, at, metadata in _unrecorded(
                found, table, columns
            ):
                with suppress(*_INVALID):
                    change.link(
                        _node(from_id),
                        _node(to_id),
                        edge_type,
                        json.loads(metadata),
                        edge_id=Ulid(edge_id),
                        created_at=at,
                        outside=table == "outside",
                    )
        columns = "name, query, budget, created_at, updated_at"
        for name, query, budget, made, changed in _unrecorded(found, "views", columns):
            with suppress(*_INVALID):
                change.put_view(name, query, budget, (made, changed))
        change.records[:] = filter(valid_records.fits_user_store, change.records)
        return len(change.records)


def _unrecorded(found: Salvage, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    for row in found.rows.execute(f"SELECT {columns} FROM {table} WHERE {UNRECORDED[table]}"):
        # SQLite can have bytes in any column.
        if not any(isinstance(value, bytes) for value in row):
            yield row


def _record_nodes(change: Change, found: Salvage) -> None:
    connection = change.graph.connection
    present = dict(connection.execute("SELECT id, updated_at FROM nodes"))
    columns = "id, type, content, summary, metadata, created_at, updated_at"
    for row in found.rows.execute(f"SELECT {columns} FROM nodes"):
        # A damaged byte may have made it invalid.
        with suppress(*_INVALID):
            node_id = _node(row[0])
            if node_id not in present and _is_dead(connection, node_id) is None:
                metadata = json.loads(row[4])
                change.add_node(
                    *row[1:3], summary=row[3], metadata=metadata, node_id=node_id, times=row[5:]
                )
            elif present.get(node_id, "~") < row[6]:
                # The record of its last change is lost.
                metadata = json.loads(row[4])
                old = change.graph.node(node_id).metadata
                gone = dict.fromkeys(old.keys() - metadata.keys())
                change.update_node(
                    node_id,
                    node_type=row[1],
                    content=row[2],
                    summary=row[3] or "",
                    metadata=gone | metadata,
                    updated_at=row[6],
                )
    if found.lost_records:
        # The record of its restoration may be lost.
        for _, known_id in found.known["nodes"]:
            if is_ulid(known_id) and _is_dead(connection, known_id):
                change.restore_node(_node(known_id))


def _is_dead(connection: Connection, node_id: str) -> bool | None:
    """Whether the records say that a node is deleted; None if they do not know it."""
    state = replay.node(records.records_about(connection, node_id, "node."))
    return None if state is None else not state.alive


def _node(text: str) -> NodeId:
    if not is_ulid(text):
        raise ValueError(text)
    return NodeId(Ulid(text))


def _report(connection: Connection, found: Salvage, adopted: int) -> RecoveryReport:
    known = found.known
    present = {
        table: set(connection.execute(f"SELECT {columns} FROM {table}"))
        for table, columns in INDEXED.items()
    }
    types = {node_id: node_type for node_type, node_id in known["nodes"]}
    mentioned = {*types, *(key[1] for table in ("tags", "outside") for key in known[table])}
    mentioned |= {end for key in known["edges"] for end in key[:2]}
    lost_nodes = [
        LostNode(_node(node_id), types.get(node_id, ""))
        for node_id in sorted(filter(is_ulid, mentioned))
        # Deleted nodes are not lost.
        if _is_dead(connection, node_id) is None
    ]
    return RecoveryReport(
        len(present["records"]),
        len(present["nodes"]),
        len(present["edges"]) + len(present["outside"]),
        len(present["tags"]),
        connection.execute("SELECT count(*) FROM views").fetchone()[0],
        adopted,
        len(known["records"] - present["records"]),
        tuple(lost_nodes),
        sum(len(known[table] - present[table]) for table in ("edges", "outside")),
        len(known["tags"] - present["tags"]),
        found.lists_all,
    )
