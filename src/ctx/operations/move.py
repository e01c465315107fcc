"""Move nodes from one store to the other.

A node keeps its id, its tags, its times, and the edges that are allowed. An edge is stored with the
node where it begins, and may lead from the user store to the project store, not the other way:
other people would have an edge without an end.

The node is written to its new store before it is removed from the old one. A crash in between
leaves it in both; then the project's counts, and moving it again finishes the work.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx import ids
from ctx.errors import NotAProject, UsageError
from ctx.ids import NodeId, Ulid
from ctx.memory import records, replay, sources
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import ANCHOR_TYPES, Edge, Node, Redaction
from ctx.memory.records import Record
from ctx.operations import document
from ctx.project.anchors import Anchor
from ctx.workspace import Memory

_MOST_LISTED = 10


class MoveResult(NamedTuple):
    """The answer of `ctx move`."""

    scope: str
    """Where the nodes are now: `user` or `project`."""
    moved: tuple[Node, ...]
    unchanged: tuple[Node, ...]
    """Those that were there already."""
    short_ids: Mapping[NodeId, str]
    dropped: tuple[Edge, ...]
    """The edges that did not come along."""
    dry_run: bool
    redacted: tuple[Redaction, ...]


class _EdgeMove(NamedTuple):
    """What an edge becomes when some nodes move."""

    edge: Edge
    scope: str | None
    """The store that has it then; None: it cannot be."""
    outside: bool = False


def move(
    memory: Memory,
    node_ids: Sequence[NodeId],
    target: str,
    *,
    drop_edges: bool = False,
    dry_run: bool = False,
) -> MoveResult:
    """Bring nodes to a store. What is there already stays, and a second time changes nothing."""
    if memory.project_memory is None and target == PROJECT:
        memory.require_trust()
        raise NotAProject(f"No project store in {memory.folder} or a folder above it.")
    wanted = list(dict.fromkeys(node_ids))
    leaving = _nodes_to_move(memory, wanted, target)
    _refuse_documents(leaving, target)
    ways = _edge_moves(memory, leaving, target)
    impossible = tuple(way.edge for way in ways if way.scope is None)
    if impossible and not drop_edges:
        _refuse_edges(memory, impossible, target)
    redacted: tuple[Redaction, ...] = ()
    if leaving and not dry_run:
        redacted = _carry(memory, leaving, ways, target)
    graph = memory.graph
    moving = {node.id for node in leaving}
    return MoveResult(
        target,
        tuple(graph.nodes(each for each in wanted if each in moving)),
        tuple(graph.nodes(each for each in wanted if each not in moving)),
        graph.shown(wanted),
        impossible,
        dry_run,
        redacted,
    )


def _nodes_to_move(memory: Memory, node_ids: Iterable[NodeId], target: str) -> list[Node]:
    """The nodes that are not only where they should be, as they count."""
    scope = USER if target == PROJECT else PROJECT
    source = next((each for each in memory.graph.graphs if each.scope == scope), None)
    if source is None:
        return []
    # A move that was cut short left a node in both.
    return [memory.graph.node(each) for each in node_ids if source.has(each)]


def _refuse_documents(nodes: Sequence[Node], target: str) -> None:
    for node in nodes:
        path = document.file_of(node)
        if target == USER and path:
            raise UsageError(
                f"{ids.short(node.id)} has the file {document.shown_path(path)}, which"
                " belongs to the project.",
                hint="Add a node to your own store instead.",
            )


def _edge_moves(memory: Memory, leaving: Sequence[Node], target: str) -> list[_EdgeMove]:
    graph = memory.graph
    moving = {node.id for node in leaving}
    edges = {edge.id: edge for node_id in moving for edge in graph.edges(node_id)}
    ends = {end: None for edge in edges.values() for end in (edge.from_id, edge.to_id)}
    others = {node.id: node for node in graph.nodes(ends)}

    def goes_to(node_id: NodeId) -> str:
        return target if node_id in moving else others[node_id].scope

    found = []
    for edge in edges.values():
        begins, ends_in = goes_to(edge.from_id), goes_to(edge.to_id)
        if begins == PROJECT and ends_in == USER:
            # An anchor of the code can be in both stores.
            stays = edge.to_id not in moving and _is_anchor(others[edge.to_id])
            found.append(_EdgeMove(edge, PROJECT if stays else None))
        elif begins == USER and ends_in == PROJECT:
            found.append(_EdgeMove(edge, None if edge.type == "SUPERSEDES" else USER, outside=True))
        else:
            found.append(_EdgeMove(edge, begins))
    return found


def _is_anchor(node: Node) -> bool:
    owners = ("", *(tag for tag in node.tags if tag.startswith("project:")))
    return node.type in ANCHOR_TYPES and any(
        node.id == Anchor(node.type, node.content, tag).id for tag in owners
    )


def _refuse_edges(memory: Memory, edges: Sequence[Edge], target: str) -> None:
    shown = memory.graph.shown(end for edge in edges for end in (edge.from_id, edge.to_id))
    lines = [
        f"  {shown[edge.from_id]} ── {edge.type} → {shown[edge.to_id]}"
        for edge in edges[:_MOST_LISTED]
    ]
    lines += [f"  … and {len(edges) - _MOST_LISTED:,} more"] if len(edges) > _MOST_LISTED else []
    some = "An edge" if len(edges) == 1 else f"{len(edges):,} edges"
    then = "lead from the project to your own store" if target == PROJECT else "lead nowhere"
    raise UsageError(
        f"{some} would {then}.",
        detail="\n".join(lines),
        hint="Move the nodes at the other end too, or drop the edges with --drop-edges.",
    )


def _carry(
    memory: Memory, leaving: Sequence[Node], ways: Sequence[_EdgeMove], target: str
) -> tuple[Redaction, ...]:
    source = USER if target == PROJECT else PROJECT
    said = {way.edge.id: _last_record(memory, way.edge) for way in ways}
    anchors = _anchors_beside(memory, leaving, ways, target)
    with memory.transaction(records.MOVE, target, source) as change:
        for node in anchors:
            _arrive(change, node, _tags(memory, node, target))
        for node in leaving:
            # What is in both stores is in the project's as it counts.
            if target == USER or not change.graph.has(node.id):
                _arrive(change, node, _tags(memory, node, target))
        _draw(change, ways, said, target)
        other = change.in_scope(source)
        for node in leaving:
            if other.graph.has(node.id):
                other.delete_node(node.id)
        _draw(other, ways, said, source)
    return tuple(change.redacted)


def _anchors_beside(
    memory: Memory, leaving: Sequence[Node], ways: Sequence[_EdgeMove], target: str
) -> list[Node]:
    """What stands for code, is mentioned by what moves to the project, and is not there yet."""
    moving = {node.id for node in leaving}
    ends = [way.edge.to_id for way in ways if way.scope == target and not way.outside]
    found = memory.graph.nodes(dict.fromkeys(end for end in ends if end not in moving))
    return [node for node in found if node.scope != target]


def _arrive(change: Change, node: Node, tags: Sequence[str]) -> None:
    """Let a node be in a store as it is. It may have been there before, and otherwise."""
    about = records.records_about(change.graph.connection, node.id)
    if change.graph.was_deleted(node.id):
        change.restore_node(node.id)
    metadata: dict[str, Any] = {**node.metadata}
    if not sources.stated_source(node.type, node.metadata) and node.source != sources.USER:
        # In the other store, the author of the text is whoever moves it.
        metadata[sources.KEY] = node.source
    before = replay.node(about)
    if before:
        metadata |= {key: None for key in before.metadata if key not in metadata}
    change.add_node(
        node.type,
        node.content,
        summary=node.summary,
        metadata=metadata,
        node_id=node.id,
        times=(node.created_at, node.updated_at),
    )
    if before and before.summary and not node.summary:
        change.repeat(about[0]._replace(key="", target=None), "node.put", {"summary": None})
    for tag in replay.tags(about):
        if tag not in tags:
            [*_, last] = records.about_key(change.graph.connection, node.id, "tag.", tag)
            change.repeat(last, "tag.remove", {})
    for tag in tags:
        change.tag(node.id, tag)


def _tags(memory: Memory, node: Node, target: str) -> list[str]:
    """A node's tags. In its own store a project is not named, in yours it is."""
    own = memory.own_tag
    if target == PROJECT:
        return [tag for tag in node.tags if tag != own]
    return list(dict.fromkeys([*node.tags, *([own] if own else [])]))


def _last_record(memory: Memory, edge: Edge) -> Record:
    """The last word about an edge, whichever store has it."""
    key = records.edge_key(edge.type, edge.to_id)
    found = [
        record
        for connection in memory.graph.connections
        for record in records.about_key(connection, edge.from_id, "edge.", key)
    ]
    return max(found, key=lambda record: record.order)


def _draw(
    change: Change, ways: Sequence[_EdgeMove], said: Mapping[Ulid, Record], scope: str
) -> None:
    """Say in one of the stores which edges it has now, and where they lead."""
    for way in ways:
        if way.scope == scope:
            edge = way.edge
            body: dict[str, Any] = {"id": edge.id, "created_at": edge.created_at}
            if edge.metadata:
                body["metadata"] = dict(edge.metadata)
            if way.outside:
                body["outside"] = True
            present = change.graph.edge(edge.from_id, edge.to_id, edge.type)
            if present is None or change.graph.is_outside(edge) != way.outside:
                change.repeat(said[edge.id], "edge.put", body)
