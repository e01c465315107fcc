"""The HTTP API for nodes: list, add, show, change and delete them, and undo changes."""

from typing import Annotated, Literal

import msgspec

from ctx.errors import UsageError
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.model import PINNED, Evidence
from ctx.operations import add, agent_proposals, delete, link, list, show, tag, undo, update
from ctx.operations.add import AddResult
from ctx.operations.delete import DeleteResult, RestoreResult
from ctx.operations.link import CONFIDENCE, LinkResult, UnlinkResult
from ctx.operations.list import NodeList
from ctx.operations.show import ShowResult
from ctx.operations.tag import TagResult
from ctx.operations.undo import UndoResult
from ctx.operations.update import UpdateResult
from ctx.operations.visible_nodes import VisibleNodes
from ctx.page.api import PlaceQuery, check_unchanged
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest
from ctx.page.search_api import PageLimit, PageOffset
from ctx.workspace import Memory

NodeText = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000_000)]
NodeSummary = Annotated[str, msgspec.Meta(max_length=20_000)]
ShortText = Annotated[str, msgspec.Meta(max_length=1_000)]
NodeReference = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""The id of a node or its beginning, or `task_0001`."""
TagList = Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=100)]


class ListQuery(PlaceQuery, frozen=True):
    type: ShortText = ""
    tag: ShortText = ""
    limit: PageLimit = 20
    offset: PageOffset = 0
    superseded: bool = False
    deleted: bool = False
    """Deleted nodes instead, of every project."""
    all: bool = False
    """Nodes of every project."""


class NodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    content: NodeText
    type: ShortText = ""
    summary: NodeSummary = ""
    tags: TagList = ()
    """Agents are shown a node only if it has a tier, such as `tier:reference`."""
    supersedes: Annotated[tuple[NodeReference, ...], msgspec.Meta(max_length=100)] = ()
    everywhere: bool = False
    """Whether it belongs to no project, whatever the folder."""


class NodePatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is missing stays as it is."""

    content: NodeText | None = None
    type: ShortText | None = None
    summary: NodeSummary | None = None
    metadata: dict[ShortText, ShortText] = {}
    """An empty value removes a key."""
    based_on: str | None = None
    """The content that was edited; the change is refused if the node has another one by now."""


class TagsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    add: TagList = ()
    remove: TagList = ()


class LinkBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    to: NodeReference
    type: ShortText = "RELATES_TO"
    reason: ShortText = ""
    confidence: Literal["high", "medium", "low"] = "high"
    """`low` needs a reason."""
    remove: bool = False
    """Whether to remove the edge instead."""


class UndoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    change: ShortText = ""
    """Empty: the last change of this session."""
    dry_run: bool = False


_OWN_METADATA = frozenset({"source", "said_by", "origin", "proposed", "file"})
"""Keys with a meaning for ctx: who said it, what waits for the user, which file it is."""


def _require_person(request: PageRequest, memory: Memory) -> None:
    """Refuse what an agent may only propose, unless the settings allow it."""
    if request.browser is None and not agent_proposals.may_pin(memory):
        raise UsageError(
            "Only a person can pin a node or add it for all projects.",
            hint="Open the page: `ctx ui`. The setting `agents.may_pin` allows it.",
        )


def list_of_nodes(request: PageRequest, query: ListQuery) -> NodeList:
    """List nodes, newest first."""
    options = list.Options(
        [query.type] * bool(query.type),
        [query.tag] * bool(query.tag),
        limit=query.limit,
        deleted=query.deleted,
        offset=query.offset,
        visible=VisibleNodes(None, query.all, query.superseded),
    )
    with request.reading() as memory:
        return list.list_nodes(memory, options)


def add_node(request: PageRequest, query: PlaceQuery, body: NodeBody) -> AddResult:  # noqa: ARG001
    """Add a node."""
    with request.writing() as memory:
        if body.everywhere or PINNED in body.tags:
            _require_person(request, memory)
        options = add.Options(
            body.content,
            body.type or None,
            body.tags,
            body.summary or None,
            supersedes=[memory.graph.find(each) for each in body.supersedes],
            everywhere=body.everywhere,
            default_tier="inherited" if body.supersedes or request.browser is None else "shown",
        )
        return add.add(memory, options)


def show_node(request: PageRequest, query: PlaceQuery) -> ShowResult:  # noqa: ARG001
    """Show a node with its edges and its history."""
    with request.reading() as memory:
        return _shown(memory, _node(memory, request))


def change_node(request: PageRequest, query: PlaceQuery, body: NodePatch) -> UpdateResult:  # noqa: ARG001
    """Change fields of a node. With `If-Match`, only if the node is as it was."""
    for key in body.metadata:
        if not key.isprintable() or not key.strip():
            raise UsageError(f"{key[:40]!r} is not a name for metadata.")
        if request.browser is None and key in _OWN_METADATA:
            raise UsageError(f"A program cannot set the metadata {key!r}.")
    with request.writing() as memory:
        node_id = _node(memory, request)
        based_on = body.based_on
        if request.if_match:
            current = _shown(memory, node_id)
            check_unchanged(request, current)
            based_on = current.node.content if based_on is None else based_on
        changed = update.Options(
            body.content, body.type, body.summary, body.metadata, based_on=based_on
        )
        return update.update(memory, node_id, changed)


def delete_node(request: PageRequest, query: PlaceQuery) -> DeleteResult:  # noqa: ARG001
    """Delete a node."""
    with request.writing() as memory:
        node_id = _node(memory, request)
        planned = delete.deletion(memory.graph, [node_id], cascade=False)
        delete.delete(memory, [node_id])
    return DeleteResult(*planned, dry_run=False)


def restore_node(request: PageRequest, query: PlaceQuery) -> RestoreResult:  # noqa: ARG001
    """Restore a deleted node."""
    with request.writing() as memory:
        return delete.restore(memory, [memory.graph.find_deleted(request.path["node"])])


def tag_node(request: PageRequest, query: PlaceQuery, body: TagsBody) -> TagResult:  # noqa: ARG001
    """Add tags to a node and remove others."""
    with request.writing() as memory:
        node_id = _node(memory, request)
        # Nothing is removed if a tag to add is refused.
        if PINNED in map(model.tag, body.add):
            _require_person(request, memory)
        removed = tag.untag(memory, node_id, body.remove)
        if not body.add:
            return removed
        added = tag.tag(memory, node_id, body.add)
        return added._replace(removed=(*removed.removed, *added.removed))


def link_node(
    request: PageRequest,
    query: PlaceQuery,  # noqa: ARG001
    body: LinkBody,
) -> LinkResult | UnlinkResult:
    """Link a node to another, or remove the edge between them."""
    with request.writing() as memory:
        node_id = _node(memory, request)
        other = memory.graph.find(body.to)
        if body.remove:
            return link.unlink(memory, node_id, other, body.type)
        evidence = None
        if body.reason or body.confidence != "high":
            certainty = CONFIDENCE[body.confidence]
            evidence = Evidence(memory.author, certainty, body.reason)
        return link.link(memory, node_id, other, body.type, evidence)


def undo_last(request: PageRequest, query: PlaceQuery, body: UndoBody) -> UndoResult:  # noqa: ARG001
    """Undo a change, or the last one of this session."""
    with request.writing() as memory:
        return undo.undo_change(memory, body.change or None, dry_run=body.dry_run)


def _node(memory: Memory, request: PageRequest) -> NodeId:
    return memory.graph.find(request.path["node"])


def _shown(memory: Memory, node_id: NodeId) -> ShowResult:
    return show.show(memory, node_id, with_edges=True, with_history=True)


ENDPOINTS = [
    ApiEndpoint("GET", "/nodes", list_of_nodes),
    ApiEndpoint("POST", "/nodes", add_node),
    ApiEndpoint("GET", "/nodes/{node}", show_node),
    ApiEndpoint("PATCH", "/nodes/{node}", change_node),
    ApiEndpoint("DELETE", "/nodes/{node}", delete_node),
    ApiEndpoint("POST", "/nodes/{node}/restore", restore_node),
    ApiEndpoint("POST", "/nodes/{node}/tags", tag_node),
    ApiEndpoint("POST", "/nodes/{node}/links", link_node),
    ApiEndpoint("POST", "/undo", undo_last),
]
