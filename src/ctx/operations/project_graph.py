"""The graph of a project for a page that draws it: filtered, and with its cycles.

The code index is used as it is. A page must not wait for a refresh.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ctx.code import cycles
from ctx.codebase import freshness
from ctx.operations import debug_graph
from ctx.operations.debug_graph import (
    AroundOptions,
    Arrow,
    GraphFilter,
    GraphPicture,
    GraphSources,
    Vertex,
)
from ctx.workspace import Memory

_NOT_IN_CYCLES = frozenset({"CHILD_OF", "CONTAINS", "DEFINES", "MENTIONS", "RELATES_TO"})
"""Edges without a direction that matters, and those from a whole to its parts."""


class ProjectGraphOptions(NamedTuple):
    around: str = ""
    """A node, an item or a file; empty for the whole project."""
    depth: int = 2
    limit: int = 2_000
    only: GraphFilter = debug_graph.EVERYTHING


class ProjectGraph(NamedTuple):
    picture: GraphPicture
    start: str
    """The vertex in the middle; empty for the whole project."""
    cycle_of: dict[str, int]
    """The number of the cycle of each vertex that is in one, from 1."""

    def is_in_cycle(self, arrow: Arrow) -> bool:
        cycle = self.cycle_of.get(arrow.source)
        in_one = cycle is not None and cycle == self.cycle_of.get(arrow.target)
        return in_one and arrow.type not in _NOT_IN_CYCLES


def project_graph(memory: Memory, options: ProjectGraphOptions) -> ProjectGraph:
    codebase = freshness.codebase_here(memory)
    with ExitStack() as stack:
        opened = None
        if codebase is not None:
            opened = stack.enter_context(freshness.open_as_it_is(codebase))
        code, age, folder = (opened.code, opened.age, opened.folder) if opened else (None, None, "")
        known = GraphSources(memory.graph, code, memory.project)
        if options.around:
            around = AroundOptions(options.around, folder, options.depth, options.limit)
            # The advice about an older index is for the command line.
            picture = debug_graph.draw_around(known, around, None)._replace(age=age)
        else:
            picture = debug_graph.draw_everything(known, options.limit, age, options.only)
    start = picture.vertices[0].id if options.around and picture.vertices else ""
    if options.around:
        picture = _filtered(picture, start, options.only)
    return ProjectGraph(picture, start, _cycle_of(picture.vertices, picture.edges))


def _filtered(picture: GraphPicture, start: str, only: GraphFilter) -> GraphPicture:
    """The picture with the vertices that pass, and the one in the middle."""
    if only == debug_graph.EVERYTHING:
        return picture
    vertices = tuple(each for each in picture.vertices if each.id == start or _passes(each, only))
    kept = {each.id for each in vertices}
    edges = tuple(each for each in picture.edges if each.source in kept and each.target in kept)
    left_out = picture.left_out + len(picture.vertices) - len(vertices)
    return picture._replace(vertices=vertices, edges=edges, left_out=left_out)


def _passes(vertex: Vertex, only: GraphFilter) -> bool:
    if only.types and vertex.kind not in only.types:
        return False
    if only.since is not None and vertex.created_at < only.since:
        return False
    return all(tag in vertex.tags for tag in only.tags)


def _cycle_of(vertices: Sequence[Vertex], arrows: Iterable[Arrow]) -> dict[str, int]:
    number_of = {vertex.id: number for number, vertex in enumerate(vertices)}
    pairs = {
        (number_of[arrow.source], number_of[arrow.target])
        for arrow in arrows
        if arrow.type not in _NOT_IN_CYCLES
    }
    return {
        vertices[member].id: number
        for number, members in enumerate(cycles.condense(pairs).cycles, 1)
        for member in members
    }
