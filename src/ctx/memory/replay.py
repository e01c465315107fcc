"""Computes the current state of a node, edge, tag or view from its records.

The order in which records arrive does not matter: they are applied in the order of their stamps.
The last writer of each field wins. A tag or an edge exists if the last record about it adds it. A
deleted node stays deleted, whatever later records say, until it is restored; then all records about
it apply.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.memory import records
from ctx.memory.records import BEYOND, Record

PREFIX = "project:"
NODE_KINDS = ("node.", "tag.", "edge.")
FIELDS = ("type", "content", "summary")


class NodeState(NamedTuple):
    alive: bool
    type: str
    content: str
    summary: str | None
    metadata: dict[str, Any]
    created_at: str
    updated_at: str


class EdgeState(NamedTuple):
    id: str
    created_at: str
    metadata: dict[str, Any]
    outside: bool = False
    """Whether it points to a node of another store."""


class ViewState(NamedTuple):
    query: str
    budget: int | None
    created_at: str
    updated_at: str


def node(records: Iterable[Record]) -> NodeState | None:
    """The state of a node; None if no record creates it, as in a partial history."""
    alive = deleted = False
    fields: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    created_at = updated_at = over = ""
    for record in _in_stamp_order(records):
        if record.kind == "node.put":
            alive = not deleted
            put = {name: record.body[name] for name in FIELDS if name in record.body}
            if record.stamp >= BEYOND and over and over == record.body.get("digest"):
                # An edit overrides this version of the document.
                put.pop("content", None)
            if "content" in put:
                over = record.body.get("over", "")
            fields.update(put)
            metadata.update(record.body.get("metadata", {}))
            created_at = created_at or record.body.get("created_at") or wall_time(record)
            if record.stamp < BEYOND:
                updated_at = record.body.get("updated_at") or wall_time(record)
            else:
                # A record from a document has a time only if the document states one.
                updated_at = max(updated_at, record.body.get("updated_at", ""))
        elif record.kind == "node.delete":
            alive, deleted = False, True
        elif record.kind == "node.restore":
            alive, deleted = "content" in fields, False
    if "content" not in fields:
        return None
    kept = {key: value for key, value in metadata.items() if value is not None}
    return NodeState(
        alive,
        fields.get("type", "observation"),
        fields["content"],
        fields.get("summary"),
        kept,
        created_at,
        updated_at,
    )


def tags(records: Iterable[Record]) -> dict[str, str]:
    """A node's tags and when each was added."""
    added_at: dict[str, str] = {}
    removed: set[str] = set()
    for record in _in_stamp_order(records):
        if record.kind == "tag.add":
            # A tag from a document counts unless a record removes it.
            if record.stamp < BEYOND or record.key not in {*added_at, *removed}:
                added_at[record.key] = record.body.get("created_at") or wall_time(record)
            removed.discard(record.key)
        elif record.kind == "tag.remove":
            added_at.pop(record.key, None)
            removed.add(record.key)
    return added_at


def edges(records: Iterable[Record]) -> dict[tuple[str, str], EdgeState]:
    """Edges by source node and key."""
    states: dict[tuple[str, str], EdgeState] = {}
    removed: set[tuple[str, str]] = set()
    for record in _in_stamp_order(records):
        place = record.subject, record.key
        if record.kind == "edge.put":
            if record.stamp >= BEYOND and place in removed:
                # An edge from a document counts unless a record removes it.
                continue
            removed.discard(place)
            body = record.body
            states[place] = EdgeState(
                body.get("id") or record.id,
                body.get("created_at") or wall_time(record),
                body.get("metadata", {}),
                body.get("outside") is True,
            )
        elif record.kind == "edge.delete":
            states.pop(place, None)
            removed.add(place)
    return states


def view(records: Iterable[Record]) -> ViewState | None:
    state: ViewState | None = None
    for record in _in_stamp_order(records):
        if record.kind == "view.put":
            body = record.body
            state = ViewState(
                body["query"],
                body.get("budget"),
                state.created_at if state else body.get("created_at") or wall_time(record),
                body.get("updated_at") or wall_time(record),
            )
        elif record.kind == "view.delete":
            state = None
    return state


class TaskState(NamedTuple):
    word: str
    at: str


def current_task(records: Iterable[Record]) -> TaskState | None:
    """The current task of a place."""
    task: TaskState | None = None
    for record in _in_stamp_order(records):
        if record.kind == "task.set":
            word = record.body.get("task")
            task = TaskState(word, wall_time(record)) if word else None
    return task


def wall_time(record: Record) -> str:
    """The wall time of a record."""
    return _iso(clock.stamp_ms(record.stamp) // 1000)


@lru_cache(1000)
def _iso(second: int) -> str:
    """Cached, because the records of one change have the same second."""
    return clock.iso(second * 1000)


def _in_stamp_order(records: Iterable[Record]) -> list[Record]:
    found = list(records)
    if len(found) > 1:
        found.sort(key=_ORDER)
    return found


_ORDER = attrgetter("stamp", "id")


def is_about_node(record: Record) -> bool:
    return record.kind.startswith(NODE_KINDS)


def changes_project(record: Record) -> bool:
    return record.kind.startswith("tag.") and record.key.startswith(PREFIX)


def projects_of(connection: Connection, node_id: str) -> frozenset[str]:
    """The projects of a node. Those of a deleted node count as before."""
    found = tags(records.records_about(connection, node_id, "tag."))
    return frozenset(tag.removeprefix(PREFIX) for tag in found if tag.startswith(PREFIX))


def records_about_node(connection: Connection, node_id: str) -> list[str]:
    """The ids of all records about a node."""
    about = records.records_about(connection, node_id)
    return [record.id for record in about if is_about_node(record)]
