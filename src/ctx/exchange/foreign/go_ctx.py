"""Reads the `store.db` of the Go program of the same name, which has the same path as ours.

Our tables are based on its tables: ids are ULIDs and are kept, and types, tags, edges and views
have the same meaning. Its metadata is a JSON text. Versions differ in columns, which are read by
name.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any

from ctx.errors import CtxError, DatabaseFailure, UsageError
from ctx.exchange.foreign import foreign_database, foreign_items
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, SkippedItem
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.model import Draft, Edge, Evidence, View
from ctx.sqlite.connection import path_text, pragma, size_of
from ctx.sqlite.truth import application_id_of

PROGRAM = "ctx"

_NODES = ("id", "type", "content", "created_at")
_NODE_COLUMNS = (*_NODES, "summary", "superseded_by", "updated_at", "metadata", "kind")
_EDGE_COLUMNS = ("id", "from_id", "to_id", "type", "created_at", "metadata")
_VIEW_COLUMNS = ("name", "query", "budget", "created_at", "updated_at")
_DEFAULTS = (model.DEFAULT_QUERY, "tag:tier:pinned OR tag:tier:working")


def is_go_store(path: str) -> bool:
    """Whether a file is such a store. Changes nothing and raises nothing."""
    # SQLite would delete the log beside an empty file, and it may be ours.
    if not size_of(path):
        return False
    try:
        with foreign_database.explain_errors(path):
            if application_id_of(path) not in (None, 0):
                return False
        with (
            foreign_database.open_snapshot(path) as connection,
            foreign_database.explain_errors(path),
        ):
            return has_tables(connection)
    except (CtxError, sqlite3.Error, OSError):
        return False


def has_tables(connection: Connection) -> bool:
    tables = foreign_database.columns(connection)
    return (
        pragma(connection, "application_id") == 0
        and set(_NODES) <= set(tables.get("nodes", ()))
        and {"from_id", "to_id", "type"} <= set(tables.get("edges", ()))
        and {"node_id", "tag"} <= set(tables.get("tags", ()))
    )


@contextmanager
def reading(path: str) -> Iterator[ForeignSource]:
    with foreign_database.open_snapshot(path) as connection:
        with foreign_database.explain_errors(path):
            if not has_tables(connection):
                raise DatabaseFailure(
                    f"{path_text(path)} is not a store of the Go program ctx.",
                    hint="Leave out --from, and ctx detects the format.",
                )
            tables = foreign_database.columns(connection)
            known = [name for name in ("nodes", "edges", "views") if name in tables]
            total = sum(foreign_database.count(connection, name) for name in known)
        yield ForeignSource(PROGRAM, total, _items(path, connection, tables))


def _items(path: str, connection: Connection, tables: Mapping[str, list[str]]) -> Iterator[Item]:
    with foreign_database.explain_errors(path):
        yield from _nodes(connection, tables)
        for row in _rows(connection, "edges", tables, _EDGE_COLUMNS):
            yield edge(row)
        for row in _rows(connection, "nodes", tables, ("id", "superseded_by", "updated_at")):
            yield from replacement(row)
        yield from views(_rows(connection, "views", tables, _VIEW_COLUMNS))


def _rows(
    connection: Connection, table: str, tables: Mapping[str, list[str]], wanted: tuple[str, ...]
) -> Iterator[foreign_database.Row]:
    columns = {name: (name,) for name in wanted}
    return foreign_database.rows(
        connection, table, tables.get(table, ()), columns, order=wanted[:1]
    )


def _nodes(connection: Connection, tables: Mapping[str, list[str]]) -> Iterator[Item]:
    """Nodes with their tags. Both are streamed in the order of ids."""
    tags = _rows(connection, "tags", tables, ("node_id", "tag", "created_at"))
    tag = next(tags, None)
    for row in _rows(connection, "nodes", tables, _NODE_COLUMNS):
        while tag and _key(tag["node_id"]) < _key(row["id"]):
            tag = next(tags, None)
        tagged_at: dict[str, object] = {}
        while tag and _key(tag["node_id"]) == _key(row["id"]):
            tagged_at[foreign_items.text(tag["tag"])] = tag["created_at"]
            tag = next(tags, None)
        yield node(row, tagged_at)


def _key(value: object) -> bytes:
    """A sort key in SQLite's text order, so that both cursors advance together."""
    return foreign_items.text(value).encode("utf-8", "surrogateescape")


def node(row: Mapping[str, Any], tagged_at: Mapping[str, object]) -> Draft | SkippedItem:
    own_name = foreign_items.text(row.get("id"))
    content = foreign_items.text(row.get("content"))
    if not content.strip():
        return SkippedItem(f"node {own_name}", "it has no content")
    created = foreign_items.moment(row.get("created_at"))
    updated = foreign_items.moment(row.get("updated_at"), row.get("created_at"))
    node_id = _node_id(own_name)
    node_type, metadata = foreign_items.node_type(foreign_items.text(row.get("type")))
    kind = foreign_items.text(row.get("kind"))
    if kind not in ("", "memory"):
        metadata["kind"] = kind
    times = {
        tag: foreign_items.iso(foreign_items.moment(at))
        for word, at in tagged_at.items()
        if (tag := foreign_items.tag(word))
    }
    return Draft(
        node_id,
        node_type,
        content,
        foreign_items.iso(created),
        foreign_items.iso(updated),
        summary=foreign_items.text(row.get("summary")).strip() or None,
        tags=tuple(times),
        metadata={**_metadata(row.get("metadata")), **metadata},
        tagged_at={tag: at for tag, at in times.items() if at},
    )


def replacement(row: Mapping[str, Any]) -> Iterator[Edge | SkippedItem]:
    """The edge from the superseding node: older versions have only a column for it."""
    if newer := foreign_items.text(row.get("superseded_by")).strip():
        name, at = foreign_items.text(row.get("id")), row.get("updated_at")
        yield edge({"from_id": newer, "to_id": name, "type": "SUPERSEDES", "created_at": at})


def _metadata(written: object) -> dict[str, Any]:
    """An object, or the JSON text of one; other values are kept as written."""
    if isinstance(written, Mapping):
        return dict(written)
    text = foreign_items.text(written).strip()
    if text in ("", "{}", "null"):
        return {}
    value = foreign_items.json_value(text)
    return value if isinstance(value, dict) else {"original_metadata": text}


def edge(row: Mapping[str, Any]) -> Edge | SkippedItem:
    from_name, to_name = (
        foreign_items.text(row.get("from_id")),
        foreign_items.text(row.get("to_id")),
    )
    word = foreign_items.text(row.get("type"))
    if not from_name.strip() or not to_name.strip():
        return SkippedItem(f"edge {word} {from_name} → {to_name}", "it has only one end")
    metadata = {**Evidence(PROGRAM).metadata(), **_metadata(row.get("metadata"))}
    try:
        edge_type = model.edge_type(word)
    except UsageError:
        edge_type = "RELATES_TO"
        metadata["original_type"] = word
    from_id, to_id = _node_id(from_name), _node_id(to_name)
    created = foreign_items.moment(row.get("created_at"))
    named = foreign_items.text(row.get("id")).strip()
    own_id = foreign_items.kept_id(named, created, PROGRAM, "edge", from_id, to_id, edge_type)
    return Edge(own_id, from_id, to_id, edge_type, foreign_items.iso(created), metadata)


def views(rows: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    for row in rows:
        item = view(row)
        # The program's own default view is not imported; ours is equivalent.
        if not (isinstance(item, View) and item.name == "default" and item.query in _DEFAULTS):
            yield item


def view(row: Mapping[str, Any]) -> View | SkippedItem:
    name = foreign_items.text(row.get("name")).strip()
    query = foreign_items.text(row.get("query")).strip()
    if not name or not query:
        return SkippedItem(f"view {name or '?'}", "it has no name or no query")
    budget = row.get("budget")
    created = foreign_items.moment(row.get("created_at"))
    return View(
        name,
        query,
        budget if isinstance(budget, int) and budget > 0 else None,
        foreign_items.iso(created),
        foreign_items.iso(foreign_items.moment(row.get("updated_at"), row.get("created_at"))),
    )


def _node_id(name: str) -> NodeId:
    """The same id for a node and for the edges to it, so it has no time."""
    return foreign_items.kept_id(name, None, PROGRAM)
