"""Who calls an item, and what it calls."""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from ctx.code.code_graph import CodeEdge
from ctx.code.lookup import LocatedItem
from ctx.code.vocabulary import CONFIDENCES
from ctx.codebase import code_items
from ctx.codebase.code_index import IndexAge, OpenIndex

_CALLS = ("CALLS",)


class CallOptions(NamedTuple):
    name: str
    depth: int = 1
    confidence: str = "low"
    """Calls that are less certain are left out."""
    limit: int = 0
    """0: all."""


class CodeCall(NamedTuple):
    depth: int
    """1 for a call of, or by, what was asked about; 2 for one further away."""
    caller: LocatedItem
    callee: LocatedItem
    path: str
    line: int
    """Where the caller calls it first."""
    times: int
    confidence: str


class CodeCalls(NamedTuple):
    """The answer of `ctx code callers` and `ctx code callees`."""

    name: str
    direction: Literal["callers", "callees"]
    items: tuple[LocatedItem, ...]
    """What has that name."""
    calls: tuple[CodeCall, ...]
    more: int
    """Calls that --limit left out."""
    age: IndexAge


def callers(opened: OpenIndex, options: CallOptions) -> CodeCalls:
    """Who calls what has a name; with a depth above 1 also who calls those."""
    meant = code_items.require(opened, options.name)
    least = CONFIDENCES.index(options.confidence)
    steps = _walk(
        [each.id for each in meant],
        options.depth,
        lambda items: opened.code.edges_to(items, _CALLS, least),
        lambda edge: edge.source,
    )
    return _answer(opened, options, "callers", meant, steps)


def callees(opened: OpenIndex, options: CallOptions) -> CodeCalls:
    """What is called by what has a name, or by anything in it."""
    meant = code_items.require(opened, options.name)
    least = CONFIDENCES.index(options.confidence)
    steps = _walk(
        opened.code.within(each.id for each in meant),
        options.depth,
        lambda items: opened.code.edges_from(items, _CALLS, least),
        lambda edge: edge.target,
    )
    return _answer(opened, options, "callees", meant, steps)


_Step = tuple[int, CodeEdge]


def _walk(
    start: list[int],
    depth: int,
    around: Callable[[Iterable[int]], list[CodeEdge]],
    beyond: Callable[[CodeEdge], int],
) -> list[_Step]:
    """The edges up to a number of steps away, each item entered once."""
    seen, here = set(start), start
    steps: list[_Step] = []
    for number in range(1, depth + 1):
        found = around(here)
        steps += [(number, edge) for edge in found]
        here = [each for each in dict.fromkeys(map(beyond, found)) if each not in seen]
        if not here:
            break
        seen.update(here)
    return steps


def _answer(
    opened: OpenIndex,
    options: CallOptions,
    direction: Literal["callers", "callees"],
    meant: list[LocatedItem],
    steps: list[_Step],
) -> CodeCalls:
    told = steps[: options.limit] if options.limit else steps
    ends = {end for _, edge in told for end in (edge.source, edge.target)}
    by_id = {each.id: each for each in opened.code.located(ends)}
    calls = [
        CodeCall(
            depth,
            by_id[edge.source],
            by_id[edge.target],
            by_id[edge.source].path,
            edge.line,
            edge.times,
            edge.confidence,
        )
        for depth, edge in told
        if edge.source in by_id and edge.target in by_id
    ]
    items = code_items.shown(meant)
    return CodeCalls(
        options.name, direction, items, tuple(calls), len(steps) - len(told), opened.age
    )
