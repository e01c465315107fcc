"""Updates the tables from the records, for everything that a change affects."""

from collections.abc import Iterator, Sequence
from itertools import islice
from sqlite3 import Connection

from ctx import clock, terms, tokens
from ctx.memory import pending, records, replay, superseded
from ctx.memory.records import Record
from ctx.memory.replay import EdgeState, NodeState, ViewState

_PART = 500
_NODE_COLUMNS = (
    "(id, type, content, summary, token_estimate, created_at, updated_at, metadata, terms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_EDGE_COLUMNS = "(id, from_id, to_id, type, created_at, metadata) VALUES (?, ?, ?, ?, ?, ?)"


def materialise(connection: Connection, written: list[Record]) -> None:
    """Update the tables for everything that these records are about."""
    _materialise_keys(
        connection,
        dict.fromkeys(r.subject for r in written if r.kind.startswith("node.")),
        {(r.subject, r.key): None for r in written if r.kind.startswith("tag.")},
        {(r.subject, r.key): None for r in written if r.kind.startswith("edge.")},
    )
    for name in dict.fromkeys(r.subject for r in written if r.kind.startswith("view.")):
        _write_view(connection, name)
    for place in dict.fromkeys(r.subject for r in written if r.kind == "task.set"):
        _write_current_task(connection, place)


def materialise_all(
    connection: Connection, tick: clock.Tick = clock.no_tick, came: Sequence[Record] = ()
) -> None:
    """Fill empty tables from all records, inside a transaction.

    `came` are the records that were just inserted, if the store has no others: they are not read
    again.
    """
    total = connection.execute("SELECT count(*) FROM records").fetchone()[0]
    grouped = _by_subject(connection, came) if came else records.by_subject(connection)
    done = 0
    while part := list(islice(grouped, _PART)):
        _fill(connection, part)
        done += sum(len(about) for _, about in part)
        tick(done, total)
    # Edges are inserted before it is known whether their targets exist.
    connection.execute("DELETE FROM edges WHERE to_id NOT IN (SELECT id FROM nodes)")
    superseded.settle_all(connection)


def _by_subject(
    connection: Connection, came: Sequence[Record]
) -> Iterator[tuple[str, list[Record]]]:
    """These records and those of every new store, grouped and sorted by subject."""
    by_subject: dict[str, list[Record]] = {}
    for record in (*records.initial_records(connection), *came):
        by_subject.setdefault(record.subject, []).append(record)
    for subject in sorted(by_subject):
        yield subject, by_subject[subject]


def _fill(connection: Connection, part: list[tuple[str, list[Record]]]) -> None:
    """Insert the rows of subjects that are not in the tables yet."""
    nodes: list[tuple[object, ...]] = []
    tags: list[tuple[str, str, str]] = []
    edges: dict[str, list[tuple[str, ...]]] = {"edges": [], "outside": []}
    for subject, subject_records in part:
        about: dict[str, list[Record]] = {}
        for record in subject_records:
            about.setdefault(record.kind.partition(".")[0], []).append(record)
        state = replay.node(about["node"]) if "node" in about else None
        if state is not None and state.alive:
            nodes.append(_node_row(subject, state))
            node_tags = replay.tags(about.get("tag", ()))
            tags += [(subject, tag, created_at) for tag, created_at in node_tags.items()]
            for (_, key), edge in replay.edges(about.get("edge", ())).items():
                edge_type, _, to_id = key.partition(" ")
                edges[_table(edge)].append(_edge_row(subject, to_id, edge_type, edge))
        if view := replay.view(about.get("view", ())):
            _put_view(connection, subject, view)
        if "task" in about and replay.current_task(about["task"]):
            _write_current_task(connection, subject)
    connection.executemany(f"INSERT INTO nodes {_NODE_COLUMNS}", nodes)
    connection.executemany("INSERT INTO tags (node_id, tag, created_at) VALUES (?, ?, ?)", tags)
    for table, rows in edges.items():
        connection.executemany(f"INSERT INTO {table} {_EDGE_COLUMNS}", rows)


def _materialise_keys(
    connection: Connection,
    nodes: dict[str, None],
    tags: dict[tuple[str, str], None],
    edges: dict[tuple[str, str], None],
) -> None:
    returned: dict[str, None] = {}
    unsettled: set[str] = set()
    for node_id in nodes:
        was_there = _node_exists(connection, node_id)
        is_there = _write_node(connection, node_id, unsettled)
        if is_there and not was_there:
            # Records about it from the time it was deleted apply now.
            returned[node_id] = None
            for record in (
                *records.records_about(connection, node_id, "edge."),
                *records.records_of_edges_to(connection, node_id),
            ):
                edges[record.subject, record.key] = None
    for node_id in returned:
        _put_tags(
            connection, node_id, replay.tags(records.records_about(connection, node_id, "tag."))
        )
    for node_id, tag in tags:
        if node_id not in returned and _node_exists(connection, node_id):
            _write_tag(connection, node_id, tag)
    replacing = [
        (from_id, key.partition(" ")[2]) for from_id, key in edges if key.startswith("SUPERSEDES ")
    ]
    for ends in replacing:
        unsettled |= superseded.affected_by_edge(connection, *ends)
    for from_id, key in edges:
        edge_type, _, to_id = key.partition(" ")
        _write_edge(connection, from_id, to_id, edge_type)
    for ends in replacing:
        unsettled |= superseded.affected_by_edge(connection, *ends)
    superseded.settle(connection, unsettled)


def _node_exists(connection: Connection, node_id: str) -> bool:
    row = connection.execute("SELECT 1 FROM nodes WHERE id = ?", (node_id,)).fetchone()
    return row is not None


def _write_node(connection: Connection, node_id: str, unsettled: set[str]) -> bool:
    """Write or delete a node; whether it exists now. Deleting it deletes its tags and edges, which
    can change what other nodes are superseded by."""
    state = replay.node(records.records_about(connection, node_id, "node."))
    if state is None or not state.alive:
        unsettled |= superseded.affected_by_node(connection, node_id)
        connection.execute("DELETE FROM nodes WHERE id = ?", (node_id,))
        return False
    _put_node(connection, node_id, state)
    return True


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
        f"INSERT INTO nodes {_NODE_COLUMNS}"
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


def _write_tag(connection: Connection, node_id: str, tag: str) -> None:
    now = replay.tags(records.about_key(connection, node_id, "tag.", tag))
    if now:
        _put_tags(connection, node_id, now)
    else:
        connection.execute("DELETE FROM tags WHERE node_id = ? AND tag = ?", (node_id, tag))


def _put_tags(connection: Connection, node_id: str, tags: dict[str, str]) -> None:
    connection.executemany(
        "INSERT INTO tags (node_id, tag, created_at) VALUES (?, ?, ?)"
        " ON CONFLICT (node_id, tag) DO UPDATE SET created_at = excluded.created_at",
        [(node_id, tag, created_at) for tag, created_at in tags.items()],
    )


def _write_edge(connection: Connection, from_id: str, to_id: str, edge_type: str) -> None:
    key = records.edge_key(edge_type, to_id)
    states = replay.edges(records.about_key(connection, from_id, "edge.", key))
    state = states.get((from_id, key))
    if state and not _node_exists(connection, from_id):
        state = None
    if state and not (state.outside or _node_exists(connection, to_id)):
        state = None
    for table in ("edges", "outside"):
        if state is None or table != _table(state):
            connection.execute(
                f"DELETE FROM {table} WHERE from_id = ? AND to_id = ? AND type = ?",
                (from_id, to_id, edge_type),
            )
    if state:
        _put_edge(connection, from_id, to_id, edge_type, state)


def _table(state: EdgeState) -> str:
    return "outside" if state.outside else "edges"


def _put_edge(
    connection: Connection, from_id: str, to_id: str, edge_type: str, state: EdgeState
) -> None:
    connection.execute(
        f"INSERT INTO {_table(state)} {_EDGE_COLUMNS}"
        " ON CONFLICT (from_id, to_id, type) DO UPDATE SET"
        " id = excluded.id, created_at = excluded.created_at, metadata = excluded.metadata",
        _edge_row(from_id, to_id, edge_type, state),
    )


def _edge_row(from_id: str, to_id: str, edge_type: str, state: EdgeState) -> tuple[str, ...]:
    metadata = records.as_json(state.metadata)
    return (state.id, from_id, to_id, edge_type, state.created_at, metadata)


def _write_view(connection: Connection, name: str) -> None:
    state = replay.view(records.records_about(connection, name, "view."))
    connection.execute("DELETE FROM views WHERE name = ?", (name,))
    if state is not None:
        _put_view(connection, name, state)


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
