"""What the HTTP API answers. The shapes are those of `--format json` on the command line."""

from typing import Annotated

import msgspec

from ctx.operations import show
from ctx.operations.list import NodeList, Options, list_nodes
from ctx.operations.show import ShowResult
from ctx.page import code_api, graph_api
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

_Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class ListQuery(PlaceQuery, frozen=True):
    type: str = ""
    tag: str = ""
    limit: _Limit = 20


def list_of_nodes(request: PageRequest, query: ListQuery) -> NodeList:
    """List nodes, newest first."""
    types, tags = [query.type] * bool(query.type), [query.tag] * bool(query.tag)
    with request.reading() as memory:
        return list_nodes(memory.graph, Options(types, tags, limit=query.limit))


def show_node(request: PageRequest, query: PlaceQuery) -> ShowResult:  # noqa: ARG001
    """Show a node with its edges and its history."""
    with request.reading() as memory:
        node_id = memory.graph.find(request.path["node"])
        return show.show(memory, node_id, with_edges=True, with_history=True)


ENDPOINTS = [
    ApiEndpoint("GET", "/nodes", list_of_nodes),
    ApiEndpoint("GET", "/nodes/{node}", show_node),
    *graph_api.ENDPOINTS,
    *code_api.ENDPOINTS,
]
