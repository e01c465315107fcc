"""Recovers what is readable in a damaged store.

Every row in the file is read, page by page. The records make a new store; rows of the tables that
have no record get a new one. So data is lost only if both its record and its row are damaged.

A backup fills the gaps: rows that are only in the backup are taken from there.

Losses are reported as far as an intact index lists them. A missing row is never treated as deleted:
if the record of a deletion is lost, the node is restored.
"""

from contextlib import closing, suppress
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.errors import CtxError
from ctx.exchange.salvage import EdgeRow, NodeRow, SalvagedRows, as_node
from ctx.ids import NodeId, new_ulid
from ctx.memory import records, replay, user_store
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.materialise import materialise, materialise_all
from ctx.memory.records import Record
from ctx.sqlite.connection import transaction

_WHO = ChangeAuthor("cli", "ctx")


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
    lost_pages: int
    """Missing or unreadable pages of the file: their contents may be lost too."""


def make_store(rows: SalvagedRows, path: str, tick: clock.Tick = clock.no_tick) -> RecoveryReport:
    """Make a new store from everything that was salvaged."""
    with closing(user_store.open_for_writing(path)) as connection:
        with transaction(connection):
            # The salvaged records include those of every new store, unless they are lost.
            records.insert(connection, _unknown(connection, rows))
            connection.execute("DELETE FROM views")
            materialise_all(connection, tick)
            _insert_rows_without_records(connection, rows)
        adopted = _record_recovered_rows(connection, rows)
        return _report(connection, rows, adopted)


def unknown_to(connection: Connection, rows: SalvagedRows) -> int:
    """How many salvaged records a store does not have."""
    return len(_unknown(connection, rows))


def add_salvaged(connection: Connection, rows: SalvagedRows) -> int:
    """Add salvaged data to an existing store; the number of new records."""
    with transaction(connection):
        new = _unknown(connection, rows)
        records.insert(connection, new)
        materialise(connection, new)
        _insert_rows_without_records(connection, rows)
    return len(new) + _record_recovered_rows(connection, rows)


def _unknown(connection: Connection, rows: SalvagedRows) -> list[Record]:
    present = {row[0] for row in connection.execute("SELECT id FROM records")}
    return [record for record in rows.records.values() if record.id not in present]


def _insert_rows_without_records(connection: Connection, salvaged: SalvagedRows) -> None:
    """Insert the rows that have no records."""
    connection.executemany(
        "INSERT OR IGNORE INTO pending (key, value, created_at) VALUES (?, ?, ?)",
        [(key, *rest) for key, rest in salvaged.pending.items()],
    )
    for table, rows in salvaged.other_rows.items():
        for values in rows.values():
            places = ", ".join("?" * len(values))
            connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", values)


def _record_recovered_rows(connection: Connection, rows: SalvagedRows) -> int:
    with changing(Graph(connection), "recover", _WHO) as change:
        _adopt(change, rows)
        return len(change.records)


def _report(connection: Connection, rows: SalvagedRows, adopted: int) -> RecoveryReport:
    edges = {
        place
        for table in ("edges", "outside")
        for place in connection.execute(f"SELECT from_id, to_id, type FROM {table}")
    }
    known_edges = rows.known_edges | rows.known_outside
    tags = set(connection.execute("SELECT node_id, tag FROM tags"))
    nodes = [
        LostNode(node_id, rows.known_nodes.get(node_id, ""))
        for node_id in sorted(_known_nodes(rows))
        if not Graph(connection).has(node_id)
        # Deleted nodes are not lost.
        and replay.node(records.records_about(connection, node_id, "node.")) is None
    ]
    return RecoveryReport(
        connection.execute("SELECT count(*) FROM records").fetchone()[0],
        connection.execute("SELECT count(*) FROM nodes").fetchone()[0],
        len(edges),
        len(tags),
        connection.execute("SELECT count(*) FROM views").fetchone()[0],
        adopted,
        rows.lost_records,
        tuple(nodes),
        len((known_edges | rows.edges.keys() | rows.outside.keys()) - edges),
        len((rows.known_tags | rows.tags.keys()) - tags),
        rows.unreadable_pages,
    )


def _known_nodes(rows: SalvagedRows) -> set[NodeId]:
    """All nodes that rows or indexes still mention."""
    known = {*rows.known_nodes, *rows.nodes}
    known.update(node_id for node_id, _ in (*rows.tags, *rows.known_tags))
    known.update(end for place in (*rows.edges, *rows.known_edges) for end in place[:2])
    # The targets of these edges are in another store.
    known.update(start for start, _, _ in (*rows.outside, *rows.known_outside))
    known.update(as_node(r.subject) for r in rows.records.values() if r.kind == "node.put")
    return known


def _adopt(change: Change, salvaged: SalvagedRows) -> None:
    """Make records for rows of the tables that have none."""
    known_keys = {(r.kind.partition(".")[0], r.subject, r.key) for r in salvaged.records.values()}
    for row in salvaged.nodes.values():
        # A damaged byte may have made it invalid.
        with suppress(CtxError):
            _adopt_node(change, row)
    if salvaged.lost_records:
        # The record of its restoration may be lost.
        for node_id in salvaged.known_nodes.keys() | salvaged.nodes.keys():
            state = replay.node(records.records_about(change.graph.connection, node_id, "node."))
            if state is not None and not state.alive:
                change.restore_node(node_id)
    for (node_id, tag), at in salvaged.tags.items():
        if ("tag", node_id, tag) not in known_keys:
            with suppress(CtxError):
                change.tag(node_id, tag, at)
    edges = {
        (row.superseded_by, row.id, "SUPERSEDES"): EdgeRow(new_ulid(), row.updated_at, {})
        for row in salvaged.nodes.values()
        if row.superseded_by
    }
    taken = {r.body.get("id", r.id) for r in salvaged.records.values() if r.kind == "edge.put"}
    every = {**edges, **salvaged.edges, **salvaged.outside}
    for (from_id, to_id, edge_type), edge in every.items():
        known = ("edge", from_id, records.edge_key(edge_type, to_id)) in known_keys
        # An edge with the id of a recorded one is the same edge with a damaged end.
        if not known and edge.id not in taken:
            taken.add(edge.id)
            with suppress(CtxError):
                change.link(
                    from_id,
                    to_id,
                    edge_type,
                    edge.metadata,
                    edge_id=edge.id,
                    created_at=edge.created_at,
                    outside=(from_id, to_id, edge_type) in salvaged.outside,
                )
    for name, view in salvaged.views.items():
        if ("view", name, "") not in known_keys:
            change.put_view(name, view.query, view.budget, (view.created_at, view.updated_at))


def _adopt_node(change: Change, row: NodeRow) -> None:
    state = replay.node(records.records_about(change.graph.connection, row.id, "node."))
    if state is None:
        change.add_node(
            row.type,
            row.content,
            summary=row.summary,
            metadata=row.metadata,
            node_id=row.id,
            times=(row.created_at, row.updated_at),
        )
    elif state.alive and state.updated_at < row.updated_at:
        # The record of its last change is lost.
        gone = dict.fromkeys(state.metadata.keys() - row.metadata.keys())
        change.update_node(
            row.id,
            node_type=row.type,
            content=row.content,
            summary=row.summary or "",
            metadata={**gone, **row.metadata},
            updated_at=row.updated_at,
        )
