"""A graph as an SVG picture, with the layout of the page. It has no script and no style sheet."""

from collections.abc import Mapping

from markupsafe import Markup

from ctx.page.drawn_graph import CODE_GROUPS, DrawnEdge, DrawnGraph, DrawnVertex

_SCALE = 12.0
"""Pixels for the unit of the layout."""
_MARGIN = 3.0
_MOST_LABELS = 400
_LONGEST_LABEL = 40
_LEGEND_ROW = 20

COLOURS: Mapping[str, str] = {
    "decision": "#468bff",
    "pattern": "#7446b9",
    "fact": "#005d5d",
    "observation": "#e85d00",
    "task": "#a21700",
    "summary": "#5d0017",
    "source": "#b974a2",
    "question": "#2e1774",
    "file": "#468bff",
    "item": "#005d5d",
    "package": "#5d0017",
    "diagnostic": "#a21700",
}
"""As in `static/graph.css` and `static/page.css`, for light."""
_LINE, _CYCLE, _TEXT, _GROUND = "#b9b4aa", "#a12a22", "#23211e", "#fbfaf8"


def picture(graph: DrawnGraph) -> bytes:
    """The whole graph. All text is escaped."""
    width = (max(graph.width, 30.0) + 2 * _MARGIN) * _SCALE
    groups = sorted({each.group for each in graph.vertices}, key=list(COLOURS).index)
    height = (max(graph.height, 4.0) + 2 * _MARGIN) * _SCALE
    legend = _LEGEND_ROW * (len(groups) + 1)
    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}"'
            ' height="{1}" font-family="sans-serif" font-size="10"><title>{2}</title>'
            '<rect width="100%" height="100%" fill="{3}"/>'
        ).format(round(width), round(height + legend), _title(graph), _GROUND)
    ]
    parts += [_edges(graph, [each for each in graph.edges if not each.in_cycle], _LINE, 0.8)]
    parts += [_edges(graph, [each for each in graph.edges if each.in_cycle], _CYCLE, 1.6)]
    parts += [_dot(each) for each in graph.vertices]
    parts += _labels(graph)
    parts += _legend(groups, height)
    return str(Markup("").join([*parts, Markup("</svg>\n")])).encode()


def _title(graph: DrawnGraph) -> str:
    return f"{len(graph.vertices):,} nodes, {len(graph.edges):,} edges"


def _place(vertex: DrawnVertex) -> tuple[float, float]:
    return round((vertex.x + _MARGIN) * _SCALE, 1), round((vertex.y + _MARGIN) * _SCALE, 1)


def _edges(graph: DrawnGraph, edges: list[DrawnEdge], colour: str, width: float) -> Markup:
    """All edges of one colour as one path."""
    lines = []
    for edge in edges:
        (x, y), (to_x, to_y) = (_place(graph.vertices[end]) for end in (edge.source, edge.target))
        lines.append(f"M{x} {y}L{to_x} {to_y}")
    if not lines:
        return Markup("")
    return Markup('<path d="{}" fill="none" stroke="{}" stroke-width="{}"/>').format(
        "".join(lines), colour, width
    )


def _dot(vertex: DrawnVertex) -> Markup:
    x, y = _place(vertex)
    colour = COLOURS[vertex.group]
    title = Markup("<title>{}: {}</title>").format(vertex.kind, vertex.label)
    ring = Markup(' stroke="{}" stroke-width="2"').format(_CYCLE) if vertex.cycle else Markup("")
    if vertex.group in CODE_GROUPS:
        return Markup('<rect x="{}" y="{}" width="9" height="9" fill="{}"{}>{}</rect>').format(
            round(x - 4.5, 1), round(y - 4.5, 1), colour, ring, title
        )
    return Markup('<circle cx="{}" cy="{}" r="5" fill="{}"{}>{}</circle>').format(
        x, y, colour, ring, title
    )


def _labels(graph: DrawnGraph) -> list[Markup]:
    """The names of the vertices with the most edges."""
    degree = [0] * len(graph.vertices)
    for edge in graph.edges:
        degree[edge.source] += 1
        degree[edge.target] += 1
    order = sorted(range(len(graph.vertices)), key=lambda each: (-degree[each], each))
    taken: set[tuple[int, int]] = set()
    shown = []
    for number in order[:_MOST_LABELS]:
        vertex = graph.vertices[number]
        x, y = _place(vertex)
        text = vertex.label
        text = text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
        cells = {(int(y // 14), int((x + step) // 20)) for step in range(0, 6 * len(text) + 20, 20)}
        if cells & taken:
            continue
        taken |= cells
        shown.append(
            Markup('<text x="{}" y="{}" fill="{}">{}</text>').format(
                round(x + 8, 1), round(y + 3.5, 1), _TEXT, text
            )
        )
    return shown


def _legend(groups: list[str], top: float) -> list[Markup]:
    entries = []
    for row, group in enumerate(groups):
        y = top + row * _LEGEND_ROW
        shape = (
            '<rect x="11" y="{0}" width="9" height="9" fill="{1}"/>'
            if group in CODE_GROUPS
            else '<circle cx="16" cy="{2}" r="5" fill="{1}"/>'
        )
        entries.append(
            Markup(shape + '<text x="28" y="{3}" fill="{4}">{5}</text>').format(
                y - 4, COLOURS[group], y + 0.5, y + 4, _TEXT, group
            )
        )
    return entries
