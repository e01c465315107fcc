"""What can be saved from a damaged store.

Every row that still stands in the file is read, page by page. The records among them make a new
store; what the tables know and no record does is put into records of its own. So a row is lost
only where it is damaged itself, and in the records and in the tables at once.

What is lost is known as far as an index names it that is not damaged too. Nothing is taken for
deleted because it is missing: where the record of a deletion is lost, the node is back.
"""

import json
from collections import Counter
from contextlib import closing, suppress
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import CtxError
from ctx.ids import NodeId, Ulid, is_ulid, new_ulid
from ctx.memory import records, replay, store
from ctx.memory.changes import Change, Who, changing
from ctx.memory.graph import Graph
from ctx.memory.materialise import materialise_all
from ctx.memory.model import EDGE_TYPES, NODE_TYPES
from ctx.memory.records import Record
from ctx.sqlite.connection import transaction
from ctx.sqlite.pages import Row, Value, pages_of

_WHO = Who("cli", "ctx")


class NodeRow(NamedTuple):
    id: NodeId
    type: str
    content: str
    summary: str | None
    token_estimate: int
    superseded_by: NodeId | None
    created_at: str
    updated_at: str
    metadata: dict[str, Any]


Place = tuple[NodeId, NodeId, str]
"""What an edge leads from and to, and of which type it is."""


class EdgeRow(NamedTuple):
    id: Ulid
    created_at: str
    metadata: dict[str, Any]


class ViewRow(NamedTuple):
    query: str
    budget: int | None
    created_at: str
    updated_at: str


class Salvaged:
    """The rows of a file that can be read, each under what names it."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.nodes: dict[NodeId, NodeRow] = {}
        self.edges: dict[Place, EdgeRow] = {}
        self.outside: dict[Place, EdgeRow] = {}
        self.tags: dict[tuple[NodeId, str], str] = {}
        self.views: dict[str, ViewRow] = {}
        self.pending: dict[str, tuple[str, str]] = {}
        # What no record speaks of, by its table.
        self.told: dict[str, dict[str, tuple[Value, ...]]] = {
            "commands": {},
            "receipts": {},
            "events": {},
        }
        self.unreadable_pages = 0
        # What the indexes know to be there, whether or not the row itself can be read.
        self.known_stamps: Counter[int] = Counter()
        self.known_nodes: dict[NodeId, str] = {}
        self.known_edges: set[Place] = set()
        self.known_outside: set[Place] = set()
        self.known_tags: set[tuple[NodeId, str]] = set()

    @property
    def lost_records(self) -> int:
        """How many records an index knows that cannot be read."""
        return (self.known_stamps - Counter(r.stamp for r in self.records.values())).total()

    def take(self, row: Row) -> None:
        """Know a row by its shape: a page does not say to which table it belongs."""
        if row.keyed:
            self._take_key(row.values)
        else:
            self._take_row(row.values)

    def _take_key(self, values: tuple[Value, ...]) -> None:
        match values:
            case (int(stamp), int()):
                self.known_stamps[stamp] += 1
            case (str(tag), str(node_id)) if is_ulid(node_id):
                self.known_tags.add((_node(node_id), tag))
            case (str(end), str(start), str(edge_type)) if edge_type in EDGE_TYPES:
                self.known_outside.add((_node(start), _node(end), edge_type))
            case (str(node_id), str(tag), str(at)) if is_ulid(node_id):
                self.tags[_node(node_id), tag] = at
            case (str(node_type), str(node_id), int()) if node_type in NODE_TYPES:
                self.known_nodes[_node(node_id)] = node_type
            case (str(start), str(end), str(edge_type), int()) if is_ulid(start):
                self.known_edges.add((_node(start), _node(end), edge_type))
            case (str(start), str(end), str(edge_type), str(id_), str(at), str(metadata)):
                place = _node(start), _node(end), edge_type
                if is_ulid(id_) and (told := _json(metadata)) is not None:
                    self.outside[place] = EdgeRow(Ulid(id_), at, told)

    def _take_row(self, values: tuple[Value, ...]) -> None:
        match values:
            case (str(id_), int(), str(), str(), str(), str(), str(), *_) if is_ulid(id_):
                self._take_record(values)
            case (None, str(id_), str(), str(), *_) if is_ulid(id_):
                self._take_node(values[1:])
            case (str(id_), str(start), str(end), str(edge_type), str(at), str(metadata)):
                place = _node(start), _node(end), edge_type
                if is_ulid(id_) and (told := _json(metadata)) is not None:
                    self.edges[place] = EdgeRow(Ulid(id_), at, told)
            # What it is compiled to comes behind, unless the store is older than that.
            case (
                str(name),
                str(query),
                None | int() as budget,
                str(made),
                str(changed),
                *more,
            ) if len(more) < 2:
                self.views[name] = ViewRow(query, budget, made, changed)
            case (str(id_), str(), str(), str(), None | str()):
                self.told["commands"][id_] = values
            case (str(id_), str(), str(), str(), None | str(), int(), str()):
                self.told["receipts"][id_] = values
            case (str(id_), str(), str(), str(), str(), _, _, str(), int(), _, str()):
                self.told["events"][id_] = values
            case (str(key), str(value), str(at)):
                self.pending[key] = value, at

    def _take_record(self, values: tuple[Value, ...]) -> None:
        match values:
            case (
                str(id_),
                int(stamp),
                str(change),
                str(action),
                str(kind),
                str(subject),
                str(key),
                None | str() as target,
                str(body),
                str(session),
                str(author),
            ) if (said := _json(body)) is not None and _fits(kind, key, target) and stamp >= 0:
                self.records[id_] = Record(
                    Ulid(id_),
                    stamp,
                    Ulid(change),
                    action,
                    kind,
                    subject,
                    key,
                    target,
                    said,
                    session,
                    author,
                )

    def _take_node(self, values: tuple[Value, ...]) -> None:
        match values:
            case (
                str(id_),
                str(node_type),
                str(content),
                None | str() as summary,
                int(size),
                None | str() as superseded_by,
                str(made),
                str(changed),
                str(metadata),
                str(),
            ) if (told := _json(metadata)) is not None:
                later = _node(superseded_by) if superseded_by else None
                self.nodes[_node(id_)] = NodeRow(
                    _node(id_), node_type, content, summary, size, later, made, changed, told
                )


class LostNode(NamedTuple):
    id: NodeId
    type: str
    """Empty where it is not known any more."""


class Recovered(NamedTuple):
    """What a new store holds, and what it could not be given."""

    records: int
    nodes: int
    edges: int
    tags: int
    views: int
    from_tables: int
    """Records made from what only the tables knew any more."""
    lost_records: int
    lost_nodes: tuple[LostNode, ...]
    lost_edges: int
    lost_tags: int
    lost_pages: int
    """Parts of the file that are missing or cannot be read: what was in them may be lost too."""


def salvage(path: str, tick: clock.Tick = clock.no_tick) -> Salvaged:
    """Everything that can be read in the file of a store, and in its log."""
    found = Salvaged()
    with pages_of(path) as pages:
        for row in pages.rows(tick):
            found.take(row)
        found.unreadable_pages = pages.unreadable + pages.missing
    return found


def make_store(found: Salvaged, path: str, tick: clock.Tick = clock.no_tick) -> Recovered:
    """A new store with everything that was found."""
    with closing(store.open_for_writing(path)) as connection:
        with transaction(connection):
            # What is there from the beginning is among what was found, unless it is lost.
            present = {row[0] for row in connection.execute("SELECT id FROM records")}
            records.insert(connection, (r for r in found.records.values() if r.id not in present))
            connection.execute("DELETE FROM views")
            materialise_all(connection, tick)
            connection.executemany(
                "INSERT OR IGNORE INTO pending (key, value, created_at) VALUES (?, ?, ?)",
                [(key, *rest) for key, rest in found.pending.items()],
            )
            for table, rows in found.told.items():
                for values in rows.values():
                    places = ", ".join("?" * len(values))
                    connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", values)
        with changing(Graph(connection), "recover", _WHO) as change:
            _adopt(change, found)
            adopted = len(change.records)
        return _told(connection, found, adopted)


def _told(connection: Connection, found: Salvaged, adopted: int) -> Recovered:
    edges = {
        place
        for table in ("edges", "outside")
        for place in connection.execute(f"SELECT from_id, to_id, type FROM {table}")
    }
    known_edges = found.known_edges | found.known_outside
    tags = set(connection.execute("SELECT node_id, tag FROM tags"))
    nodes = [
        LostNode(node_id, found.known_nodes.get(node_id, ""))
        for node_id in sorted(_known_nodes(found))
        if not Graph(connection).has(node_id)
        # What was deleted is not lost.
        and replay.node(records.about(connection, node_id, "node.")) is None
    ]
    return Recovered(
        connection.execute("SELECT count(*) FROM records").fetchone()[0],
        connection.execute("SELECT count(*) FROM nodes").fetchone()[0],
        len(edges),
        len(tags),
        connection.execute("SELECT count(*) FROM views").fetchone()[0],
        adopted,
        found.lost_records,
        tuple(nodes),
        len((known_edges | found.edges.keys() | found.outside.keys()) - edges),
        len((found.known_tags | found.tags.keys()) - tags),
        found.unreadable_pages,
    )


def _known_nodes(found: Salvaged) -> set[NodeId]:
    """Every node that was there, as far as anything still says so."""
    known = {*found.known_nodes, *found.nodes}
    known.update(node_id for node_id, _ in (*found.tags, *found.known_tags))
    known.update(end for place in (*found.edges, *found.known_edges) for end in place[:2])
    # Where those lead is elsewhere.
    known.update(start for start, _, _ in (*found.outside, *found.known_outside))
    known.update(_node(r.subject) for r in found.records.values() if r.kind == "node.put")
    return known


def _adopt(change: Change, found: Salvaged) -> None:
    """Say in records what only the tables know."""
    said = {(r.kind.partition(".")[0], r.subject, r.key) for r in found.records.values()}
    for row in found.nodes.values():
        # A damaged byte may have made it something that cannot be kept.
        with suppress(CtxError):
            _adopt_node(change, row)
    if found.lost_records:
        # That it was restored may be among what is lost.
        for node_id in found.known_nodes.keys() | found.nodes.keys():
            state = replay.node(records.about(change.graph.connection, node_id, "node."))
            if state is not None and not state.alive:
                change.restore_node(node_id)
    for (node_id, tag), at in found.tags.items():
        if ("tag", node_id, tag) not in said:
            with suppress(CtxError):
                change.tag(node_id, tag, at)
    edges = {
        (row.superseded_by, row.id, "SUPERSEDES"): EdgeRow(new_ulid(), row.updated_at, {})
        for row in found.nodes.values()
        if row.superseded_by
    }
    taken = {r.body.get("id", r.id) for r in found.records.values() if r.kind == "edge.put"}
    every = {**edges, **found.edges, **found.outside}
    for (from_id, to_id, edge_type), edge in every.items():
        known = ("edge", from_id, records.edge_key(edge_type, to_id)) in said
        # An edge that a record has elsewhere is the same one, with a damaged end.
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
                    outside=(from_id, to_id, edge_type) in found.outside,
                )
    for name, view in found.views.items():
        if ("view", name, "") not in said:
            change.put_view(name, view.query, view.budget, (view.created_at, view.updated_at))


def _adopt_node(change: Change, row: NodeRow) -> None:
    state = replay.node(records.about(change.graph.connection, row.id, "node."))
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
        # The last change to it is lost.
        gone = dict.fromkeys(state.metadata.keys() - row.metadata.keys())
        change.update_node(
            row.id,
            node_type=row.type,
            content=row.content,
            summary=row.summary or "",
            metadata={**gone, **row.metadata},
            updated_at=row.updated_at,
        )


def _fits(kind: str, key: str, target: str | None) -> bool:
    """Whether the parts of a record go together, where more than one says the same."""
    edge_type, _, to_id = key.partition(" ")
    return not kind.startswith("edge.") or (edge_type in EDGE_TYPES and to_id == target)


def _node(text: str) -> NodeId:
    return NodeId(Ulid(text))


def _json(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
