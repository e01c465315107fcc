"""Where vertices are drawn."""

import math
import random
from itertools import combinations
from statistics import mean

import pytest

from ctx.page import graph_layout, layout_process
from ctx.page.layout_process import GraphLayout


def neighbourhoods(count: int, edges: int) -> list[tuple[int, int]]:
    rng = random.Random(4)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < edges:
        here = rng.randrange(count)
        there = max(0, min(count - 1, here + int(rng.gauss(0, 40))))
        if here != there:
            pairs.append((here, there))
    return pairs


def mean_length(layout: GraphLayout, pairs: list[tuple[int, int]]) -> float:
    return mean(math.dist(layout.points[one], layout.points[other]) for one, other in pairs)


@pytest.mark.parametrize(("count", "edges"), [(2, 1), (30, 40), (400, 700)])
def test_neighbours_are_near_and_nothing_overlaps(count: int, edges: int) -> None:
    pairs = neighbourhoods(count, edges)
    layout = graph_layout.lay_out(count, layout_process.edge_set(pairs))
    assert len(layout.points) == count
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in layout.points)
    cells = {(round(x), round(y)) for x, y in layout.points}
    assert len(cells) > 0.75 * count
    rng = random.Random(1)
    anyone = [(rng.randrange(count), rng.randrange(count)) for _ in range(2_000)]
    if count > 2:
        assert mean_length(layout, pairs) < 0.6 * mean_length(layout, anyone)


def test_components_do_not_cover_each_other() -> None:
    pairs = [(0, 1), (1, 2), (3, 4), (4, 5), (5, 3)]
    points = graph_layout.lay_out(9, layout_process.edge_set(pairs)).points
    boxes = []
    for members in ((0, 1, 2), (3, 4, 5), (6, 7, 8)):
        xs, ys = zip(*(points[each] for each in members), strict=True)
        boxes.append((min(xs), max(xs), min(ys), max(ys)))
    for (left, right, top, bottom), other in combinations(boxes, 2):
        assert other[0] > right or other[1] < left or other[2] > bottom or other[3] < top, boxes


@pytest.mark.slow
def test_a_process_lays_out_thousands_in_the_same_way() -> None:
    edges = layout_process.edge_set(neighbourhoods(5_000, 10_000))
    layout = graph_layout.lay_out(5_000, edges)
    assert layout_process.layout(5_000, edges) == layout


def test_nothing_to_draw() -> None:
    assert graph_layout.lay_out(0, frozenset()) == GraphLayout((), 0.0, 0.0)
    assert len(graph_layout.lay_out(3, layout_process.edge_set([(1, 1)])).points) == 3
