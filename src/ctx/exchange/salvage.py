"""Reads the rows of a damaged store and recognises their tables by shape."""

import json
from collections import Counter
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.ids import NodeId, Ulid, is_ulid
from ctx.memory import records
from ctx.memory.model import EDGE_TYPES, NODE_TYPES
from ctx.memory.records import Record
from ctx.sqlite.pages import PageRow, Value, pages_of

_KEYS = {"symbol_changes": 4, "model_answers": 3, "session_commands": 2, "session_teams": 2}
_WIDTHS = {
    "commands": 5,
    "receipts": 7,
    "events": 11,
    "sessions": 17,
    "symbol_changes": 9,
    "event_log": 7,
    "model_answers": 8,
    "excerpts": 11,
    "session_commands": 10,
    "session_teams": 4,
}
"""The number of columns of these tables."""
_NUMBERED = ("event_log", "excerpts")
_REST_OF_A_SESSION = 4


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


EdgeEnds = tuple[NodeId, NodeId, str]
"""The source, target and type of an edge."""


class EdgeRow(NamedTuple):
    id: Ulid
    created_at: str
    metadata: dict[str, Any]


class ViewRow(NamedTuple):
    query: str
    budget: int | None
    created_at: str
    updated_at: str


class SalvagedRows:
    """The readable rows of a file, by key."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.nodes: dict[NodeId, NodeRow] = {}
        self.edges: dict[EdgeEnds, EdgeRow] = {}
        self.outside: dict[EdgeEnds, EdgeRow] = {}
        self.tags: dict[tuple[NodeId, str], str] = {}
        self.views: dict[str, ViewRow] = {}
        self.pending: dict[str, tuple[str, str]] = {}
        # Rows that have no records, by table.
        self.other_rows: dict[str, dict[str, tuple[Value, ...]]] = {
            "commands": {},
            "receipts": {},
            "events": {},
            "sessions": {},
            "symbol_changes": {},
            "event_log": {},
            "model_answers": {},
            "excerpts": {},
            "session_commands": {},
            "session_teams": {},
        }
        self.unreadable_pages = 0
        # Keys from the indexes, whether or not the rows are readable.
        self.known_stamps: Counter[int] = Counter()
        self.known_nodes: dict[NodeId, str] = {}
        self.known_edges: set[EdgeEnds] = set()
        self.known_outside: set[EdgeEnds] = set()
        self.known_tags: set[tuple[NodeId, str]] = set()

    @property
    def lost_records(self) -> int:
        """How many records are in an index but not readable."""
        return (self.known_stamps - Counter(r.stamp for r in self.records.values())).total()

    def take(self, row: PageRow) -> None:
        """Add a row by its shape: a page does not name its table."""
        if row.keyed:
            self._take_key(row.values)
        else:
            self._take_row(row.values)

    def _take_key(self, values: tuple[Value, ...]) -> None:
        match values:
            case (int(stamp), int()):
                self.known_stamps[stamp] += 1
            case (str(tag), str(node_id)) if is_ulid(node_id):
                self.known_tags.add((as_node(node_id), tag))
            case (str(end), str(start), str(edge_type)) if edge_type in EDGE_TYPES:
                self.known_outside.add((as_node(start), as_node(end), edge_type))
            case (str(node_id), str(tag), str(at)) if is_ulid(node_id):
                self.tags[as_node(node_id), tag] = at
            case (str(node_type), str(node_id), int()) if node_type in NODE_TYPES:
                self.known_nodes[as_node(node_id)] = node_type
            case (str(start), str(end), str(edge_type), int()) if is_ulid(start):
                self.known_edges.add((as_node(start), as_node(end), edge_type))
            case (str(start), str(end), str(edge_type), str(id_), str(at), str(metadata)):
                place = as_node(start), as_node(end), edge_type
                if is_ulid(id_) and (parsed := _json(metadata)) is not None:
                    self.outside[place] = EdgeRow(Ulid(id_), at, parsed)
            case (str(), str(), str(), str(), str(), str(), int(), None | str(), str()):
                self._add_other_row("symbol_changes", values)
            case (str(), str(), str(), int(), int(), int(), str(), str(), str(), str()):
                self._add_other_row("session_commands", values)
            case (str(), str(), str(), str()):
                self._add_other_row("session_teams", values)

    def _take_row(self, values: tuple[Value, ...]) -> None:
        match values:
            case (str(id_), int(), str(), str(), str(), str(), str(), *_) if is_ulid(id_):
                self._take_record(values)
            case (
                None,
                str(),
                None | str(),
                str(),
                int(),
                str(),
                str(),
                str(),
                int(),
                str(),
                str(),
            ):
                self._add_other_row("excerpts", values)
            case (None, str(id_), str(), str(), *_) if is_ulid(id_):
                self._take_node(values[1:])
            case (str(id_), str(start), str(end), str(edge_type), str(at), str(metadata)):
                place = as_node(start), as_node(end), edge_type
                if is_ulid(id_) and (parsed := _json(metadata)) is not None:
                    self.edges[place] = EdgeRow(Ulid(id_), at, parsed)
            # Newer stores have another column with the compiled query.
            case (
                str(name),
                str(query),
                None | int() as budget,
                str(made),
                str(changed),
                *more,
            ) if len(more) < 2:
                self.views[name] = ViewRow(query, budget, made, changed)
            case (str(), str(), str(), str(), None | str()):
                self._add_other_row("commands", values)
            case (str(), str(), str(), str(), None | str(), int(), str()):
                self._add_other_row("receipts", values)
            case (str(), str(), str(), str(), str(), _, _, str(), int(), _, str()):
                self._add_other_row("events", values)
            case (str(), _, str(), _, _, _, str(), str(), int(), _, str(), str(), str(), *more) if (
                len(more) == _REST_OF_A_SESSION
            ):
                self._add_other_row("sessions", values)
            case (None, str(), str(), str(), str(data), None | int(), None | int()) if (
                _json(data) is not None
            ):
                self._add_other_row("event_log", values)
            case (
                str(),
                "steps" | "summary",
                str(),
                str(),
                str(),
                str(),
                str(body),
                str(),
            ) if _json(body) is not None:
                self._add_other_row("model_answers", values)
            case (str(key), str(value), str(at)):
                self.pending[key] = value, at

    def _add_other_row(self, table: str, values: tuple[Value, ...]) -> None:
        if table in _NUMBERED:
            # The key is the row number, which is not among the values.
            values = (None, *values[1:])
        key = values[1:5] if table in _NUMBERED else values[: _KEYS.get(table, 1)]
        self.other_rows[table].setdefault("\0".join(map(str, key)), values)

    def fill_from(self, backup: Connection) -> int:
        """Add rows from a backup that are missing; the number of records added."""
        before = len(self.records)
        for _, of_subject in records.by_subject(backup):
            for record in of_subject:
                self.records.setdefault(record.id, record)
        for table in self.other_rows:
            width = len(backup.execute(f"PRAGMA table_info({table})").fetchall())
            # An older backup has fewer columns or no such table.
            if width == _WIDTHS[table]:
                for row in backup.execute(f"SELECT * FROM {table}"):
                    self._add_other_row(table, row)
        return len(self.records) - before

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
            ) if (parsed := _json(body)) is not None and _fits(kind, key, target) and stamp >= 0:
                self.records[id_] = Record(
                    Ulid(id_),
                    stamp,
                    Ulid(change),
                    action,
                    kind,
                    subject,
                    key,
                    target,
                    parsed,
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
            ) if (parsed := _json(metadata)) is not None:
                later = as_node(superseded_by) if superseded_by else None
                self.nodes[as_node(id_)] = NodeRow(
                    as_node(id_), node_type, content, summary, size, later, made, changed, parsed
                )


def salvage(path: str, tick: clock.Tick = clock.no_tick) -> SalvagedRows:
    """All readable rows of a store's file and its write-ahead log."""
    rows = SalvagedRows()
    with pages_of(path) as pages:
        for row in pages.rows(tick):
            rows.take(row)
        rows.unreadable_pages = pages.unreadable + pages.missing
    return rows


def _fits(kind: str, key: str, target: str | None) -> bool:
    """Whether kind, key and target of a record are consistent."""
    edge_type, _, to_id = key.partition(" ")
    return not kind.startswith("edge.") or (edge_type in EDGE_TYPES and to_id == target)


def as_node(text: str) -> NodeId:
    return NodeId(Ulid(text))


def _json(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
