"""The HTTP API for searching: nodes, completions, and saved views."""

from typing import Annotated

import msgspec

from ctx.memory import model
from ctx.operations import query_completions, search, view
from ctx.operations.query_completions import QueryCompletions
from ctx.operations.search import SearchResult
from ctx.operations.view import ViewList, ViewResult
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

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
    wanted = search.Options(query.q, query.limit, query.offset, query.every, query.superseded)
    with request.reading() as memory:
        return search.search(memory, wanted)


def complete_query(request: PageRequest, query: CompletionsQuery) -> QueryCompletions:
    """List what can follow at a position of a query."""
    with request.reading() as memory:
        return query_completions.completions(memory, query.q, query.at)


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
