"""Lays out a graph in a process of its own, and keeps the last layouts.

The libraries for it take memory that the worker would keep, and one of them lets no other thread
run meanwhile.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from ctx.errors import ProgramFailure

_KEPT = 3
_MOST_S = 120.0
_ONE_AT_A_TIME = threading.Lock()
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from ctx.page.graph_layout import lay_out; "
    "from ctx.page.layout_process import answer; answer(lay_out)"
)

Pair = tuple[int, int]


class Point(NamedTuple):
    x: float
    y: float


class GraphLayout(NamedTuple):
    points: tuple[Point, ...]
    """In the order of the vertices."""
    width: float
    height: float


def edge_set(pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Edges without direction, as `layout` takes them."""
    return frozenset((min(pair), max(pair)) for pair in pairs if pair[0] != pair[1])


@lru_cache(maxsize=_KEPT)
def layout(count: int, edges: frozenset[Pair]) -> GraphLayout:
    """Place vertices, which are numbers from 0."""
    if not count:
        return GraphLayout((), 0.0, 0.0)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Its folder may be that of a repository, whose modules must not be imported.
    program = [sys.executable, "-E", "-P", "-c", _START, package]
    asked = json.dumps([count, sorted(edges)]).encode()
    try:
        with _ONE_AT_A_TIME:
            ran = subprocess.run(
                program, input=asked, capture_output=True, check=True, timeout=_MOST_S
            )
        width, height, points = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ProgramFailure(f"The graph could not be laid out: {type(error).__name__}.") from None
    return GraphLayout(tuple(Point(*each) for each in points), width, height)


def answer(lay_out: Callable[[int, list[Pair]], GraphLayout]) -> None:
    """What the process does: read a graph from stdin, and write its layout to stdout."""
    with open(0, "rb") as asked:
        count, edges = json.load(asked)
    made = lay_out(count, [(one, other) for one, other in edges])
    with open(1, "wb") as answered:
        answered.write(json.dumps([made.width, made.height, made.points]).encode())
