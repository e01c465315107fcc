"""One node: its content, edges, provenance and history, and what can be changed about it."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any, NamedTuple

from ctx.errors import CtxError, NodeNotFound
from ctx.ids import NodeId
from ctx.memory import model, walk
from ctx.memory.model import Edge, Evidence, Node
from ctx.operations import add, delete, link, show, tag, trace, undo, update, visibility
from ctx.operations.show import ShowResult
from ctx.operations.update import EditConflict
from ctx.page import node_history
from ctx.page.requests import (
    Answer,
    GoTo,
    HtmlPage,
    PageRequest,
    PageRoute,
    last_change,
    path_below,
)
from ctx.page.search_view import SentForm, split_tags
from ctx.page.text_differences import DiffPart
from ctx.workspace import Memory

_MOST_EDGES = 50
"""The edges of one type that are shown."""
_MOST_ENTRIES = 100
_MOST_QUOTES = 20
_MOST_SOURCES = 50
_TRACE_DEPTH = 4
_EDIT_FIELDS = ("content", "summary", "type")
_LINK_FIELDS = ("other", "type", "direction", "reason")


class EdgeGroup(NamedTuple):
    """The edges of one type in one direction."""

    type: str
    is_out: bool
    edges: tuple[tuple[Edge, Node], ...]
    total: int


class TextConflict(NamedTuple):
    """A text that was edited while somebody else changed it."""

    current: str
    difference: tuple[DiffPart, ...]
    """From the current text to the one that was typed."""


# Showing


def node(request: PageRequest) -> Answer:
    return _page(request, request.path["node"])


def _page(request: PageRequest, text: str, sent: SentForm | None = None) -> HtmlPage:
    with request.reading() as memory:
        try:
            node_id = memory.graph.find(text)
        except NodeNotFound:
            return _deleted_page(memory, text, sent)
        values = _values(memory, node_id)
        conflict = None
        if sent is not None and isinstance(sent.error, EditConflict):
            current = values["shown"].node.content
            typed = sent.values["content"]
            conflict = TextConflict(current, node_history.difference(current, typed))
    title = values["shown"].node.content
    status = 409 if conflict else 400 if sent else 200
    return HtmlPage("node.html", title, {**values, "sent": sent, "conflict": conflict}, status)


def _values(memory: Memory, node_id: NodeId) -> dict[str, Any]:
    shown = show.show(memory, node_id, with_edges=True, with_history=True)
    history = shown.history or ()
    changes = list(dict.fromkeys(version.change for version in history))
    described = undo.described_changes(memory, changes[-_MOST_ENTRIES:])
    entries = node_history.entries(history, described)
    traced = trace.trace(
        memory, node_id, reverse=False, edge_types=walk.PROVENANCE, depth=_TRACE_DEPTH
    )
    planned = delete.deletion(memory.graph, [node_id], cascade=True)
    direct = delete.deletion(memory.graph, [node_id], cascade=False)
    replacement = shown.node.superseded_by
    return {
        "shown": shown,
        "node": shown.node,
        "short_id": shown.short_ids[node_id],
        "tier": model.tier(shown.node.tags),
        "is_captured": visibility.has_layer(shown.node),
        "is_pinned": model.PINNED in shown.node.tags,
        "base_text": digest(shown.node.content),
        "groups": _edge_groups(shown, node_id),
        "entries": entries[:_MOST_ENTRIES],
        "older_entries": max(0, len(entries) - _MOST_ENTRIES),
        "trace": traced,
        "sources": [step for step in traced.steps if step.depth][:_MOST_SOURCES],
        "by_id": {each.id: each for each in (*shown.others, *traced.nodes)},
        "short_ids": {**traced.short_ids, **shown.short_ids},
        "quotes": traced.evidence[:_MOST_QUOTES],
        "more_quotes": max(0, len(traced.evidence) - _MOST_QUOTES),
        "dependents": direct.dependents,
        "derived": len(planned.nodes) - 1,
        "files": delete.files_of(memory, [shown.node]),
        "replacement": memory.graph.node(replacement)
        if replacement and memory.graph.has(replacement)
        else None,
        "types": model.NODE_TYPES,
        "edge_types": model.EDGE_TYPES,
    }


def _edge_groups(shown: ShowResult, node_id: NodeId) -> list[EdgeGroup]:
    others = {each.id: each for each in shown.others}

    def kind(edge: Edge) -> tuple[bool, str]:
        return edge.from_id != node_id, edge.type

    groups = []
    for (is_in, edge_type), same in groupby(sorted(shown.edges or (), key=kind), key=kind):
        edges = list(same)
        ends = [(edge, others.get(edge.from_id if is_in else edge.to_id)) for edge in edges]
        listed = tuple((edge, end) for edge, end in ends[:_MOST_EDGES] if end is not None)
        groups.append(EdgeGroup(edge_type, not is_in, listed, len(edges)))
    return groups


def _deleted_page(memory: Memory, text: str, sent: SentForm | None) -> HtmlPage:
    """A deleted node as it was, and what was typed to change it."""
    try:
        node_id = memory.graph.find_deleted(text)
        gone = memory.graph.lost_in(node_id).deleted_node(node_id)
    except CtxError:
        gone = None
    if gone is None:
        memory.graph.find(text)
        raise NodeNotFound(f"There is no node {text[:40]!r}.")
    typed = sent.values.get("content", "") if sent else ""
    return HtmlPage("deleted_node.html", "Deleted node", {"node": gone, "typed": typed}, 404)


def digest(text: str) -> str:
    """A short stand-in for a text, to see whether it has changed since."""
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


# Changing


def _changing(
    form: str, fields: Sequence[str], change: Callable[[PageRequest, Memory, NodeId], GoTo]
) -> Callable[[PageRequest], Answer]:
    """A view that changes a node, and shows the form again with the error if it is refused."""

    def view(request: PageRequest) -> Answer:
        try:
            with request.writing() as memory:
                node_id = memory.graph.find(request.path["node"])
                before = last_change(memory)
                done = change(request, memory, node_id)
                made = last_change(memory)
                # What had no effect is no change: an earlier one must not be offered for undo.
                return done._replace(undo=made if made != before else "")
        except CtxError as error:
            typed = {name: request.field(name) for name in fields}
            return _page(request, request.path["node"], SentForm(form, error, typed))

    return view


def _edit(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    current = memory.graph.node(node_id)
    content = request.field("content")
    if digest(current.content) != request.field("base_text"):
        raise EditConflict("The node was changed while you edited it.")
    # A field of a form has `\n` for every line end.
    is_same = content.strip() == current.content.replace("\r\n", "\n").strip()
    edited = update.Options(
        None if is_same else content,
        request.field("type") or None,
        request.field("summary"),
        based_on=current.content,
    )
    result = update.update(memory, node_id, edited)
    message = f"Changed: {', '.join(result.changed)}." if result.changed else "Nothing changed."
    if result.redacted:
        message += " A secret in it was removed."
    if result.document:
        message += f" {result.document} still has the old text."
    return GoTo(f"/node/{node_id}", message)


def _tags(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    removed = request.field("remove")
    if removed:
        tag.untag(memory, node_id, [removed])
        return _back(request, node_id, f"Removed the tag {removed}.")
    added = tag.tag(memory, node_id, split_tags(request.field("tags"))).added
    message = f"Added {', '.join(added)}." if added else "It has these tags already."
    return _back(request, node_id, message)


def _pin(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    if request.field("pinned") == "1":
        tag.pin(memory, [node_id])
        return _back(request, node_id, "Pinned.")
    tag.unpin(memory, [node_id])
    return _back(request, node_id, "Unpinned.")


def _tier(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    wanted = request.field("tier")
    tag.set_tier(memory, node_id, "" if wanted == "none" else f"tier:{wanted}")
    return _back(request, node_id, f"Tier: {wanted}.")


def _supersede(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    options = add.Options(request.field("content"), supersedes=[node_id])
    made = add.add(memory, options)
    hidden = " A secret in it was removed." if made.redacted else ""
    return GoTo(f"/node/{made.node.id}", f"This node supersedes the other.{hidden}")


def _link(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    other = memory.graph.find(request.field("other").strip())
    ends = (other, node_id) if request.field("direction") == "in" else (node_id, other)
    if request.field("remove") == "1":
        link.unlink(memory, *ends, request.field("type"))
        return GoTo(f"/node/{node_id}", "Removed the edge.")
    reason = request.field("reason").strip()
    evidence = Evidence(memory.author, reason=reason) if reason else None
    linked = link.link(memory, *ends, request.field("type"), evidence)
    return GoTo(f"/node/{node_id}", "Linked." if linked.new else "The edge is there already.")


def _delete(request: PageRequest, memory: Memory, node_id: NodeId) -> GoTo:
    cascade = request.field("cascade") == "1"
    gone = delete.deletion(memory.graph, [node_id], cascade=cascade).nodes
    delete.delete(memory, [each.id for each in gone])
    many = f"Deleted {len(gone):,} nodes." if len(gone) > 1 else "Deleted."
    return GoTo(path_below(request.field("back"), "/search"), many)


def _back(request: PageRequest, node_id: NodeId, message: str) -> GoTo:
    return GoTo(path_below(request.field("back"), f"/node/{node_id}"), message)


def restore_node(request: PageRequest) -> Answer:
    with request.writing() as memory:
        node_id = memory.graph.find_deleted(request.path["node"])
        delete.restore(memory, [node_id])
        return GoTo(f"/node/{node_id}", "Restored.", last_change(memory))


def undo_change(request: PageRequest) -> Answer:
    back, change = path_below(request.field("back")), request.field("change")
    with request.writing() as memory:
        try:
            undone = undo.undo_change(memory, change or None, dry_run=False)
        except CtxError as error:
            made = undo.changes(memory, memory.session)
            last = next(
                (each for each in made if change in ("", each.id) and each.action != "undo"), None
            )
            state = ", already undone" if last and last.undone else ""
            what = f" The change: {last.what}{state}." if last else ""
            return GoTo(back, f"Not undone. {error.message}{what}")
    message = f"Undone: {undone.change.what}"
    if undone.kept:
        fields = ", ".join(dict.fromkeys(each.what for each in undone.kept))
        message += f". Not undone, because it was changed since: {fields}"
    return GoTo(back, message, undone.by or "", "Redo")


ROUTES = [
    PageRoute("GET", "/node/{node}", node),
    PageRoute("POST", "/node/{node}/edit", _changing("edit", _EDIT_FIELDS, _edit)),
    PageRoute("POST", "/node/{node}/tags", _changing("tags", ("tags",), _tags)),
    PageRoute("POST", "/node/{node}/tier", _changing("tier", (), _tier)),
    PageRoute("POST", "/node/{node}/pin", _changing("pin", (), _pin)),
    PageRoute("POST", "/node/{node}/supersede", _changing("supersede", ("content",), _supersede)),
    PageRoute("POST", "/node/{node}/link", _changing("link", _LINK_FIELDS, _link)),
    PageRoute("POST", "/node/{node}/delete", _changing("delete", (), _delete)),
    PageRoute("POST", "/node/{node}/restore", restore_node),
    PageRoute("POST", "/undo", undo_change),
]
