"""Search: one box for words and filters, saved views, and new nodes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ctx.errors import CtxError
from ctx.memory import model
from ctx.operations import add, search, view
from ctx.operations.search import SearchResult
from ctx.page.requests import (
    Answer,
    GoTo,
    HtmlPage,
    PageRequest,
    PageRoute,
    last_change,
    path_below,
)

_REASONS = {
    "text": "its words",
    "beginning": "its first words",
    "vectors": "its meaning",
    "beside": "what was said next to it",
    "time": "its time",
    "superseded": "superseded",
}
_LONGEST_QUERY = 4_000


class SentForm(NamedTuple):
    """A form that was refused: which one, why, and what was typed."""

    name: str
    error: CtxError
    values: Mapping[str, str]


def search_page(request: PageRequest) -> Answer:
    return _page(request, request.text("q")[:_LONGEST_QUERY])


def _page(request: PageRequest, query: str, sent: SentForm | None = None) -> HtmlPage:
    wanted = search.Options(
        query,
        offset=request.number("from", 0),
        every=request.text("every") == "1",
        include_superseded=request.text("superseded") == "1",
        all_projects=request.text("all") == "1",
    )
    found: SearchResult | None = None
    error: CtxError | None = None
    with request.reading() as memory:
        try:
            found = search.search(memory, wanted)
        except CtxError as caught:
            error = caught
        values: dict[str, Any] = {
            "facets": search.facets(memory) if not query.strip() else None,
            "views": view.list_views(memory),
            "own_project": memory.project,
        }
    values |= {
        "query": query,
        "found": found,
        "error": error,
        "wanted": wanted,
        "sent": sent,
        "types": model.KNOWLEDGE_TYPES,
        "reasons": _REASONS,
        "pages": _pages(wanted, found) if found else {},
        "every": _address(wanted._replace(every=True, offset=0)),
        "superseded": _address(wanted._replace(include_superseded=True, offset=0)),
        "all_projects": _address(wanted._replace(all_projects=True, offset=0)),
    }
    status = 400 if error or sent else 200
    return HtmlPage("search.html", query or "Search", values, status)


def _pages(wanted: search.Options, found: SearchResult) -> dict[str, str]:
    """The addresses of the pages before and after this one."""
    pages: dict[str, str] = {}
    if wanted.offset:
        before = max(0, wanted.offset - wanted.limit)
        pages["before"] = _address(wanted._replace(offset=before))
    if found.order != "answers" and wanted.offset + len(found.hits) < found.total:
        pages["after"] = _address(wanted._replace(offset=wanted.offset + wanted.limit))
    return pages


def _address(wanted: search.Options) -> str:
    parameters = {
        "q": wanted.query,
        "every": "1" * wanted.every,
        "superseded": "1" * wanted.include_superseded,
        "all": "1" * wanted.all_projects,
        "from": str(wanted.offset or ""),
    }
    return f"/search?{urlencode({name: value for name, value in parameters.items() if value})}"


def add_node(request: PageRequest) -> Answer:
    try:
        tags, tier = split_tags(request.field("tags")), request.field("tier")
        with request.writing() as memory:
            options = add.Options(
                request.field("content"),
                request.field("type") or None,
                [*tags, f"tier:{tier}"] if tier not in ("", "none") else tags,
                request.field("summary").strip() or None,
                default_tier="none" if tier == "none" else "shown",
            )
            made = add.add(memory, options)
            hidden = " A secret in it was removed." if made.redacted else ""
            return GoTo(f"/node/{made.node.id}", f"Added.{hidden}", last_change(memory))
    except CtxError as error:
        return _refused(request, "add", error, ("type", "content", "tier", "tags", "summary"))


def save_view(request: PageRequest) -> Answer:
    name, query = request.field("name").strip(), request.field("query")
    try:
        with request.writing() as memory:
            if request.field("replace"):
                saved = view.update(memory, name, query, None)
            else:
                saved = view.create(memory, name, query, None)
            made = last_change(memory) if saved.changed else ""
            return GoTo(_address(search.Options(query)), f"Saved the view {name}.", made)
    except CtxError as error:
        return _refused(request, "view", error, ("name", "query"))


def delete_view(request: PageRequest) -> Answer:
    name = request.field("name")
    with request.writing() as memory:
        view.delete(memory, name)
        back = path_below(request.field("back"), "/search")
        return GoTo(back, f"Deleted the view {name}.", last_change(memory))


def split_tags(text: str) -> list[str]:
    """Tags with spaces or commas between them."""
    return text.replace(",", " ").split()


def _refused(request: PageRequest, form: str, error: CtxError, fields: Sequence[str]) -> HtmlPage:
    typed = {name: request.field(name) for name in fields}
    query = typed.get("query") or request.field("q")
    return _page(request, query[:_LONGEST_QUERY], SentForm(form, error, typed))


ROUTES = [
    PageRoute("GET", "/search", search_page),
    PageRoute("POST", "/nodes", add_node),
    PageRoute("POST", "/views", save_view),
    PageRoute("POST", "/views/delete", delete_view),
]
