"""Brings the tables to what the records say, for whatever a change spoke of."""

from sqlite3 import Connection

from ctx import clock, terms, tokens
from ctx.memory import records, replay
from ctx.memory.records import Record
from ctx.memory.replay import EdgeState, NodeState, ViewState


def materialise(connection: Connection, written: list[Record]) -> None:
    """Bring the tables to what the records say, wherever these records speak of."""
    _bring(
        connection,
        dict.fromkeys(r.subject for r in written if r.kind.startswith("node.")),
        {r.subject: None for r in written if r.kind.startswith("tag.")},
        {(r.subject, r.key): None for r in written if r.kind.startswith("edge.")},
    )
    for name in dict.fromkeys(r.subject for r in written if r.kind.startswith("view.")):
        _write_view(connection, name)


def materialise_all(connection: Connection, tick: clock.Tick = clock.no_tick) -> None:
    """Fill empty tables with everything that the records say."""
    total = connection.execute("SELECT count(*) FROM records").fetchone()[0]
    done = 0
    alive: set[str] = set()
    for subject, said in records.by_subject(connection):
        state = replay.node(record for record in said if record.kind.startswith("node."))
        if state is not None and state.alive:
            alive.add(subject)
            _put_node(connection, subject, state)
            _put_tags(connection, subject, replay.tags(said))
        if view := replay.view(said):
            _put_view(connection, subject, view)
        done += len(said)
        tick(done, total)
    for from_id, said in records.by_subject(connection, "edge."):
        for (_, key), edge in replay.edges(said).items():
            edge_type, _, to_id = key.partition(" ")
            if from_id in alive and to_id in alive:
                _put_edge(connection, from_id, to_id, edge_type, edge)
    connection.execute(
        "UPDATE nodes SET superseded_by = (SELECT from_id FROM edges WHERE to_id = nodes.id"
        " AND type = 'SUPERSEDES' ORDER BY created_at DESC, id DESC LIMIT 1)"
        " WHERE id IN (SELECT to_id FROM edges WHERE type = 'SUPERSEDES')"
    )


def _bring(
    connection: Connection,
    nodes: dict[str, None],
    tags: dict[str, None],
    edges: dict[tuple[str, str], None],
) -> None:
    superseded: dict[str, None] = {}
    for node_id in nodes:
        was_there = _is_there(connection, node_id)
        if was_there:
            superseded.update(dict.fromkeys(_superseded_by(connection, node_id)))
        is_there = _write_node(connection, node_id)
        if is_there and not was_there:
            # What was said about it while it was away holds now.
            tags[node_id] = None
            for record in (
                *records.about(connection, node_id, "edge."),
                *records.pointing_at(connection, node_id),
            ):
                edges[record.subject, record.key] = None
    for node_id in tags:
        if _is_there(connection, node_id):
            _write_tags(connection, node_id)
    for from_id, key in edges:
        edge_type, _, to_id = key.partition(" ")
        _write_edge(connection, from_id, to_id, edge_type)
        if edge_type == "SUPERSEDES":
            superseded[to_id] = None
    for node_id in superseded:
        connection.execute(
            "UPDATE nodes SET superseded_by = (SELECT from_id FROM edges WHERE to_id = ?1"
            " AND type = 'SUPERSEDES' ORDER BY created_at DESC, id DESC LIMIT 1) WHERE id = ?1",
            (node_id,),
        )


def _is_there(connection: Connection, node_id: str) -> bool:
    row = connection.execute("SELECT 1 FROM nodes WHERE id = ?", (node_id,)).fetchone()
    return row is not None


def _superseded_by(connection: Connection, node_id: str) -> list[str]:
    rows = connection.execute(
        "SELECT to_id FROM edges WHERE from_id = ? AND type = 'SUPERSEDES'", (node_id,)
    )
    return [row[0] for row in rows]


def _write_node(connection: Connection, node_id: str) -> bool:
    """Whether the node is there now. Its tags and edges go with it."""
    state = replay.node(records.about(connection, node_id, "node."))
    if state is None or not state.alive:
        connection.execute("DELETE FROM nodes WHERE id = ?", (node_id,))
        return False
    _put_node(connection, node_id, state)
    return True


def _put_node(connection: Connection, node_id: str, state: NodeState) -> None:
    searched = f"{state.content}\n{state.summary}" if state.summary else state.content
    connection.execute(
        "INSERT INTO nodes (id, type, content, summary, token_estimate, created_at, updated_at,"
        " metadata, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET type = excluded.type, content = excluded.content,"
        " summary = excluded.summary, token_estimate = excluded.token_estimate,"
        " created_at = excluded.created_at, updated_at = excluded.updated_at,"
        " metadata = excluded.metadata, terms = excluded.terms",
        (
            node_id,
            state.type,
            state.content,
            state.summary,
            tokens.estimate(state.content),
            state.created_at,
            state.updated_at,
            records.as_json(state.metadata),
            terms.column(searched),
        ),
    )


def _write_tags(connection: Connection, node_id: str) -> None:
    now = replay.tags(records.about(connection, node_id, "tag."))
    rows = connection.execute("SELECT tag FROM tags WHERE node_id = ?", (node_id,)).fetchall()
    gone = [(node_id, row[0]) for row in rows if row[0] not in now]
    connection.executemany("DELETE FROM tags WHERE node_id = ? AND tag = ?", gone)
    _put_tags(connection, node_id, now)


def _put_tags(connection: Connection, node_id: str, tags: dict[str, str]) -> None:
    connection.executemany(
        "INSERT INTO tags (node_id, tag, created_at) VALUES (?, ?, ?)"
        " ON CONFLICT (node_id, tag) DO UPDATE SET created_at = excluded.created_at",
        [(node_id, tag, created_at) for tag, created_at in tags.items()],
    )


def _write_edge(connection: Connection, from_id: str, to_id: str, edge_type: str) -> None:
    key = records.edge_key(edge_type, to_id)
    found = replay.edges(records.about_key(connection, from_id, "edge.", key))
    state = found.get((from_id, key))
    if state and _is_there(connection, from_id) and _is_there(connection, to_id):
        _put_edge(connection, from_id, to_id, edge_type, state)
    else:
        connection.execute(
            "DELETE FROM edges WHERE from_id = ? AND to_id = ? AND type = ?",
            (from_id, to_id, edge_type),
        )


def _put_edge(
    connection: Connection, from_id: str, to_id: str, edge_type: str, state: EdgeState
) -> None:
    connection.execute(
        "INSERT INTO edges (id, from_id, to_id, type, created_at, metadata)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (from_id, to_id, type) DO UPDATE SET"
        " id = excluded.id, created_at = excluded.created_at, metadata = excluded.metadata",
        (
            state.id,
            from_id,
            to_id,
            edge_type,
            state.created_at,
            records.as_json(state.metadata),
        ),
    )


def _write_view(connection: Connection, name: str) -> None:
    state = replay.view(records.about(connection, name, "view."))
    connection.execute("DELETE FROM views WHERE name = ?", (name,))
    if state is not None:
        _put_view(connection, name, state)


def _put_view(connection: Connection, name: str, state: ViewState) -> None:
    connection.execute(
        "INSERT INTO views (name, query, budget, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        (name, *state),
    )
