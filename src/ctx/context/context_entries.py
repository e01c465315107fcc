"""Nodes as entries of a context, read in parts, so that the caller can stop early.

Hooks load this module: of `memory` it imports only the model and short ids.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.context import hook_queries
from ctx.context.compose import ContextEntry
from ctx.ids import NodeId
from ctx.memory import model, short_ids, sources

_FIRST_PART = 50
_LARGEST_PART = 200


class Edges(NamedTuple):
    """What a node depends on, and what it was derived from."""

    depends_on: tuple[NodeId, ...] = ()
    derived_from: tuple[NodeId, ...] = ()


class ContextNode(NamedTuple):
    """A node with what a context needs of it."""

    id: NodeId
    type: str
    content: str
    summary: str | None
    tags: tuple[str, ...]
    token_estimate: int
    superseded_by: NodeId | None
    created_at: str
    updated_at: str
    metadata: Mapping[str, Any]
    edges: Edges
    author: str | None = None
    """Who wrote it; None if it was the reader."""
    source: str = sources.USER


class LoadedEntry(NamedTuple):
    node: ContextNode
    short_id: str
    entry: ContextEntry


def load(
    connections: Sequence[Connection],
    node_ids: Iterable[NodeId],
    kept: Collection[NodeId] | None = None,
) -> Iterator[LoadedEntry]:
    """The nodes in order. The `kept` ones, or else the pinned ones, must appear in the context.

    Nodes that somebody else wrote have an author.
    """
    waiting = iter(node_ids)
    size = _FIRST_PART
    while part := list(islice(waiting, size)):
        size = min(size * 2, _LARGEST_PART)
        nodes = _nodes(connections, part)
        newer = [node.superseded_by for node in nodes if node.superseded_by]
        ends = [*(end for node in nodes for end in node.edges.depends_on), *newer]
        names = short_ids.short_ids(connections, [*(node.id for node in nodes), *ends])
        types = hook_queries.types(connections, ends)
        labels = {end: f"{types[end]}:{names[end]}" for end in ends if end in types}
        for node in nodes:
            yield LoadedEntry(node, names[node.id], _entry(node, names[node.id], labels, kept))


def _entry(
    node: ContextNode,
    name: str,
    labels: Mapping[NodeId, str],
    kept: Collection[NodeId] | None,
) -> ContextEntry:
    tier = model.tier(node.tags)
    rationale = node.metadata.get("rationale")
    return ContextEntry(
        f"{node.type}:{name}",
        node.type,
        tier,
        node.content,
        node.tags,
        rationale if isinstance(rationale, str) else "",
        [labels[end] for end in node.edges.depends_on if end in labels],
        labels.get(node.superseded_by, "") if node.superseded_by else "",
        tier == model.PINNED if kept is None else node.id in kept,
        node.author or "",
        *sources.mark(node.source),
    )


def _nodes(connections: Sequence[Connection], part: Sequence[NodeId]) -> list[ContextNode]:
    """The nodes that exist, in the order of `part`."""
    found = {row[0]: row for row in hook_queries.nodes(connections, part)}
    tags: dict[str, list[str]] = {}
    for node_id, tag in hook_queries.tags(connections, part):
        tags.setdefault(node_id, []).append(tag)
    depends_on: dict[str, list[NodeId]] = {}
    derived_from: dict[str, list[NodeId]] = {}
    for from_id, to_id, edge_type in hook_queries.dependencies(connections, part):
        ends = depends_on if edge_type == "DEPENDS_ON" else derived_from
        ends.setdefault(from_id, []).append(to_id)
    written_by: Mapping[NodeId, str] = {}
    if len(connections) > 1:
        # Without a project's store, a hook does not import this.
        from ctx.project import authors

        written_by = authors.strangers(connections[:-1], part)
    metadata = {node_id: model.from_json(row[8]) for node_id, row in found.items()}
    said = sources.of_nodes(
        connections,
        {node_id: (row[1], row[2], metadata[node_id]) for node_id, row in found.items()},
    )
    return [
        ContextNode._make(
            (
                *row[:4],
                tuple(tags.get(node_id, ())),
                *row[4:8],
                metadata[node_id],
                Edges(tuple(depends_on.get(node_id, ())), tuple(derived_from.get(node_id, ()))),
                written_by.get(node_id),
                said[node_id],
            )
        )
        for node_id in part
        if (row := found.get(node_id))
    ]
