"""Cycles: files that import each other, functions that call each other.

Nodes that can reach each other form one *component*. Between components there are no cycles, so
they have an order: a component comes before those that it depends on.

The view is stored in a file named by its hash, and `scc_latest` names the newest. It refers to
items by their ids in the index, so it is valid for the index from which it was made.
"""

import os
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from ctx import disk
from ctx.code.code_graph import CodeGraph
from ctx.code.vocabulary import MEDIUM

LATEST = "scc_latest"
VERSION = 1

_LARGEST = 1 << 30
_NAME = 32
_PREFIX = "scc-"


class CondensedGraph(msgspec.Struct, frozen=True, array_like=True):
    """A graph in which each cycle is collapsed into one component."""

    components: tuple[tuple[int, ...], ...]
    """In order: each comes before those it leads to. Members are sorted."""
    edges: tuple[tuple[int, int], ...]
    """Between components, by index in the list above."""

    @property
    def cycles(self) -> list[tuple[int, ...]]:
        """The components with more than one member, the largest first."""
        several = [members for members in self.components if len(members) > 1]
        return sorted(several, key=lambda members: (-len(members), members))

    def component_of(self) -> dict[int, int]:
        """The component of each member."""
        return {
            member: place for place, members in enumerate(self.components) for member in members
        }


class CycleView(msgspec.Struct, frozen=True, array_like=True):
    """The cycles of an index. Files and items without edges are not included."""

    version: int
    files: CondensedGraph
    """By imports, with the ids of files."""
    items: CondensedGraph
    """By calls, with the ids of items."""


Pair = tuple[int, int]


def cycle_view(graph: CodeGraph) -> CycleView:
    """The cycles in the current index. Low-confidence calls are excluded."""
    imports, calls = graph.importing_files(), graph.calling_items(MEDIUM)
    return CycleView(VERSION, condense(imports), condense(calls))


def condense(edges: Iterable[Pair]) -> CondensedGraph:
    """Collapse the cycles. The order of the edges does not matter."""
    import rustworkx

    pairs = sorted(edges)
    members = sorted({end for pair in pairs for end in pair})
    places = {member: place for place, member in enumerate(members)}
    graph: rustworkx.PyDiGraph[int | None, None] = rustworkx.PyDiGraph()
    graph.add_nodes_from(members)
    graph.extend_from_edge_list([(places[one], places[other]) for one, other in pairs])
    components = rustworkx.strongly_connected_components(graph)
    component_of = [0] * len(members)
    for number, component in enumerate(components):
        for place in component:
            component_of[place] = number
    between = {(component_of[places[one]], component_of[places[other]]) for one, other in pairs}
    dag: rustworkx.PyDiGraph[int | None, None] = rustworkx.PyDiGraph()
    dag.add_nodes_from(list(range(len(components))))
    dag.extend_from_edge_list(sorted(pair for pair in between if pair[0] != pair[1]))
    order = list(rustworkx.topological_sort(dag))
    place_of = {number: place for place, number in enumerate(order)}
    return CondensedGraph(
        tuple(tuple(sorted(members[place] for place in components[number])) for number in order),
        tuple(sorted((place_of[one], place_of[other]) for one, other in dag.edge_list())),
    )


def edges_in_cycles(condensed: CondensedGraph, edges: Iterable[Pair]) -> dict[int, list[Pair]]:
    """The edges inside of a cycle, by the smallest member of the cycle."""
    first = {member: members[0] for members in condensed.cycles for member in members}
    by_component: dict[int, list[Pair]] = {}
    for one, other in edges:
        if one in first and first[one] == first.get(other):
            by_component.setdefault(first[one], []).append((one, other))
    return by_component


def shortest_loop(members: Sequence[int], edges: Iterable[Pair]) -> list[int]:
    """A shortest path from the first member of a cycle through other members back to it."""
    leads: dict[int, list[int]] = {}
    for one, other in edges:
        if one != other:
            leads.setdefault(one, []).append(other)
    start = members[0]
    before: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for following in sorted(leads.get(here, ())):
            if following == start:
                way = [here]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if following not in before:
                before[following] = here
                waiting.append(following)
    return []


# The view on disk


def write_view(folder: str, view: CycleView) -> str:
    """Store a view, make it the latest, and return its hash. An existing view is not written
    again."""
    content = msgspec.msgpack.encode(view)
    name = blake2b(content, digest_size=_NAME // 2).hexdigest()
    with disk.explain_errors("writing the cycles of the code"):
        disk.make_folder(folder)
        path = os.path.join(folder, f"{_PREFIX}{name}")
        if not os.path.exists(path):
            disk.replace(path, content)
        if latest_name(folder) != name:
            disk.replace(os.path.join(folder, LATEST), f"{name}\n".encode())
        for other in disk.names(folder):
            if other.startswith(_PREFIX) and other != f"{_PREFIX}{name}":
                disk.discard(os.path.join(folder, other))
    return name


def latest_name(folder: str) -> str | None:
    """The name of the latest view."""
    try:
        name = disk.read_plain(os.path.join(folder, LATEST), 1000).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return name if len(name) == _NAME and name.isalnum() else None


def latest(folder: str) -> CycleView | None:
    """The latest view; None if there is none or it is damaged."""
    name = latest_name(folder)
    if name is None:
        return None
    try:
        content = disk.read_plain(os.path.join(folder, f"{_PREFIX}{name}"), _LARGEST)
        view = msgspec.msgpack.decode(content, type=CycleView)
    except (OSError, msgspec.MsgspecError):
        return None
    is_whole = blake2b(content, digest_size=_NAME // 2).hexdigest() == name
    return view if is_whole and view.version == VERSION else None
