"""What must be read with a hit: follow the edges of the code and the edges of memory.

Each step lowers the score: by the kind of edge, its direction, its confidence, and how many others
point to the same target, because widely used code says little about a task. Items of one cycle are
one step away together: no member of a cycle is nearer than the others.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import log2
from typing import NamedTuple

from ctx.code import file_roles
from ctx.code.code_graph import CodeEdge, CodeGraph
from ctx.code.lookup import Code
from ctx.code.vocabulary import CONFIDENCES, LABELS
from ctx.ids import NodeId, anchor_id
from ctx.memory import walk
from ctx.memory.graphs import Graphs

_FORWARD = {"CALLS": 0.5, "USES_TYPE": 0.5, "IMPLEMENTS": 0.5, "REFERENCES": 0.35, "IMPORTS": 0.3}
_BACKWARD = {"CALLS": 0.35, "IMPLEMENTS": 0.4, "USES_TYPE": 0.2, "REFERENCES": 0.2, "IMPORTS": 0.1}
_OF_A_TEST = 0.45
"""The caller is a test, which shows the intended use."""
_CONFIDENCE_WEIGHTS = {"high": 1.0, "medium": 0.8, "low": 0.4}
_SAME_CYCLE = 0.9

_MEMORY = {"MENTIONS": 0.6, "SUPERSEDES": 0.5, "DEPENDS_ON": 0.5, "DERIVED_FROM": 0.4}
_OTHERS = 0.4
_LEAST = 0.02
_MOST_NEIGHBOURS = 100
_MOST_STARTS = 12
_STEPS_AHEAD, _MOST_AHEAD = 3, 20
_MOST_BACK = 2
"""Callers of one item, and as many tests of it."""
_MOST_LEADING = 200
"""If more edges than this point to an item, its callers say nothing about the task."""


class ReachedItem(NamedTuple):
    """An item that was reached through the graph."""

    id: int
    score: float
    depth: int
    label: str
    """The label of the last edge, prefixed with `<` if it was followed backward."""
    previous: int


class Expansion(NamedTuple):
    items: tuple[ReachedItem, ...]
    """The best first, without the starting items."""
    condensed: bool
    """Whether cycles were collapsed."""


class ExpansionLimits(NamedTuple):
    depth: int
    labels: Collection[str]
    most: int
    least_confidence: str


class _Hop(NamedTuple):
    source: int
    target: int
    weight: float
    label: str


def in_code(code: Code, starts: Mapping[int, float], limits: ExpansionLimits) -> Expansion:
    """The items that the edges of the code reach from some items, with scores."""
    labels = [label for label in LABELS if label in limits.labels]
    if not labels or not limits.depth or not limits.most or not starts:
        return Expansion((), False)
    least = CONFIDENCES.index(limits.least_confidence)
    best = sorted(starts, key=lambda item: (-starts[item], item))[:_MOST_STARTS]
    scores = {item: starts[item] for item in best}
    by_id: dict[int, ReachedItem] = {}
    ring: list[int] = best
    condensed = False
    leads: list[CodeEdge] = []
    for depth in range(1, limits.depth + 1):
        outward = code.edges_from(ring, labels, least)
        ways = [_forward(edge) for edge in outward]
        if depth == 1:
            ways += _backward(code, ring, labels, least)
        leads += outward
        leads += _resolved_edges(code, [edge.target for edge in outward], labels, least)
        together = _cycles((edge.source, edge.target) for edge in leads)
        condensed = condensed or bool(ways)
        ring = _step(code, ways, together, scores, by_id, depth)
        ring = sorted(ring, key=lambda item: (-scores[item], item))[: limits.most]
        if not ring:
            break
    reached = [item for item in by_id.values() if item.id not in starts]
    reached.sort(key=lambda item: (-item.score, item.id))
    return Expansion(tuple(reached[: limits.most]), condensed)


def _resolved_edges(
    code: Code, items: Sequence[int], labels: Sequence[str], least: int
) -> list[CodeEdge]:
    """The edges from items and from their targets that are resolved already. They are enough to
    find most of the cycles around the items."""
    known = CodeGraph(code.connection)
    all_edges: list[CodeEdge] = []
    ring = list(dict.fromkeys(items))[:_MOST_AHEAD]
    for _ in range(_STEPS_AHEAD):
        edges = known.edges_from(ring, labels, least)
        all_edges += edges
        ring = list(dict.fromkeys(edge.target for edge in edges))[:_MOST_AHEAD]
    return all_edges


def _forward(edge: CodeEdge) -> _Hop:
    weight = _FORWARD[edge.label] * _CONFIDENCE_WEIGHTS[edge.confidence]
    return _Hop(edge.source, edge.target, weight, edge.label)


def _backward(code: Code, items: Sequence[int], labels: Sequence[str], least: int) -> list[_Hop]:
    """The callers of these items. Importers are skipped: their bodies mention the item too."""
    wanted = [label for label in labels if label != "IMPORTS"]
    leading_to = code.leading_to(items, _MOST_LEADING + 1)
    quiet = [item for item in items if leading_to[item] <= _MOST_LEADING]
    edges = code.edges_to(quiet, wanted, least) if wanted else []
    tests = _in_tests(code, {edge.source for edge in edges})
    leading: dict[int, int] = {}
    for edge in edges:
        leading[edge.target] = leading.get(edge.target, 0) + 1
    hops: list[_Hop] = []
    taken: dict[tuple[int, bool], int] = {}
    for edge in edges:
        is_test = edge.source in tests
        number = taken[edge.target, is_test] = taken.get((edge.target, is_test), 0) + 1
        if number > _MOST_BACK:
            continue
        weight = _OF_A_TEST if is_test else _BACKWARD[edge.label]
        # One of a hundred callers says less than the only one.
        weight *= _CONFIDENCE_WEIGHTS[edge.confidence] / (1 + log2(leading[edge.target]) / 2)
        hops.append(_Hop(edge.target, edge.source, weight, f"<{edge.label}"))
    return hops


def _step(
    code: Code,
    ways: Sequence[_Hop],
    together: Mapping[int, Sequence[int]],
    scores: dict[int, float],
    reached: dict[int, ReachedItem],
    depth: int,
) -> list[int]:
    """Follow one ring of edges and return the items that were reached for the first time."""
    new: dict[int, None] = {}
    leading_to = code.leading_to(
        {way.target for way in ways if way.target not in scores}, _MOST_LEADING + 1
    )
    for way in sorted(ways, key=lambda way: (-way.weight * scores.get(way.source, 0.0), way)):
        score = scores.get(way.source, 0.0) * way.weight
        if score < _LEAST or way.target in scores:
            continue
        score /= 1 + log2(1 + leading_to[way.target]) / 4
        for item in together.get(way.target, (way.target,)):
            if item not in scores:
                scores[item] = score if item == way.target else score * _SAME_CYCLE
                reached[item] = ReachedItem(item, scores[item], depth, way.label, way.source)
                new[item] = None
    return list(new)


def _cycles(edges: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    """The items that can reach each other, by item."""
    pairs = {pair for pair in edges if pair[0] != pair[1]}
    while pairs:
        # An item without incoming or without outgoing edges is in no cycle.
        sources, targets = {one for one, _ in pairs}, {other for _, other in pairs}
        left = {(one, other) for one, other in pairs if one in targets and other in sources}
        if left == pairs:
            break
        pairs = left
    leads, backward = _neighbours(pairs), _neighbours((other, one) for one, other in pairs)
    cycles: dict[int, tuple[int, ...]] = {}
    for item in sorted(leads):
        if item not in cycles:
            # Few items are left: two items are in one cycle if each reaches the other.
            together = tuple(sorted(_reachable_from(item, leads) & _reachable_from(item, backward)))
            cycles.update(dict.fromkeys(together, together))
    return cycles


def _neighbours(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    neighbours: dict[int, list[int]] = {}
    for one, other in pairs:
        neighbours.setdefault(one, []).append(other)
    return neighbours


def _reachable_from(start: int, leads: Mapping[int, Sequence[int]]) -> set[int]:
    reached, waiting = {start}, [start]
    while waiting:
        for other in leads.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def _in_tests(code: Code, items: Collection[int]) -> set[int]:
    files = {item >> 16 for item in items}
    places = ", ".join(map(str, files))
    rows = code.connection.execute(f"SELECT id, path FROM files WHERE id IN ({places})")
    tests = {file_id for file_id, path in rows if file_roles.is_test(path)}
    return {item for item in items if item >> 16 in tests}


# Memory


class ExpandedNode(NamedTuple):
    """A node that was reached through the graph of memory."""

    id: NodeId
    score: float
    depth: int
    label: str
    """The label of the last edge, prefixed with `<` if it was followed backward."""
    previous: NodeId


def anchors(names: Iterable[tuple[str, str]], project_tag: str) -> dict[NodeId, str]:
    """The ids of the anchor nodes for files and items, given by kind and name.

    In the user store, which holds many projects, the project is part of the name.
    """
    by_anchor: dict[NodeId, str] = {}
    for kind, name in names:
        by_anchor[anchor_id(kind, name)] = name
        if project_tag:
            by_anchor[anchor_id(kind, f"{project_tag}\0{name}")] = name
    return by_anchor


InSight = Callable[[Collection[NodeId]], Collection[NodeId]]
"""Filters nodes to those that may be shown, including superseded ones."""


def in_memory(
    graphs: Graphs,
    starts: Mapping[NodeId, float],
    limits: ExpansionLimits,
    in_sight: InSight | None = None,
) -> list[ExpandedNode]:
    """The nodes that the edges of memory reach in both directions, the best first.

    Hidden nodes are neither reached nor passed through: a connection would reveal them too.
    """
    types = list(limits.labels)
    if not types or not limits.depth or not limits.most or not starts:
        return []
    scores = dict(starts)
    expanded: dict[NodeId, ExpandedNode] = {}
    ring = list(starts)
    for depth in range(1, limits.depth + 1):
        new: dict[NodeId, ExpandedNode] = {}
        for here in ring:
            for step in walk.related(graphs, [here], 1, edge_types=types, limit=_MOST_NEIGHBOURS):
                score = scores[here] * _MEMORY.get(step.type, _OTHERS)
                known = scores.get(step.id, new[step.id].score if step.id in new else 0.0)
                if step.previous is not None and score > max(known, _LEAST):
                    label = step.type if step.outward else f"<{step.type}"
                    new[step.id] = ExpandedNode(step.id, score, depth, label, here)
        if in_sight is not None:
            visible = in_sight(new)
            new = {node_id: step for node_id, step in new.items() if node_id in visible}
        ring = sorted(new, key=lambda node_id: (-new[node_id].score, node_id))[: limits.most]
        scores.update((node_id, new[node_id].score) for node_id in ring)
        expanded.update((node_id, new[node_id]) for node_id in ring)
    every = sorted(expanded.values(), key=lambda node: (-node.score, node.id))
    return every[: limits.most]
