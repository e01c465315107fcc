"""Updates the tables from the records, for everything that a change affects.

A node is superseded by the newest node that has a `SUPERSEDES` edge to it. Merging two histories or
restoring a deleted node can produce a cycle of such edges. Edges of a cycle do not count, so that
no node is hidden without a replacement.

Only nodes that an edge can affect are updated. A file that was saved a thousand times is a chain of
a thousand nodes, and the next save must not cost more than the first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from sqlite3 import Connection

from ctx import clock, terms, tokens
from ctx.memory import pending, records, replay
from ctx.memory.records import Record
from ctx.memory.replay import EdgeState, NodeState, ViewState
from ctx.memory.written_records import NewSubjects, WrittenRecords, parts

_PART_BYTES = 1024 * 1024
_ROW_BYTES = 100
_NODE_COLUMNS = (
    "(id, type, content, summary, token_estimate, created_at, updated_at, metadata, terms)"
)
_NODE_PLACES = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ROWS = 100
"""Rows of one statement: SQLite may be built with a limit of 999 parameters."""
_EDGE_COLUMNS = "(id, from_id, to_id, type, created_at, metadata) VALUES (?, ?, ?, ?, ?, ?)"


def materialise(connection: Connection, touched: Sequence[Record]) -> None:
    """Update the tables for everything that these records are about; some may be gone."""
    _materialise(connection, touched, WrittenRecords(connection))


def materialise_written(
    connection: Connection, written: Sequence[Record], new: NewSubjects
) -> None:
    """Update the tables for records that were just inserted."""
    _materialise(connection, written, WrittenRecords(connection, written, new))


def _materialise(connection: Connection, touched: Sequence[Record], known: WrittenRecords) -> None:
    _materialise_keys(
        connection,
        known,
        dict.fromkeys(r.subject for r in touched if r.kind.startswith("node.")),
        {(r.subject, r.key): None for r in touched if r.kind.startswith("tag.")},
        {(r.subject, r.key): None for r in touched if r.kind.startswith("edge.")},
    )
    for name in dict.fromkeys(r.subject for r in touched if r.kind.startswith("view.")):
        state = replay.view(records.records_about(connection, name, "view."))
        connection.execute("DELETE FROM views WHERE name = ?", (name,))
        if state is not None:
            _put_view(connection, name, state)
    for place in dict.fromkeys(r.subject for r in touched if r.kind == "task.set"):
        _write_current_task(connection, place)


def materialise_all(
    connection: Connection, tick: clock.Tick = clock.no_tick, came: Sequence[Record] = ()
) -> None:
    """Fill empty tables from all records, inside a transaction.

    `came` are the records that were just inserted, if the store has no others: they are not read
    again.
    """
    total = records.count(connection)
    grouped = _by_subject(connection, came) if came else records.by_subject(connection)
    with _text_indexed_afterwards(connection):
        fill_tables(connection, grouped, total, tick)


@contextmanager
def _text_indexed_afterwards(connection: Connection) -> Iterator[None]:
    """Build the text index after the nodes. For each node that a trigger adds to it, FTS5 writes a
    segment of its own, because the statement could still fail."""
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'nodes'"
        " ORDER BY name"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    yield
    connection.execute("INSERT INTO nodes_fts(nodes_fts) VALUES ('rebuild')")
    for _, sql in triggers:
        connection.execute(sql)


def fill_tables(
    connection: Connection,
    grouped: Iterator[tuple[str, list[Record]]],
    total: int,
    tick: clock.Tick = clock.no_tick,
) -> None:
    """Fill empty tables from records that are grouped by subject, also from another database."""
    rows: dict[str, list[tuple[object, ...]]] = {}
    done = size = 0
    for subject, about in grouped:
        done += len(about)
        for table, row in _rows_about(connection, subject, about):
            rows.setdefault(table, []).append(row)
            size += _ROW_BYTES + sum(len(value) for value in row if isinstance(value, str))
        if size > _PART_BYTES:
            _insert_rows(connection, rows)
            rows, size = {}, 0
            tick(done, total)
    _insert_rows(connection, rows)
    # Edges are inserted before it is known whether their targets exist.
    connection.execute("DELETE FROM edges WHERE to_id NOT IN (SELECT id FROM nodes)")
    update_all_superseded(connection)


def _by_subject(
    connection: Connection, came: Sequence[Record]
) -> Iterator[tuple[str, list[Record]]]:
    """These records and those of every new store, grouped and sorted by subject."""
    by_subject: dict[str, list[Record]] = {}
    for record in (*records.initial_records(connection), *came):
        by_subject.setdefault(record.subject, []).append(record)
    for subject in sorted(by_subject):
        yield subject, by_subject[subject]


def _rows_about(
    connection: Connection, subject: str, subject_records: Sequence[Record]
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """The rows of a subject that is not in the tables yet, each with its table."""
    about: dict[str, list[Record]] = {}
    for record in subject_records:
        about.setdefault(record.kind.partition(".")[0], []).append(record)
    state = replay.node(about["node"]) if "node" in about else None
    if state is not None and state.alive:
        yield "nodes", _node_row(subject, state)
        for tag, created_at in replay.tags(about.get("tag", ())).items():
            yield "tags", (subject, tag, created_at)
        for (_, key), edge in replay.edges(about.get("edge", ())).items():
            edge_type, _, to_id = key.partition(" ")
            yield _table(edge), _edge_row(subject, to_id, edge_type, edge)
    if view := replay.view(about.get("view", ())):
        _put_view(connection, subject, view)
    if "task" in about and replay.current_task(about["task"]):
        _write_current_task(connection, subject)


def _insert_rows(connection: Connection, rows: Mapping[str, Sequence[tuple[object, ...]]]) -> None:
    """Insert rows into tables that do not have them yet."""
    _insert_nodes(connection, rows.get("nodes", ()))
    connection.executemany(
        "INSERT INTO tags (node_id, tag, created_at) VALUES (?, ?, ?)", rows.get("tags", ())
    )
    for table in ("edges", "outside"):
        connection.executemany(f"INSERT INTO {table} {_EDGE_COLUMNS}", rows.get(table, ()))


def _materialise_keys(
    connection: Connection,
    known: WrittenRecords,
    nodes: dict[str, None],
    tags: dict[tuple[str, str], None],
    edges: dict[tuple[str, str], None],
) -> None:
    unsettled: set[str] = set()
    present = _existing_nodes(connection, nodes)
    returned = _write_nodes(connection, known, nodes, present, unsettled)
    known.complete(returned)
    edges.update(dict.fromkeys(_edge_keys(connection, known, returned)))
    states = {node_id: replay.tags(known.about(node_id, "tag.")) for node_id in returned}
    present |= returned.keys()
    others = (node_id for node_id, _ in tags if node_id not in present)
    present |= _existing_nodes(connection, others)
    for node_id, tag in tags:
        if node_id in present and node_id not in returned:
            added = replay.tags(known.about_key(node_id, "tag.", tag))
            states.setdefault(node_id, {}).update(added)
            if not added:
                connection.execute("DELETE FROM tags WHERE node_id = ? AND tag = ?", (node_id, tag))
    _put_tags(connection, states)
    replacing = [
        (from_id, key.partition(" ")[2]) for from_id, key in edges if key.startswith("SUPERSEDES ")
    ]
    for ends in replacing:
        unsettled |= affected_by_edge(connection, *ends)
    _write_edges(connection, known, edges)
    for ends in replacing:
        unsettled |= affected_by_edge(connection, *ends)
    update_superseded(connection, unsettled)


def _existing_nodes(connection: Connection, node_ids: Iterable[str]) -> set[str]:
    """Those of the nodes that are in the table."""
    present: set[str] = set()
    for part in parts(dict.fromkeys(node_ids)):
        places = ", ".join("?" * len(part))
        rows = connection.execute(f"SELECT id FROM nodes WHERE id IN ({places})", part)
        present.update(row[0] for row in rows)
    return present


def _write_nodes(
    connection: Connection,
    known: WrittenRecords,
    nodes: Iterable[str],
    present: set[str],
    unsettled: set[str],
) -> dict[str, None]:
    """Write and delete nodes; returns those that were not `present` before.

    Deleting a node deletes its tags and edges, which can change what others are superseded by.
    """
    new: list[tuple[object, ...]] = []
    returned: dict[str, None] = {}
    for node_id in nodes:
        state = replay.node(known.about_key(node_id, "node.", ""))
        if state is None or not state.alive:
            unsettled |= affected_by_node(connection, node_id)
            connection.execute("DELETE FROM nodes WHERE id = ?", (node_id,))
            present.discard(node_id)
        elif node_id in present:
            _put_node(connection, node_id, state)
        else:
            new.append(_node_row(node_id, state))
            returned[node_id] = None
    _insert_nodes(connection, new)
    return returned


def _insert_nodes(connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert many rows with each statement, because SQLite writes the text index after each."""
    for at in range(0, len(rows), _ROWS):
        part = rows[at : at + _ROWS]
        places = ", ".join([_NODE_PLACES] * len(part))
        connection.execute(
            f"INSERT INTO nodes {_NODE_COLUMNS} VALUES {places}",
            [value for row in part for value in row],
        )


def _edge_keys(
    connection: Connection, known: WrittenRecords, returned: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """The edges of these nodes: records from the time when a node was deleted apply now."""
    for part in parts(returned):
        for node_id in part:
            yield from ((node_id, record.key) for record in known.about(node_id, "edge."))
        yield from records.keys_of_edges_to(connection, part)


def _put_node(connection: Connection, node_id: str, state: NodeState) -> None:
    metadata = records.as_json(state.metadata)
    if connection.execute(
        "UPDATE nodes SET type = ?, created_at = ?, updated_at = ?, metadata = ?"
        " WHERE id = ? AND content = ? AND summary IS ?",
        (
            *(state.type, state.created_at, state.updated_at, metadata),
            *(node_id, state.content, state.summary),
        ),
    ).rowcount:
        # The text is unchanged, so the text index is not updated.
        return
    connection.execute(
        f"INSERT INTO nodes {_NODE_COLUMNS} VALUES {_NODE_PLACES}"
        " ON CONFLICT (id) DO UPDATE SET type = excluded.type, content = excluded.content,"
        " summary = excluded.summary, token_estimate = excluded.token_estimate,"
        " created_at = excluded.created_at, updated_at = excluded.updated_at,"
        " metadata = excluded.metadata, terms = excluded.terms",
        _node_row(node_id, state),
    )


def _node_row(node_id: str, state: NodeState) -> tuple[object, ...]:
    searched = f"{state.content}\n{state.summary}" if state.summary else state.content
    return (
        node_id,
        state.type,
        state.content,
        state.summary,
        tokens.estimate(state.content),
        state.created_at,
        state.updated_at,
        records.as_json(state.metadata),
        terms.column(searched),
    )


def _put_tags(connection: Connection, tags: Mapping[str, Mapping[str, str]]) -> None:
    """Write the tags of nodes, each with the time when it was added."""
    connection.executemany(
        "INSERT INTO tags (node_id, tag, created_at) VALUES (?, ?, ?)"
        " ON CONFLICT (node_id, tag) DO UPDATE SET created_at = excluded.created_at",
        [(node_id, tag, at) for node_id, added in tags.items() for tag, at in added.items()],
    )


def _write_edges(
    connection: Connection, known: WrittenRecords, edges: Iterable[tuple[str, str]]
) -> None:
    keys = [(from_id, *key.partition(" ")[::2]) for from_id, key in edges]
    present = _existing_nodes(
        connection, (end for from_id, _, to_id in keys for end in (from_id, to_id))
    )
    rows: dict[str, list[tuple[str, ...]]] = {"edges": [], "outside": []}
    for from_id, edge_type, to_id in keys:
        key = records.edge_key(edge_type, to_id)
        state = replay.edges(known.about_key(from_id, "edge.", key)).get((from_id, key))
        if state and (from_id not in present or not (state.outside or to_id in present)):
            state = None
        for table in ("edges", "outside"):
            if (state is None or table != _table(state)) and not known.is_new(from_id, key):
                connection.execute(
                    f"DELETE FROM {table} WHERE from_id = ? AND to_id = ? AND type = ?",
                    (from_id, to_id, edge_type),
                )
        if state:
            rows[_table(state)].append(_edge_row(from_id, to_id, edge_type, state))
    for table, some in rows.items():
        connection.executemany(
            f"INSERT INTO {table} {_EDGE_COLUMNS}"
            " ON CONFLICT (from_id, to_id, type) DO UPDATE SET"
            " id = excluded.id, created_at = excluded.created_at, metadata = excluded.metadata",
            some,
        )


def _table(state: EdgeState) -> str:
    return "outside" if state.outside else "edges"


def _edge_row(from_id: str, to_id: str, edge_type: str, state: EdgeState) -> tuple[str, ...]:
    metadata = records.as_json(state.metadata)
    return (state.id, from_id, to_id, edge_type, state.created_at, metadata)


def _put_view(connection: Connection, name: str, state: ViewState) -> None:
    from ctx.memory.query.prepared_views import prepared_statements

    connection.execute(
        "INSERT INTO views (name, query, budget, created_at, updated_at, compiled)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (name, *state, prepared_statements(state.query)),
    )


def _write_current_task(connection: Connection, place: str) -> None:
    task = replay.current_task(records.records_about(connection, place, "task."))
    if task is None:
        connection.execute("DELETE FROM pending WHERE key = ?", (place,))
    else:
        pending.write(connection, place, task.word, task.at)


def index_words(connection: Connection) -> None:
    """Rebuild the text index. SQLite keeps the words of deleted texts in it for a while."""
    connection.execute("INSERT INTO nodes_fts(nodes_fts) VALUES ('rebuild')")


def affected_by_edge(connection: Connection, from_id: str, to_id: str) -> set[str]:
    """The nodes that an edge affects: its target, and the nodes of a cycle through it.

    Call it before an edge is removed and after one is added.
    """
    above = superseding_nodes(connection, from_id)
    return {to_id, from_id, *above} if to_id in above else {to_id}


def affected_by_node(connection: Connection, node_id: str) -> set[str]:
    """The nodes that the removal of a node affects. Call it before the node is removed."""
    rows = connection.execute(
        "SELECT to_id FROM edges WHERE from_id = ? AND +type = 'SUPERSEDES'", (node_id,)
    ).fetchall()
    return set[str]().union(*(affected_by_edge(connection, node_id, row[0]) for row in rows))


def update_superseded(connection: Connection, node_ids: Iterable[str]) -> None:
    """Update `superseded_by` of these nodes."""
    for node_id in node_ids:
        rows = connection.execute(
            "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'"
            " ORDER BY created_at DESC, id DESC, from_id DESC",
            (node_id,),
        ).fetchall()
        newer = (row[0] for row in rows if node_id not in superseding_nodes(connection, row[0]))
        connection.execute(
            "UPDATE nodes SET superseded_by = ? WHERE id = ?", (next(newer, None), node_id)
        )


def update_all_superseded(connection: Connection) -> None:
    rows = connection.execute("SELECT DISTINCT to_id FROM edges WHERE +type = 'SUPERSEDES'")
    update_superseded(connection, [row[0] for row in rows.fetchall()])


def superseding_nodes(connection: Connection, node_id: str) -> set[str]:
    """The nodes that supersede a node, directly or not; in a cycle, also the node itself."""
    newer: set[str] = set()
    waiting = [node_id]
    while waiting:
        for (from_id,) in connection.execute(
            "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'", (waiting.pop(),)
        ):
            if from_id not in newer:
                newer.add(from_id)
                waiting.append(from_id)
    return newer
