"""Memory and code as a graph: drawn by `static/graph.js`, as a picture, and as tables."""

from typing import NamedTuple
from urllib.parse import urlencode

from ctx.errors import AmbiguousId, CtxError, NodeNotFound, UsageError
from ctx.memory.model import NODE_TYPES
from ctx.operations.project_graph import ProjectGraphOptions
from ctx.page import drawn_graph, graph_svg
from ctx.page.drawn_graph import DrawnGraph, DrawnVertex
from ctx.page.requests import Answer, Download, HtmlPage, PageRequest, PageRoute
from ctx.server.app import error_status

_PAGE = 50
_PARAMETERS = ("node", "depth", "type", "tag", "days", "limit")
_AGES = ((0, "any time"), (7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"))
_LIMITS = (500, drawn_graph.DEFAULT_LIMIT, drawn_graph.MOST)


class ListedEdge(NamedTuple):
    source: DrawnVertex
    type: str
    target: DrawnVertex
    in_cycle: bool


class GroupCount(NamedTuple):
    """An entry of the legend."""

    group: str
    vertices: int


def graph(request: PageRequest) -> Answer:
    problem: CtxError | None = None
    try:
        drawn = drawn_graph.listed_graph(request, _options(request))
    except (NodeNotFound, AmbiguousId, UsageError) as error:
        # The form keeps what was typed.
        drawn, problem = drawn_graph.NOTHING, error
    page = request.number("page", 0)
    first = page * _PAGE
    # Without what is empty.
    parameters = urlencode({name: request.text(name) for name in _PARAMETERS if request.text(name)})
    values = {
        "problem": problem,
        "graph": drawn,
        "groups": _groups(drawn),
        "vertices": drawn.vertices[first : first + _PAGE],
        "edges": [
            ListedEdge(
                drawn.vertices[edge.source], edge.type, drawn.vertices[edge.target], edge.in_cycle
            )
            for edge in drawn.edges[first : first + _PAGE]
        ],
        "page": page,
        "has_more": max(len(drawn.vertices), len(drawn.edges)) > first + _PAGE,
        "shown": {name: request.text(name) for name in _PARAMETERS},
        "parameters": parameters,
        "node_types": NODE_TYPES,
        "ages": _AGES,
        "limits": _LIMITS,
        "depths": range(1, drawn_graph.DEEPEST + 1),
    }
    status = error_status(problem) if problem else 200
    return HtmlPage("graph.html", "Graph", values, status)


def picture(request: PageRequest) -> Answer:
    drawn = drawn_graph.drawn_graph(request, _options(request))
    return Download("graph.svg", "image/svg+xml", graph_svg.picture(drawn))


def _options(request: PageRequest) -> ProjectGraphOptions:
    return drawn_graph.options(
        request.text("node"),
        request.number("depth", 2),
        request.number("limit", drawn_graph.DEFAULT_LIMIT),
        request.text("type"),
        request.text("tag"),
        request.number("days", 0),
    )


def _groups(drawn: DrawnGraph) -> list[GroupCount]:
    counts: dict[str, int] = {}
    for vertex in drawn.vertices:
        counts[vertex.group] = counts.get(vertex.group, 0) + 1
    return [GroupCount(group, counts[group]) for group in graph_svg.COLOURS if group in counts]


ROUTES = [
    PageRoute("GET", "/graph", graph),
    PageRoute("GET", "/graph.svg", picture),
]
