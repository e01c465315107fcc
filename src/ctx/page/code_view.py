"""The code: folders with a heat map of remembered trouble, and files with their items."""

from typing import NamedTuple
from urllib.parse import quote

from ctx.operations import code_file, code_folder
from ctx.page import html_text, treemap
from ctx.page.requests import Answer, HtmlPage, PageRequest, PageRoute

_PAGE = 50
_LINES = 200


class Crumb(NamedTuple):
    name: str
    path: str


def folder(request: PageRequest) -> Answer:
    page = request.number("page", 0)
    with request.reading() as memory:
        shown = code_folder.code_folder(memory, request.text("path"), page * _PAGE, _PAGE)
        has_code = memory.project is not None
    base = request.base
    values = {
        "folder": shown,
        "has_code": has_code,
        "crumbs": _crumbs(shown.path),
        "heat_map": treemap.heat_map(
            shown.areas, shown.path, lambda path: f"{base}/code/file?path={_quoted(path)}"
        ),
        "page": page,
        "has_more": shown.more > page * _PAGE,
    }
    return HtmlPage("code.html", shown.path or "Code", values)


def file(request: PageRequest) -> Answer:
    first = request.number("from", 1)
    with request.reading() as memory:
        shown = code_file.code_file(memory, request.text("path"), first, _LINES)
    source = shown.source
    rows = []
    if source:
        highlighted = html_text.code_lines(source.lines, shown.path)
        rows = list(enumerate(highlighted, source.first_line))
    values = {
        # The entry of the navigation.
        "view": "code",
        "file": shown,
        "crumbs": _crumbs(shown.path),
        "rows": rows,
        "lines_on_page": _LINES,
    }
    return HtmlPage("code_file.html", shown.path, values)


def _crumbs(path: str) -> list[Crumb]:
    """The folders on the way to a path, and itself."""
    parts = path.split("/") if path else []
    return [Crumb(name, "/".join(parts[: place + 1])) for place, name in enumerate(parts)]


def _quoted(path: str) -> str:
    return quote(path, safe="/", errors="replace")


ROUTES = [
    PageRoute("GET", "/code", folder),
    PageRoute("GET", "/code/file", file),
]
