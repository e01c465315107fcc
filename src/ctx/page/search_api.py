"""The HTTP API for searching: nodes, completions, and saved views."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec

from ctx.capture import session_table
from ctx.memory import model
from ctx.memory.query.filters import HAS
from ctx.memory.query.syntax import FILTERS, Token, tokens
from ctx.operations import search, view
from ctx.operations.search import SearchResult
from ctx.operations.view import ViewList, ViewResult
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest
from ctx.workspace import Memory

MOST = 20
_LONGEST = 10_000
_DESCRIPTIONS = {
    "type": "such as fact, decision, pattern",
    "tag": "a tag, or the beginning of one with *",
    "created": "when it was written, such as >7d",
    "updated": "when it was changed, such as >7d",
    "tokens": "its size, such as <500",
    "has": ", ".join(HAS),
    "from": "with an edge from this node",
    "to": "with an edge to this node",
    "session": "written in this session",
    "project": "of this project",
    "path": "about this file or folder",
    "id": "with this id",
}
_AGES = {">24h": "in the last day", ">7d": "in the last week", ">30d": "in the last month"} | {
    "<30d": "before the last month",
    "<1y": "more than a year ago",
}
_SIZES = {"<100": "short", "<500": "", ">1000": "long"}


class QueryCandidate(NamedTuple):
    value: str
    """What replaces the text from `start` to `end`."""
    label: str
    description: str
    kind: str
    """`filter`, `value` or `view`."""


class QueryCompletions(NamedTuple):
    start: int
    end: int
    candidates: tuple[QueryCandidate, ...]


def completions(memory: Memory, text: str, at: int) -> QueryCompletions:
    """The candidates for the word before a position, ignoring case."""
    text = text[:_LONGEST]
    at = max(0, min(at, len(text)))
    token = next((each for each in tokens(text) if each.start < at <= each.end), None)
    if token is None:
        # Nothing is typed yet: after a filter, `AND` is left out, so filters fit everywhere.
        is_empty = not text.strip()
        candidates = [*_filters(""), *(_views(memory, "") if is_empty else ())]
        return QueryCompletions(at, at, tuple(candidates[:MOST]))
    if token.kind == "filter" and at >= token.value_start:
        typed = text[token.value_start : at]
        return QueryCompletions(
            token.value_start, token.end, tuple(_values(memory, token, typed))[:MOST]
        )
    typed = text[token.start : at]
    candidates = list(_filters(typed))
    if token.kind == "word" and token.start == 0 and token.end >= len(text.rstrip()):
        candidates += _views(memory, typed)
    return QueryCompletions(token.start, token.end, tuple(candidates[:MOST]))


def _filters(typed: str) -> Iterator[QueryCandidate]:
    for name in FILTERS:
        if name.startswith(typed.lower()):
            yield QueryCandidate(f"{name}:", f"{name}:", _DESCRIPTIONS[name], "filter")


def _views(memory: Memory, typed: str) -> Iterator[QueryCandidate]:
    for each in view.list_views(memory).views:
        if each.name.lower().startswith(typed.lower()):
            yield QueryCandidate(each.query, each.name, each.query, "view")


def _values(memory: Memory, token: Token, typed: str) -> Iterator[QueryCandidate]:
    beginning = typed.lstrip('"')
    values = _VALUES.get(token.name)
    for value, description in values(memory, beginning) if values else ():
        if value.lower().startswith(beginning.lower()):
            needs_quotes = any(letter.isspace() or letter in '()"' for letter in value)
            written = value.replace("\\", "\\\\").replace('"', '\\"')
            inserted = f'"{written}"' if needs_quotes else value
            yield QueryCandidate(inserted, value, description, "value")


_Values = Iterable[tuple[str, str]]


def _tags(memory: Memory, beginning: str) -> _Values:
    counts = memory.graph.tag_counts(beginning)
    used = {each.tag for each in counts}
    for each in sorted(counts, key=lambda each: (-each.nodes, each.tag)):
        yield each.tag, f"{each.nodes:,} {'node' if each.nodes == 1 else 'nodes'}"
    yield from ((tier, "") for tier in model.TIERS if tier not in used)


def _projects(memory: Memory, beginning: str) -> _Values:
    namespace = "project:"
    for tag, description in _tags(memory, namespace + beginning):
        if tag.startswith(namespace):
            yield tag.removeprefix(namespace), description


def _sessions(memory: Memory, beginning: str) -> _Values:
    return session_table.beginning_with(memory.local, beginning, MOST)


def _node_ids(memory: Memory, beginning: str) -> _Values:
    node_ids = memory.graph.newest_with_prefix(beginning.upper(), MOST)
    shown = memory.graph.shown(node_ids)
    for node in memory.graph.nodes(node_ids):
        yield (
            shown[node.id],
            f"{node.type}: {' '.join((node.summary or node.content)[:80].split())}",
        )


_VALUES: dict[str, Callable[[Memory, str], _Values]] = {
    "type": lambda _memory, _typed: ((each, "") for each in model.NODE_TYPES),
    "tag": _tags,
    "created": lambda _memory, _typed: _AGES.items(),
    "updated": lambda _memory, _typed: _AGES.items(),
    "tokens": lambda _memory, _typed: _SIZES.items(),
    "has": lambda _memory, _typed: ((each, "") for each in HAS),
    "from": _node_ids,
    "to": _node_ids,
    "id": _node_ids,
    "session": _sessions,
    "project": _projects,
}


QueryText = Annotated[str, msgspec.Meta(max_length=10_000)]
PageLimit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
PageOffset = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
ViewName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
ViewBudget = Annotated[int, msgspec.Meta(ge=model.SMALLEST_BUDGET, le=model.LARGEST_BUDGET)]


class SearchQuery(PlaceQuery, frozen=True):
    q: QueryText = ""
    limit: PageLimit = search.PAGE
    offset: PageOffset = 0
    every: bool = False
    superseded: bool = False
    all: bool = False
    """Nodes of every project."""


class CompletionsQuery(PlaceQuery, frozen=True):
    q: QueryText = ""
    at: PageOffset = 10_000


class ViewBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: ViewName
    query: QueryText
    budget: ViewBudget | None = None
    replace: bool = False
    """Whether to change the query of a view that exists."""


def search_nodes(request: PageRequest, query: SearchQuery) -> SearchResult:
    """Search memory by words, filters or both; without a query, the newest nodes."""
    wanted = search.Options(
        query.q, query.limit, query.offset, query.every, query.superseded, query.all
    )
    with request.reading() as memory:
        return search.search(memory, wanted)


def complete_query(request: PageRequest, query: CompletionsQuery) -> QueryCompletions:
    """List what can follow at a position of a query."""
    with request.reading() as memory:
        return completions(memory, query.q, query.at)


def saved_views(request: PageRequest, query: PlaceQuery) -> ViewList:  # noqa: ARG001
    """List the saved views."""
    with request.reading() as memory:
        return view.list_views(memory)


def put_view(request: PageRequest, query: PlaceQuery, body: ViewBody) -> ViewResult:  # noqa: ARG001
    """Save a query as a view."""
    with request.writing() as memory:
        if body.replace:
            return view.update(memory, body.name, body.query, body.budget)
        return view.create(memory, body.name, body.query, body.budget)


def remove_view(request: PageRequest, query: PlaceQuery) -> ViewResult:  # noqa: ARG001
    """Delete a view."""
    with request.writing() as memory:
        return view.delete(memory, request.path["view"])


ENDPOINTS = [
    ApiEndpoint("GET", "/search", search_nodes),
    ApiEndpoint("GET", "/completions", complete_query),
    ApiEndpoint("GET", "/views", saved_views),
    ApiEndpoint("POST", "/views", put_view),
    ApiEndpoint("DELETE", "/views/{view}", remove_view),
]
