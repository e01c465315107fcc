"""Show a node: itself, its edges, its history."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx.codebase import anchor_check
from ctx.errors import CtxError
from ctx.ids import NodeId, object_id
from ctx.memory import history as commits
from ctx.memory import records, replay
from ctx.memory.code_anchors import AnchorState
from ctx.memory.graph import PROJECT
from ctx.memory.graphs import Graphs
from ctx.memory.history import Holder
from ctx.memory.model import Edge, Node
from ctx.memory.records import Record
from ctx.workspace import Memory


class NodeVersion(NamedTuple):
    """One change to a node."""

    at: str
    change: str
    """What `ctx undo` takes to undo it."""
    action: str
    kind: str
    what: str
    """The change in a few words."""
    body: Mapping[str, Any]
    session: str
    author: str
    commit: str | None
    """The commit that brought it, in a project."""
    staged: str | None
    """The session in which it is staged, and in no commit yet."""
    document: str | None
    """The narrative file with the same text, while it has it."""


class ShowResult(NamedTuple):
    """The answer of `ctx show`."""

    node: Node
    edges: tuple[Edge, ...] | None
    others: tuple[Node, ...]
    """The nodes at the other ends of the edges."""
    short_ids: Mapping[NodeId, str]
    history: tuple[NodeVersion, ...] | None
    scopes: tuple[str, ...]
    """The stores that were asked: `project`, `user`, or both."""
    answer: str | None
    """The whole answer of a model, if the node has only a summary."""
    anchors: tuple[AnchorState, ...] = ()
    """The code that the node is about, and what has become of it."""


def show(memory: Memory, node_id: NodeId, *, with_edges: bool, with_history: bool) -> ShowResult:
    graph = memory.graph
    node = graph.node(node_id)
    edges = tuple(graph.edges(node_id)) if with_edges else None
    ends = [end for edge in edges or () for end in (edge.from_id, edge.to_id)]
    others = tuple(graph.nodes(dict.fromkeys(ends)))
    history = None
    if with_history:
        holders = _holders(graph, node_id)
        history = tuple(
            _version(record, node_id, holders.get(record.id, Holder()))
            for record in graph.history(node_id)
        )
    short = graph.shown([node_id, *(other.id for other in others)])
    anchors = anchor_check.check(memory, [node]).get(node_id, ())
    answer = _answer(memory, node)
    return ShowResult(node, edges, others, short, history, graph.scopes, answer, anchors)


def _answer(memory: Memory, node: Node) -> str | None:
    """The stored answer of a node; None if there is none, or if it is not here."""
    if memory.project_memory is None or not {"answer", "blob"} <= node.metadata.keys():
        return None
    try:
        blob = object_id(str(node.metadata["blob"]))
        found = memory.project_memory.repository.everything.read(blob)
    except CtxError:
        return None
    return found.payload.decode("utf-8", "backslashreplace")


def _holders(graph: Graphs, node_id: NodeId) -> dict[str, Holder]:
    """Who holds the records about a node, as far as a project does."""
    return {
        record: holder
        for each in graph.graphs
        if each.scope == PROJECT
        for record, holder in commits.holders(each.connection, node_id).items()
    }


def _version(record: Record, node_id: NodeId, holder: Holder) -> NodeVersion:
    is_document = record.stamp >= records.BEYOND
    said_at = record.body.get("updated_at") or record.body.get("created_at")
    return NodeVersion(
        str(said_at) if is_document and said_at else replay.wall_time(record),
        record.change,
        record.action,
        record.kind,
        records.describe(record, node_id),
        record.body,
        record.session,
        record.author,
        holder.commit,
        holder.session,
        record.author if is_document else None,
    )
