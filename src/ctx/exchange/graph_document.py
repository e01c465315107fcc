"""Parses documents that `ctx export` wrote, and exports of the Go program of the same name.

Of our own documents, everything must be valid. The Go program exports nodes, edges and tags in a
similar format; its documents are parsed as leniently as its database.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from ctx import clock, ids
from ctx.errors import ContentRefused, NewerFormat, UsageError
from ctx.exchange.foreign import foreign_items, go_ctx
from ctx.exchange.foreign.foreign_items import Item, SkippedItem
from ctx.ids import NodeId, Ulid
from ctx.memory import model
from ctx.memory.model import Draft, Edge, Evidence, View

FORMAT = "ctx-graph"
VERSION = 1

_STORED_TIME = re.compile(
    r"(?:19[7-9]|[2-9][0-9][0-9])[0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z"
)


class Items(Protocol):
    """Items that can be read more than once."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


class GraphDocument(NamedTuple):
    items: Items
    """Nodes, then edges, then views."""
    is_ours: bool
    """Whether `ctx export` of this program wrote it, so that everything in it must be valid."""


def parse(text: str) -> GraphDocument:
    """Parse a document. All of it is checked before anything is imported."""
    document = _parse_json(text)
    if document.get("format") == FORMAT:
        version = document.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise NewerFormat(
                f"The document has version {version}; this ctx reads up to version {VERSION}."
            )
        return _read_document(document)
    if not isinstance(document.get("nodes"), list):
        raise ContentRefused(
            "The document contains no nodes.",
            hint=(
                "`ctx import` reads what `ctx export` writes. For one JSON object per"
                " line, use --from jsonl."
            ),
        )
    return GraphDocument(list(_go_items(document)), is_ours=False)


def _parse_json(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise ContentRefused(
            f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",
            hint="Nothing was changed. Check that the file is complete.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise ContentRefused(f"This JSON cannot be used: {error}.", hint="") from None
    if not isinstance(document, dict):
        raise ContentRefused("The document is not a JSON object.", hint="Nothing was changed.")
    return document


def refuse_constant(name: str) -> None:
    """Refuse what Python reads and JSON does not have: NaN and Infinity."""
    raise ValueError(f"{name} is not a JSON number")


def _read_document(document: Mapping[str, Any]) -> GraphDocument:
    nodes = [_node(entry, at) for at, entry in _entries(document, "nodes")]
    edges = [_edge(entry, at) for at, entry in _entries(document, "edges")]
    views = [_view(entry, at) for at, entry in _entries(document, "views")]
    for word, items in (("node", nodes), ("edge", edges), ("view", views)):
        names: set[str] = set()
        for name in map(item_name, items):
            if name in names:
                raise _invalid_file(f"The {word} {name} is in the document twice")
            names.add(name)
    linked = {(edge.from_id, edge.to_id) for edge in edges if edge.type == "SUPERSEDES"}
    replaced = (replacement(entry, at) for at, entry in _entries(document, "nodes"))
    missing = [edge for edge in replaced if edge and (edge.from_id, edge.to_id) not in linked]
    return GraphDocument([*nodes, *edges, *missing, *views], True)


def item(list_name: str, entry: Mapping[str, Any], at: str) -> Draft | Edge | View:
    """The item of an entry of one of the lists."""
    match list_name:
        case "nodes":
            return _node(entry, at)
        case "edges":
            return _edge(entry, at)
        case _:
            return _view(entry, at)


def item_name(item: Draft | Edge | View) -> str:
    """What identifies an item among those of its list."""
    return item.name if isinstance(item, View) else item.id


def _entries(document: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = document.get(name, [])
    if not isinstance(listed, list):
        raise _invalid_file(f"{name} is not a list")
    for number, entry in enumerate(listed):
        if not isinstance(entry, dict):
            raise _invalid_file(f"{name}[{number}] is not an object")
        yield f"{name}[{number}]", entry


def _node(entry: Mapping[str, Any], at: str) -> Draft:
    tags = entry.get("tags", [])
    if not isinstance(tags, list):
        raise _invalid_file(f"{at}.tags is not a list")
    tagged_at = entry.get("tagged_at", {})
    if not isinstance(tagged_at, dict):
        raise _invalid_file(f"{at}.tagged_at is not an object")
    summary = entry.get("summary")
    if summary is not None and not isinstance(summary, str):
        raise _invalid_file(f"{at}.summary is not a string")
    content = _text(entry, "content", at)
    try:
        model.content(foreign_items.clean_text(content)[0])
        return Draft(
            NodeId(_ulid(entry, "id", at)),
            model.node_type(_text(entry, "type", at)),
            content,
            _time(entry, "created_at", at),
            _time(entry, "updated_at", at),
            summary=summary,
            tags=tuple([model.tag(_tag(tag, at)) for tag in tags]),
            metadata=_object(entry, at),
            tagged_at={tag: _time(tagged_at, tag, f"{at}.tagged_at") for tag in tagged_at},
        )
    except (UsageError, ContentRefused) as error:
        if error.message.startswith(at):
            raise
        raise _invalid_file(f"{at}: {error.message.rstrip('.')}") from None


def replacement(entry: Mapping[str, Any], at: str) -> Edge | None:
    """The edge for a node's `superseded_by`, which the document should also contain."""
    if entry.get("superseded_by") is None:
        return None
    newer, older = (NodeId(_ulid(entry, name, at)) for name in ("superseded_by", "id"))
    replaced_at = _time(entry, "updated_at", at)
    edge_id = foreign_items.derived_id(clock.parse_iso(replaced_at), FORMAT, newer, older)
    evidence = Evidence("ctx").metadata()
    return Edge(edge_id, newer, older, "SUPERSEDES", replaced_at, evidence)


def _edge(entry: Mapping[str, Any], at: str) -> Edge:
    try:
        edge_type = model.edge_type(_text(entry, "type", at))
    except UsageError as error:
        raise _invalid_file(f"{at}: {error.message.rstrip('.')}") from None
    return Edge(
        _ulid(entry, "id", at),
        NodeId(_ulid(entry, "from_id", at)),
        NodeId(_ulid(entry, "to_id", at)),
        edge_type,
        _time(entry, "created_at", at),
        _object(entry, at),
    )


def _view(entry: Mapping[str, Any], at: str) -> View:
    budget = entry.get("budget")
    if budget is not None and not (isinstance(budget, int) and budget > 0):
        raise _invalid_file(f"{at}.budget is not a whole number above 0")
    return View(
        _text(entry, "name", at),
        _text(entry, "query", at),
        budget,
        _time(entry, "created_at", at),
        _time(entry, "updated_at", at),
    )


def _text(entry: Mapping[str, Any], name: str, at: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _invalid_file(f"{at}.{name} is not a string")
    return value


def _tag(value: object, at: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _invalid_file(f"{at}.tags.tag is not a string")
    return value


def _ulid(entry: Mapping[str, Any], name: str, at: str) -> Ulid:
    value = _text(entry, name, at)
    if not ids.is_ulid(value):
        raise _invalid_file(f"{at}.{name} is not an id of 26 characters")
    return Ulid(value)


def _time(entry: Mapping[str, Any], name: str, at: str) -> str:
    time = _canonical_time(_text(entry, name, at))
    if time is None:
        raise _invalid_file(f"{at}.{name} is not a time such as 2026-01-20T10:00:00Z")
    return time


@lru_cache(1 << 10)
def _canonical_time(text: str) -> str | None:
    """A time as it is stored; None if it is invalid."""
    if _STORED_TIME.fullmatch(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return None
        return text
    ms = clock.parse_iso(text)
    return clock.iso(ms) if ms is not None and 0 <= ms < foreign_items.YEAR_10000 else None


def _object(entry: Mapping[str, Any], at: str) -> dict[str, Any]:
    value = entry.get("metadata", {})
    if not isinstance(value, dict):
        raise _invalid_file(f"{at}.metadata is not an object")
    return value


def _invalid_file(what: str) -> ContentRefused:
    return ContentRefused(
        f"{what}.", hint=("Nothing was changed. Check that the file is as `ctx export` wrote it.")
    )


def _go_items(document: Mapping[str, Any]) -> Iterator[Item]:
    """The Go program's export: tags are in the nodes, in a separate list, or in both."""
    listed: dict[str, dict[str, object]] = {}
    for _, row in _lenient(document, "tags"):
        tags = listed.setdefault(foreign_items.text(row.get("node_id")), {})
        tags[foreign_items.text(row.get("tag"))] = row.get("created_at")
    replaced: list[Mapping[str, Any]] = []
    for name, node in _lenient(document, "nodes"):
        if node is not _NOTHING:
            own = node.get("tags")
            listed_there = own if isinstance(own, list) else []
            inside = {tag: None for tag in listed_there if isinstance(tag, str)}
            yield go_ctx.node(
                node, {**inside, **listed.get(foreign_items.text(node.get("id")), {})}
            )
            replaced.append(node)
        else:
            yield SkippedItem(name, "it is not an object")
    for _, edge in _lenient(document, "edges"):
        yield go_ctx.edge(edge)
    for node in replaced:
        yield from go_ctx.replacement(node)
    yield from go_ctx.views(row for _, row in _lenient(document, "views"))


_NOTHING: Mapping[str, Any] = {}


def _lenient(document: Mapping[str, Any], name: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    listed = document.get(name)
    for number, entry in enumerate(listed if isinstance(listed, list) else ()):
        yield f"{name}[{number}]", entry if isinstance(entry, dict) else _NOTHING
