"""One node: its content, edges, provenance and history, and what can be changed about it."""

from ctx.operations import delete, show, undo
from ctx.page.rendering import first_line
from ctx.page.requests import Answer, GoTo, HtmlPage, PageRequest, PageRoute, last_change


def node(request: PageRequest) -> Answer:
    with request.reading() as memory:
        node_id = memory.graph.find(request.path["node"])
        shown = show.show(memory, node_id, with_edges=True, with_history=True)
    return HtmlPage("node.html", first_line(shown.node.content, 60), {"shown": shown})


def delete_node(request: PageRequest) -> Answer:
    with request.writing() as memory:
        node_id = memory.graph.find(request.path["node"])
        delete.delete(memory, [node_id])
        return GoTo("/search", "Deleted.", last_change(memory))


def undo_change(request: PageRequest) -> Answer:
    with request.writing() as memory:
        undone = undo.undo_change(memory, request.field("change") or None, dry_run=False)
    return GoTo(request.field("back") or "/now", f"Undone: {undone.change.what}", undone.by or "")


ROUTES = [
    PageRoute("GET", "/node/{node}", node),
    PageRoute("POST", "/node/{node}/delete", delete_node),
    PageRoute("POST", "/undo", undo_change),
]
