"""Where the vertices of a graph are drawn.

Each connected component is laid out for itself, and the components are packed in rows. A small
component is laid out by rustworkx. Its layout compares all pairs of vertices, so a large component
begins with distances from a few vertices (pivot MDS) and is relaxed by springs, with the repulsion
computed on a grid. The same graph always gets the same layout.

`layout_process` runs this module in a process of its own.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import rustworkx
from numpy.typing import NDArray

from ctx.page.layout_process import GraphLayout, Pair, Point

_SEED = 7
_SMALL = 36
"""Vertices that rustworkx lays out in about 5 ms."""
_SMALL_ITERATIONS = 60
_PIVOTS = 24
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_ITERATIONS = 80
_GRIDS = ((300, 32), (1_500, 64))
"""The cells on a side for so many vertices, and for more."""
_LARGEST_GRID = 96
_ROOM = 0.8
"""The radius that is kept free around a vertex; its own radius is 0.5."""
_AREA = 7.0
"""For each vertex of a large component."""
_FEW = 60
_GAP = 2.0
"""Between components."""
_SHAPE = 1.6
"""Width by height of the whole."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def lay_out(count: int, edges: Collection[Pair]) -> GraphLayout:
    """Place vertices, which are numbers from 0."""
    graph: rustworkx.PyGraph[int | None, None] = rustworkx.PyGraph()
    graph.add_nodes_from(list(range(count)))
    graph.extend_from_edge_list(sorted(edges))
    parts = [sorted(part) for part in rustworkx.connected_components(graph)]
    alone = sorted(part[0] for part in parts if len(part) == 1)
    connected = sorted(
        (part for part in parts if len(part) > 1), key=lambda part: (-len(part), part)
    )
    boxes = [_box(part, _place(graph.subgraph(part))) for part in connected]
    if alone:
        boxes.append(_box(alone, _in_rows(len(alone))))
    return _packed(count, boxes)


def _place(graph: Any) -> Floats:
    """The positions of connected vertices."""
    count = graph.num_nodes()
    edges = np.array(graph.edge_list(), dtype=np.int64).reshape(-1, 2)
    if count <= _SMALL:
        sprung = rustworkx.spring_layout(graph, num_iter=_SMALL_ITERATIONS, seed=_SEED)
        at = np.array([sprung[place] for place in range(count)])
    else:
        at = _relaxed(_by_distances(count, edges), edges)
    return _apart(_scaled(at))


def _by_distances(count: int, edges: Ints) -> Floats:
    """Two coordinates that keep the distances to a few vertices, which are far from each other."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges.tolist():
        neighbours[one].append(other)
        neighbours[other].append(one)
    pivot = max(range(count), key=lambda each: len(neighbours[each]))
    nearest = np.full(count, np.inf)
    columns = []
    for _ in range(_PIVOTS):
        distances = _distances_from(pivot, neighbours)
        columns.append(distances)
        nearest = np.minimum(nearest, distances)
        pivot = int(nearest.argmax())
    squares = np.column_stack(columns) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    at = centred @ vectors[:, -2:]
    at = at / (np.abs(at).max(axis=0) + 1e-9)
    # Vertices at the same distances from all pivots would stay together.
    angle = np.arange(count) * _GOLDEN_ANGLE
    moved: Floats = at + 0.03 * np.column_stack((np.cos(angle), np.sin(angle)))
    return moved


def _distances_from(start: int, neighbours: Sequence[Sequence[int]]) -> Floats:
    distances = [-1] * len(neighbours)
    distances[start] = 0
    ring, away = [start], 0
    while ring:
        away += 1
        following = []
        for each in ring:
            for other in neighbours[each]:
                if distances[other] < 0:
                    distances[other] = away
                    following.append(other)
        ring = following
    return np.array(distances, dtype=np.float64)


def _relaxed(at: Floats, edges: Ints) -> Floats:
    """Edges pull their ends together, and all vertices push each other away."""
    count = len(at)
    at = at * math.sqrt(count)
    degree = np.bincount(edges.ravel(), minlength=count).astype(np.float64)
    pull = 1.0 / np.sqrt(np.maximum(degree[edges[:, 0]], degree[edges[:, 1]]))
    field = _Repulsion(next((cells for most, cells in _GRIDS if count <= most), _LARGEST_GRID))
    reach = math.sqrt(count) * 0.2
    for number in range(_ITERATIONS):
        force = field.at(at) * 2.0
        along = (at[edges[:, 1]] - at[edges[:, 0]]) * pull[:, None] * 0.7
        for axis in (0, 1):
            force[:, axis] += np.bincount(edges[:, 0], along[:, axis], count)
            force[:, axis] -= np.bincount(edges[:, 1], along[:, axis], count)
        force -= (at - at.mean(axis=0)) * 0.02
        length = np.hypot(force[:, 0], force[:, 1])
        most = reach * (1 - number / _ITERATIONS) + 0.05
        at = at + force * (np.minimum(length, most) / np.maximum(length, 1e-9))[:, None]
    return at


class _Repulsion:
    """The force 1/distance from all vertices, as the convolution of their density on a grid."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        # The second half of each axis stands for negative steps.
        steps = np.fft.fftfreq(2 * cells, 1 / (2 * cells))
        down, across = np.meshgrid(steps, steps, indexing="ij")
        square = down**2 + across**2 + 0.5
        self._kernels = [np.fft.rfft2(axis / square) for axis in (across, down)]

    def at(self, at: Floats) -> Floats:
        low = at.min(axis=0)
        cell = float((at.max(axis=0) - low).max()) / (self._cells - 2) + 1e-9
        scaled = (at - low) / cell
        corner = scaled.astype(np.int64)
        part = scaled - corner
        shares = [
            (corner[:, 1] + down, corner[:, 0] + across, weight)
            for down, across, weight in (
                (0, 0, (1 - part[:, 1]) * (1 - part[:, 0])),
                (0, 1, (1 - part[:, 1]) * part[:, 0]),
                (1, 0, part[:, 1] * (1 - part[:, 0])),
                (1, 1, part[:, 1] * part[:, 0]),
            )
        ]
        side = 2 * self._cells
        flat = np.zeros(side * side)
        for row, column, weight in shares:
            flat += np.bincount(row * side + column, weight, side * side)
        density = flat.reshape(side, side)
        spectrum = np.fft.rfft2(density)
        force = np.zeros_like(at)
        for axis, kernel in enumerate(self._kernels):
            field = np.fft.irfft2(spectrum * kernel, density.shape)
            for row, column, weight in shares:
                force[:, axis] += field[row, column] * weight
        return force / cell


def _scaled(at: Floats) -> Floats:
    """The positions in an area that has room for all of them, wider than high."""
    at = at - at.mean(axis=0)
    count = len(at)
    # The axis with the largest spread becomes the horizontal one.
    _, axes = np.linalg.eigh(at.T @ at)
    at = at @ axes[:, ::-1]
    spread = np.sqrt((at**2).sum(axis=1))
    typical = float(np.quantile(spread, 0.8)) or 1.0
    scaled: Floats = at * (math.sqrt(count * _AREA / math.pi) * 0.9 / typical)
    return scaled


def _apart(at: Floats) -> Floats:
    """Push apart vertices that overlap: each is compared with those nearby in a grid."""
    cell = 4 * _ROOM
    for number in range(24):
        shift = (number % 2) * cell / 2, (number // 2 % 2) * cell / 2
        columns = np.floor((at[:, 0] + shift[0]) / cell).astype(np.int64)
        rows = np.floor((at[:, 1] + shift[1]) / cell).astype(np.int64)
        order = np.lexsort((at[:, 0], columns, rows))
        moves = np.zeros_like(at)
        for beside in range(1, min(7, len(at))):
            one, other = order[:-beside], order[beside:]
            together = (columns[one] == columns[other]) & (rows[one] == rows[other])
            one, other = one[together], other[together]
            apart = at[one] - at[other]
            distance = np.hypot(apart[:, 0], apart[:, 1])
            lacking = np.maximum(0.0, 2 * _ROOM - distance)
            apart[distance < 1e-6] = (1.0, 0.3)
            step = apart * (lacking * 0.3 / np.maximum(distance, 1e-2))[:, None]
            for axis in (0, 1):
                moves[:, axis] += np.bincount(one, step[:, axis], len(at))
                moves[:, axis] -= np.bincount(other, step[:, axis], len(at))
        at = at + np.clip(moves, -_ROOM, _ROOM)
    return at


def _in_rows(count: int) -> Floats:
    """Vertices without edges."""
    # A few of them get room for their labels.
    step = 2 * _ROOM * (5 if count <= _FEW else 1)
    columns = math.ceil(math.sqrt(count * 3 * _SHAPE * 2 * _ROOM / step))
    number = np.arange(count)
    rows = np.column_stack((number % columns, number // columns)).astype(np.float64)
    return rows * (step, 2 * _ROOM)


class _Box(NamedTuple):
    """A component with its left upper corner at the origin."""

    members: Sequence[int]
    at: Floats
    width: float
    height: float


def _box(members: Sequence[int], at: Floats) -> _Box:
    at = at - at.min(axis=0) + _ROOM
    width, height = at.max(axis=0) + _ROOM
    return _Box(members, at, float(width), float(height))


def _packed(count: int, boxes: Sequence[_Box]) -> GraphLayout:
    """Boxes in rows, the highest first."""
    area = sum((box.width + _GAP) * (box.height + _GAP) for box in boxes)
    widest = max([math.sqrt(area * _SHAPE), *(box.width for box in boxes)], default=0.0)
    points = [Point(0.0, 0.0)] * count
    x = y = row = width = 0.0
    for box in sorted(boxes, key=lambda each: -each.height):
        if x and x + box.width > widest:
            x, y, row = 0.0, y + row + _GAP, 0.0
        for each, (left, top) in zip(box.members, box.at.tolist(), strict=True):
            points[each] = Point(round(left + x, 2), round(top + y, 2))
        x += box.width + _GAP
        row = max(row, box.height)
        width = max(width, x - _GAP)
    return GraphLayout(tuple(points), round(width, 2), round(y + row, 2))
