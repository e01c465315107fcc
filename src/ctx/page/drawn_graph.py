"""The graph of a project with the place of each vertex, for the page, the API and the picture."""

from typing import NamedTuple
from urllib.parse import quote

from ctx import clock, markdown
from ctx.ids import NodeId
from ctx.memory import model
from ctx.operations import project_graph
from ctx.operations.debug_graph import GraphFilter, Vertex
from ctx.operations.project_graph import ProjectGraphOptions
from ctx.page import layout_process
from ctx.page.html_text import plain
from ctx.page.requests import PageRequest

MOST = 5_000
DEFAULT_LIMIT = 1_500
DEEPEST = 4
MOST_DAYS = 36_500
_DAY_MS = 86_400_000

CODE_GROUPS = ("file", "item", "package", "diagnostic")
"""They are drawn as squares, memory as circles."""
_GROUPS = {
    **{kind: kind for kind in ("decision", "pattern", "fact", "observation", "task", "summary")},
    **{kind: kind for kind in ("source", *CODE_GROUPS)},
    "hypothesis": "question",
    "open-question": "question",
}


class DrawnVertex(NamedTuple):
    id: str
    """A node's id, `file:PATH`, or `item:PATH:LINE:NAME`."""
    kind: str
    """The type of a node, `file`, or the kind of an item."""
    group: str
    """What has the same colour."""
    label: str
    """Without hidden characters, as `path`."""
    path: str
    line: int
    node: NodeId | None
    created_at: str
    tags: tuple[str, ...]
    cycle: int
    """The number of its cycle, from 1; 0 if it is in none."""
    address: str
    """The page about it, below the address of the place."""
    around: str
    """What stands for it in the parameter `node`."""
    x: float = 0.0
    y: float = 0.0


class DrawnEdge(NamedTuple):
    source: int
    """The position of the vertex in the list."""
    target: int
    type: str
    in_cycle: bool


class DrawnGraph(NamedTuple):
    vertices: tuple[DrawnVertex, ...]
    edges: tuple[DrawnEdge, ...]
    width: float
    height: float
    start: str
    """The vertex in the middle; empty for the whole project."""
    cycles: int
    left_out: int
    """Vertices beyond the limit."""
    code_read_at: str | None
    """When the code index was refreshed; null without one."""


NOTHING = DrawnGraph((), (), 0.0, 0.0, "", 0, 0, None)


def options(
    node: str, depth: int, limit: int, type: str, tag: str, days: int
) -> ProjectGraphOptions:
    """What the parameters of an address mean."""
    types = tuple(model.node_type(word) for word in type.split(",") if word.strip())
    tags = tuple(model.tag(word) for word in tag.split(",") if word.strip())
    since = clock.iso(clock.now_ms() - min(days, MOST_DAYS) * _DAY_MS) if days else None
    only = GraphFilter(types, tags, since)
    return ProjectGraphOptions(
        node.strip(), max(1, min(depth, DEEPEST)), max(1, min(limit, MOST)), only
    )


def drawn_graph(request: PageRequest, wanted: ProjectGraphOptions) -> DrawnGraph:
    """The graph with the place of each vertex."""
    drawn = listed_graph(request, wanted)
    pairs = layout_process.edge_set((edge.source, edge.target) for edge in drawn.edges)
    layout = layout_process.layout(len(drawn.vertices), pairs)
    vertices = tuple(
        vertex._replace(x=point.x, y=point.y)
        for vertex, point in zip(drawn.vertices, layout.points, strict=True)
    )
    return drawn._replace(vertices=vertices, width=layout.width, height=layout.height)


def listed_graph(request: PageRequest, wanted: ProjectGraphOptions) -> DrawnGraph:
    """The graph without places, which take most of the time."""
    with request.reading() as memory:
        graph = project_graph.project_graph(memory, wanted)
    vertices, arrows = graph.picture.vertices, graph.picture.edges
    number_of = {vertex.id: number for number, vertex in enumerate(vertices)}
    edges = tuple(
        DrawnEdge(
            number_of[arrow.source], number_of[arrow.target], arrow.type, graph.is_in_cycle(arrow)
        )
        for arrow in arrows
    )
    drawn = tuple(
        DrawnVertex(
            vertex.id,
            vertex.kind,
            _GROUPS.get(vertex.kind, "item"),
            plain(vertex.label) if vertex.node else markdown.visible(vertex.label),
            markdown.visible(vertex.path),
            vertex.line,
            vertex.node,
            vertex.created_at,
            vertex.tags,
            graph.cycle_of.get(vertex.id, 0),
            _address(vertex),
            vertex.node or (f"{vertex.path}:{vertex.line}" if vertex.line else vertex.path),
        )
        for vertex in vertices
    )
    cycles = max(graph.cycle_of.values(), default=0)
    age = graph.picture.age
    read_at = age.refreshed_at if age else None
    left_out = graph.picture.left_out
    return DrawnGraph(drawn, edges, 0.0, 0.0, graph.start, cycles, left_out, read_at)


def _address(vertex: Vertex) -> str:
    if vertex.id == vertex.node or not vertex.path:
        return f"/node/{vertex.node}"
    line = f"#L{vertex.line}" if vertex.line else ""
    return f"/code/file?path={quote(vertex.path, safe='', errors='replace')}{line}"
