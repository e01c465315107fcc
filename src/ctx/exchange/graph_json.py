"""Exports a graph as one JSON document, and compares such a document with a graph.

    {"format": "ctx-graph", "version": 1,
    "nodes": [
    {"id": …, "type": …, "content": …, "summary": …, "tags": […], "superseded_by": …,
     "created_at": …, "updated_at": …, "metadata": {…}},
    …

Equal graphs give equal bytes: everything is sorted, and the time and place of the export are not
included. Each node, edge and view is on its own line, so that documents can be compared line by
line. `tagged_at` lists only tags that were added later than the node.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ctx.errors import ImportConflict
from ctx.exchange.foreign import foreign_items
from ctx.exchange.foreign.foreign_items import Item
from ctx.exchange.graph_document import FORMAT, VERSION
from ctx.exchange.importer import ACTION, is_untouched
from ctx.ids import NodeId
from ctx.memory import stats
from ctx.memory.changes import Change, ChangeAuthor
from ctx.memory.graph import Graph
from ctx.memory.model import Draft, Edge, Node, View, from_json

_BATCH = 500
_CONFLICTS_SHOWN = 5


class ExportCounts(NamedTuple):
    nodes: int
    edges: int
    views: int


def write(
    graph: Graph, chosen: Sequence[NodeId] | None, out: Callable[[str], object]
) -> ExportCounts:
    """Write the whole graph, or some nodes and the edges between them, line by line."""
    among = None if chosen is None else frozenset(chosen)
    out(f'{{"format": "{FORMAT}", "version": {VERSION},\n"nodes": [')
    nodes = _write_list(_node_lines(graph, chosen, among), out)
    out('],\n"edges": [')
    edges = _write_list(_edge_lines(graph, among), out)
    out('],\n"views": [')
    exported = graph.views() if among is None else ()
    views = _write_list((_line(view._asdict()) for view in exported), out)
    out("]}\n")
    return ExportCounts(nodes, edges, views)


def _write_list(lines: Iterator[str], out: Callable[[str], object]) -> int:
    count = 0
    for count, line in enumerate(lines, start=1):
        out(f",\n{line}" if count > 1 else f"\n{line}")
    if count:
        out("\n")
    return count


def _node_lines(
    graph: Graph, chosen: Sequence[NodeId] | None, among: frozenset[NodeId] | None
) -> Iterator[str]:
    node_ids: Iterator[NodeId] = (
        (row[0] for row in graph.connection.execute("SELECT id FROM nodes ORDER BY id"))
        if chosen is None
        else iter(sorted(set(chosen)))
    )
    while part := list(islice(node_ids, _BATCH)):
        places = ", ".join("?" * len(part))
        times: dict[str, dict[str, str]] = {}
        for node_id, tag, created_at in graph.connection.execute(
            f"SELECT node_id, tag, created_at FROM tags WHERE node_id IN ({places})"
            " ORDER BY node_id, tag",
            part,
        ):
            times.setdefault(node_id, {})[tag] = created_at
        for node in graph.nodes(part):
            replaced = among is not None and node.superseded_by not in among
            known = node._replace(superseded_by=None) if replaced else node
            yield _line(_written_node(known, times.get(node.id, {})))


def _written_node(node: Node, times: Mapping[str, str]) -> dict[str, Any]:
    later = {tag: at for tag, at in times.items() if at != node.created_at}
    return {
        "id": node.id,
        "type": node.type,
        "content": node.content,
        "summary": node.summary or None,
        "tags": list(node.tags),
        **({"tagged_at": later} if later else {}),
        "superseded_by": node.superseded_by,
        "created_at": node.created_at,
        "updated_at": node.updated_at,
        "metadata": _sort_keys(node.metadata),
    }


def _edge_lines(graph: Graph, among: frozenset[NodeId] | None) -> Iterator[str]:

    for row in graph.connection.execute(
        "SELECT id, from_id, to_id, type, created_at, metadata FROM edges ORDER BY id"
    ):
        if among is None or (row[1] in among and row[2] in among):
            yield _line(
                dict(zip(Edge._fields, (*row[:5], _sort_keys(from_json(row[5]))), strict=True))
            )


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(nested) for nested in value] if isinstance(value, list) else value


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def require_no_conflict(graph: Graph, items: Iterable[Item]) -> None:
    """Raise if an item differs from the existing one with the same name."""
    if not stats.has_nodes(graph.connection) and all(map(is_untouched, graph.views())):
        return
    lines: list[str] = []
    count = 0
    for item in items:
        if conflict := _conflict(graph, item):
            count += 1
            if len(lines) < _CONFLICTS_SHOWN:
                lines.append(f"  {conflict}")
    if count:
        more = [f"  … and {count - len(lines):,} more"] if count > len(lines) else []
        noun = "1 item already exists" if count == 1 else f"{count:,} items already exist"
        raise ImportConflict(f"{noun} with different content.", detail="\n".join([*lines, *more]))


def _conflict(graph: Graph, item: Item) -> str | None:
    if isinstance(item, Draft):
        node = next(graph.nodes([item.id]), None)
        if node is None:
            return None
        removed = {key: None for key in node.metadata if key not in item.metadata}
        trial = Change(graph, ACTION, ChangeAuthor("", ""))
        differing = trial.update_node(
            item.id,
            node_type=item.type,
            content=foreign_items.clean_text(item.content)[0],
            summary=foreign_items.clean_text(item.summary or "")[0],
            metadata={**removed, **foreign_items.cleaned_value(dict(item.metadata))[0]},
        )
        if set(item.tags) != set(node.tags):
            differing = (*differing, "tags")
        return f"node {item.id}: {', '.join(differing)}" if differing else None
    if isinstance(item, Edge):
        edge = graph.edge(item.from_id, item.to_id, item.type)
        metadata = foreign_items.cleaned_value(dict(item.metadata))[0]
        if edge and metadata and edge.metadata != metadata:
            return f"edge {item.from_id} {item.type} {item.to_id}: evidence"
    if isinstance(item, View):
        view = next(
            (known_view for known_view in graph.views() if known_view.name == item.name), None
        )
        same = view is None or (view.query, view.budget) == (item.query, item.budget)
        if view and not same and not is_untouched(view) and not is_untouched(item):
            return f"view {item.name}: {view.query}"
    return None
