"""Writes records to a team's server, and the rows of nodes, tags and edges that follow from them.

The rows are computed by the same replay as in a store (`memory/replay.py`), from all records of the
server about a node. So it does not matter which machine sends what first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from ctx import terms, tokens
from ctx.ids import Ulid
from ctx.memory import replay
from ctx.memory.query.tsvector_search import LONGEST_WORD
from ctx.memory.record_versions import VersionedRecord
from ctx.memory.records import Record, as_json
from ctx.memory.replay import NODE_KINDS
from ctx.sync import team_schema
from ctx.sync.batch_files import BatchFile

if TYPE_CHECKING:
    from psycopg import Connection

_PART = 500
_LARGEST_VECTOR = 1_000_000
_MOST_PLACES = 32
"""The search counts no more of one word in one node."""
_PLACES = [",".join(map(str, range(1, count + 1))) for count in range(_MOST_PLACES + 1)]


class Space(NamedTuple):
    """Who may read a row: the members of a project, or one person."""

    project: str
    owner: str


def lock(connection: "Connection[Any]", space: Space) -> None:
    """Wait for others who change this space, until the transaction ends. Two machines that change
    the same node must see each other's records."""
    key = f"ctx {space.project}\n{space.owner}"
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (key,))


def add_batch(connection: "Connection[Any]", space: Space, machine: str, file: BatchFile) -> None:
    """Add a batch, or replace a damaged one of the same name."""
    connection.execute(
        "INSERT INTO ctx.batches (project, owner, name, data, machine)"
        " VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (project, owner, name) DO UPDATE SET data = excluded.data",
        (*space, file.name, file.data, machine),
    )


def add_records(
    connection: "Connection[Any]",
    space: Space,
    machine: str,
    sent: Sequence[VersionedRecord],
    *,
    moving: bool,
) -> None:
    """Add records and update the tables, inside a transaction that holds the lock of the space.

    A record that is already there is replaced only by a version in which more is scrubbed. Nodes
    that belong elsewhere are moved here, or their records are left out.
    """
    node_ids = list(dict.fromkeys(r.subject for r, _ in sent if r.kind.startswith(NODE_KINDS)))
    here = _place_nodes(connection, space, node_ids, moving=moving)
    sent = [
        each
        for each in sent
        if each.record.subject in here
        or not (space.project or each.record.kind.startswith(NODE_KINDS))
    ]
    rows = {
        record.id: (
            *record[:8], as_json(record.body), *record[9:], version.version,
            " ".join(version.replaces), len(version.replaces) + bool(version.version),
        )
        for record, version in sent
    }  # fmt: skip
    if rows:
        # One statement: row-level security looks up the projects of the user once for each.
        connection.execute(
            _INSERT_RECORDS, (*space, machine, *map(list, zip(*rows.values(), strict=True)))
        )
    every = sorted(here)
    for at in range(0, len(every), _PART):
        _write_nodes(connection, space, every[at : at + _PART])


_INSERT_RECORDS: LiteralString = (
    "INSERT INTO ctx.records (project, owner, machine, id, stamp, change, action, kind, subject,"
    " key, target, body, session, author, version, replaces, depth, node) SELECT %s, %s, %s, id,"
    " stamp, change, action, kind, subject, key, target, body::json, session, author, version,"
    " replaces, depth, CASE WHEN kind ~ '^(node|tag|edge)[.]' THEN subject END"
    " FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[],"
    " %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],"
    " %s::integer[]) AS sent (id, stamp, change, action, kind, subject, key, target, body, session,"
    " author, version, replaces, depth)"
    " ON CONFLICT (project, owner, id) DO UPDATE SET key = excluded.key,"
    " target = excluded.target, body = excluded.body, version = excluded.version,"
    " replaces = excluded.replaces, depth = excluded.depth"
    " WHERE ctx.records.depth < excluded.depth"
)


def _place_nodes(
    connection: "Connection[Any]", space: Space, node_ids: list[str], *, moving: bool
) -> set[str]:
    """Note where nodes belong; returns those that belong to this space."""
    if moving:
        connection.execute(
            "UPDATE ctx.subjects SET project = %s, owner = %s"
            " WHERE id = ANY (%s) AND (project, owner) <> (%s, %s)",
            (*space, node_ids, *space),
        )
        _delete_nodes(connection, "(project, owner) <> (%s, %s)", space, node_ids)
    connection.execute(
        "INSERT INTO ctx.subjects (id, project, owner)"
        " SELECT id, %s, %s FROM unnest(%s::text[]) AS id ON CONFLICT DO NOTHING",
        (*space, node_ids),
    )
    rows = connection.execute(
        "SELECT id FROM ctx.subjects WHERE id = ANY (%s) AND project = %s AND owner = %s",
        (node_ids, *space),
    )
    return {row[0] for row in rows}


def _delete_nodes(
    connection: "Connection[Any]", where: LiteralString, space: Space, node_ids: list[str]
) -> None:
    """Delete the rows of nodes, with their tags and edges, in this space or in all others."""
    connection.execute(
        "DELETE FROM ctx.nodes WHERE " + where + " AND id = ANY (%s)", (*space, node_ids)
    )
    connection.execute(
        "DELETE FROM ctx.tags WHERE " + where + " AND node_id = ANY (%s)", (*space, node_ids)
    )
    connection.execute(
        "DELETE FROM ctx.stored_edges WHERE " + where + " AND from_id = ANY (%s)",
        (*space, node_ids),
    )


def _write_nodes(connection: "Connection[Any]", space: Space, node_ids: list[str]) -> None:
    by_node: dict[str, list[Record]] = {node_id: [] for node_id in node_ids}
    for record in _records_about(connection, space, node_ids):
        by_node[record.subject].append(record)
    nodes: list[tuple[object, ...]] = []
    tags: list[tuple[str, ...]] = []
    edges: list[tuple[object, ...]] = []
    has_columns = team_schema.has_store_columns(connection)
    for node_id, about in by_node.items():
        state = replay.node(r for r in about if r.kind.startswith("node."))
        if state is None or not state.alive:
            continue
        content, summary = _text(state.content) or "", _text(state.summary)
        words = terms.extract(f"{content}\n{summary}" if summary else content)
        nodes.append(
            (
                node_id, state.type, content, summary, tokens.estimate(state.content),
                state.created_at, state.updated_at, as_json(state.metadata),
                *((" ".join(words), len(words), search_vector(words)) if has_columns else ()),
            )
        )  # fmt: skip
        added = replay.tags(r for r in about if r.kind.startswith("tag."))
        tags += [(node_id, tag, at) for tag, at in added.items()]
        for (_, key), edge in replay.edges(r for r in about if r.kind.startswith("edge.")).items():
            edge_type, _, to_id = key.partition(" ")
            row = (edge.id, node_id, to_id, edge_type, edge.created_at)
            edges.append((*row, as_json(edge.metadata), *((edge.outside,) if has_columns else ())))
    _delete_nodes(connection, "project = %s AND owner = %s", space, node_ids)
    node_columns, edge_columns = _NODE_COLUMNS, _EDGE_COLUMNS
    if has_columns:
        node_columns, edge_columns = node_columns | _NODE_WORDS, edge_columns | _EDGE_OUTSIDE
    _insert(connection, "nodes", node_columns, space, nodes)
    _insert(connection, "tags", _TAG_COLUMNS, space, tags)
    _insert(connection, "stored_edges", edge_columns, space, edges)


_MOST_TEXT = 1 << 24
"""Characters in one statement. PostgreSQL refuses messages of a gigabyte."""
_Columns = dict[LiteralString, LiteralString]
"""Columns and their types."""
_NODE_COLUMNS: _Columns = {
    "id": "text", "type": "text", "content": "text", "summary": "text",
    "token_estimate": "integer", "created_at": "text", "updated_at": "text", "metadata": "json",
}  # fmt: skip
_TAG_COLUMNS: _Columns = {"node_id": "text", "tag": "text", "created_at": "text"}
_EDGE_COLUMNS: _Columns = {
    "id": "text", "from_id": "text", "to_id": "text", "type": "text", "created_at": "text",
    "metadata": "json",
}  # fmt: skip
# A server that nobody has updated lacks these.
_NODE_WORDS: _Columns = {"terms": "text", "words": "integer", "search": "tsvector"}
_EDGE_OUTSIDE: _Columns = {"outside": "boolean"}


def _insert(
    connection: "Connection[Any]",
    table: LiteralString,
    columns: _Columns,
    space: Space,
    rows: Sequence[tuple[object, ...]],
) -> None:
    """Insert rows with few statements: triggers and row-level security cost less than for each."""
    names = ", ".join(columns)
    values = ", ".join(f"%s::{type}[]" for type in columns.values())
    for part in _parts(rows):
        connection.execute(
            f"INSERT INTO ctx.{table} (project, owner, {names})"
            f" SELECT %s, %s, * FROM unnest({values})",
            (*space, *map(list, zip(*part, strict=True))),
        )


def _parts(rows: Sequence[tuple[object, ...]]) -> Iterator[list[tuple[object, ...]]]:
    """The rows in parts, each small enough for one message to the server."""
    part: list[tuple[object, ...]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum([len(value) for value in row if isinstance(value, str)])
        if size > _MOST_TEXT:
            yield part
            part, size = [], 0
    if part:
        yield part


def search_vector(words: Iterable[str]) -> str:
    """Words as a `tsvector`: each once, with as many positions as it occurs.

    PostgreSQL stores at most 255 positions of a word and 1 MiB of words. The words after that are
    not found.
    """
    counts = Counter(word[:LONGEST_WORD] for word in words)
    parts: list[str] = []
    size = 0
    for word, times in counts.items():
        places = min(times, _MOST_PLACES)
        size += len(word.encode()) + 2 * places + 4
        if size > _LARGEST_VECTOR:
            break
        quoted = word.replace("\\", "\\\\").replace("'", "''")
        parts.append(f"'{quoted}':{_PLACES[places]}")
    return " ".join(parts)


def _text(text: str | None) -> str | None:
    """A text as PostgreSQL can store it: without NUL."""
    return text and text.replace("\0", "\ufffd")


def _records_about(
    connection: "Connection[Any]", space: Space, node_ids: list[str]
) -> Iterable[Record]:
    rows = connection.execute(
        "SELECT r.id, stamp, change, action, kind, subject, key, target, body, session, author"
        " FROM unnest(%s::text[]) AS wanted (id),"
        " LATERAL (SELECT * FROM ctx.records WHERE node = wanted.id OFFSET 0) AS r"
        " WHERE r.project = %s AND r.owner = %s",
        (node_ids, *space),
    )
    for row in rows:
        yield Record(Ulid(row[0]), row[1], Ulid(row[2]), *row[3:])
