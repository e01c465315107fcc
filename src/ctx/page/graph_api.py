"""The graph of a project through the HTTP API."""

from typing import Annotated

import msgspec

from ctx.page import drawn_graph
from ctx.page.api import PlaceQuery
from ctx.page.drawn_graph import DrawnGraph
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

_Limit = Annotated[int, msgspec.Meta(ge=1, le=drawn_graph.MOST)]
_Depth = Annotated[int, msgspec.Meta(ge=1, le=drawn_graph.DEEPEST)]
_Days = Annotated[int, msgspec.Meta(ge=0, le=drawn_graph.MOST_DAYS)]


class GraphQuery(PlaceQuery, frozen=True):
    node: str = ""
    """A node, an item or a file to begin with; empty for the whole project."""
    depth: _Depth = 2
    type: str = ""
    """Types of nodes, separated by commas."""
    tag: str = ""
    days: _Days = 0
    """Only nodes of the last days; 0: all."""
    limit: _Limit = drawn_graph.DEFAULT_LIMIT


def show_graph(request: PageRequest, query: GraphQuery) -> DrawnGraph:
    """Show memory and code as a graph, with the place of each vertex in a drawing."""
    wanted = drawn_graph.options(
        query.node, query.depth, query.limit, query.type, query.tag, query.days
    )
    return drawn_graph.drawn_graph(request, wanted)


ENDPOINTS = [ApiEndpoint("GET", "/graph", show_graph)]
