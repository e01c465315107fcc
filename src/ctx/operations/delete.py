"""Delete nodes, and bring them back."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ctx.errors import CtxError
from ctx.ids import NodeId
from ctx.memory import receipts, walk
from ctx.memory.graph import PROJECT
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory


class Deletion(NamedTuple):
    """What a deletion takes away, before or after it happened."""

    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    dependents: tuple[Node, ...]
    """Nodes that stay, although they were made from these or rest on them."""


class DeleteResult(NamedTuple):
    """The answer of `ctx delete` and `ctx forget`."""

    deleted: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    dependents: tuple[Node, ...]
    dry_run: bool


class RestoreResult(NamedTuple):
    """The answer of `ctx restore`."""

    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]


def deletion(graph: Graphs, node_ids: Sequence[NodeId], *, cascade: bool) -> Deletion:
    """What would be deleted; with `cascade` also what was derived from it, and so on."""
    wanted = dict.fromkeys(node_ids)
    if cascade:
        derived = walk.all_behind(graph, node_ids, ("DERIVED_FROM",), reverse=True)
        wanted.update(dict.fromkeys(derived))
    nodes = tuple(graph.nodes(wanted))
    dependents = {
        edge.from_id: None
        for node_id in wanted
        for edge_type in ("DERIVED_FROM", "DEPENDS_ON")
        for edge in graph.edges(node_id, "in", edge_type)
        if edge.from_id not in wanted
    }
    others = tuple(graph.nodes(dependents))
    return Deletion(nodes, graph.shown(node.id for node in (*nodes, *others)), others)


def delete(memory: Memory, node_ids: Iterable[NodeId], action: str = "delete") -> str:
    """Delete nodes, and return the change for `ctx undo`."""
    there = [node_id for node_id in node_ids if memory.graph.has(node_id)]
    # What receipts call the nodes by.
    lines = [
        " ".join(node.content.strip().partition("\n")[0].split())
        for node in memory.graph.nodes(there)
    ]
    by_scope = memory.graph.by_scope(there)
    with memory.transaction(action, *by_scope) as change:
        for here, node_id in change.by_node(by_scope):
            if here.graph.has(node_id):
                here.delete_node(node_id)
    # What is known of the meaning of a node goes with it, and comes back with it.
    from ctx.packs import node_vectors

    # It is deleted anyway: the next index update does what failed now.
    with suppress(CtxError):
        node_vectors.forget(memory, there)
    with transaction(memory.local):
        receipts.forget(memory.local, filter(None, lines))
    return change.id


def files_of(memory: Memory, nodes: Iterable[Node]) -> list[str]:
    """The documents of nodes, from the project's root, as far as they are there."""
    found: list[str] = []
    for node in nodes:
        path = node.metadata.get("file")
        if memory.project_memory and node.scope == PROJECT and isinstance(path, str):
            full = os.path.join(memory.project_memory.project.narrative, path)
            if os.path.lexists(full):
                found.append(os.path.relpath(full, memory.project_memory.project.root))
    return found


def is_kept_until_commit(memory: Memory, nodes: Iterable[Node]) -> bool:
    """Whether one of these deleted nodes was never committed, so that a commit leaves it out."""
    if memory.project_memory is None:
        return False
    unpublished = memory.project_memory.unpublished_deletions()
    return any(node.id in unpublished for node in nodes)


def restore(memory: Memory, node_ids: Sequence[NodeId]) -> RestoreResult:
    gone: dict[str, list[NodeId]] = {}
    for node_id in dict.fromkeys(node_ids):
        gone.setdefault(memory.graph.lost_in(node_id).scope, []).append(node_id)
    with memory.transaction("restore", *gone) as change:
        for here, node_id in change.by_node(gone):
            if here.graph.was_deleted(node_id):
                here.restore_node(node_id)
    nodes = tuple(memory.graph.nodes(node_ids))
    return RestoreResult(nodes, memory.graph.shown(node.id for node in nodes))
