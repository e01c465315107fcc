"""Files that import each other, and functions that call each other."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from ctx.code import cycles as condensing
from ctx.code.cycles import CondensedGraph, CycleView
from ctx.code.lookup import Code
from ctx.code.vocabulary import MEDIUM, file_of, item_id
from ctx.codebase.indexing import Codebase, IndexAge, OpenIndex
from ctx.errors import DiskFailure

Between = Literal["files", "items"]


class CycleMember(NamedTuple):
    name: str
    path: str
    line: int


class Cycle(NamedTuple):
    of: Between
    members: tuple[CycleMember, ...]
    loop: tuple[str, ...]
    """A shortest way round, from the first member back to it: paths, or names."""


class Cycles(NamedTuple):
    """The answer of `ctx code cycles`."""

    cycles: tuple[Cycle, ...]
    files: int
    """Files that import or are imported."""
    items: int
    """Items that call or are called."""
    view: str | None
    """The name of the view that was written down."""
    age: IndexAge


class Condensation(NamedTuple):
    """What `ctx rebuild --scc` made."""

    view: str
    """Its name, to which `DERIVED/scc_latest` points."""
    files: int
    file_components: int
    file_cycles: int
    items: int
    item_components: int
    item_cycles: int


def cycles(opened: OpenIndex, codebase: Codebase, of: Sequence[Between]) -> Cycles:
    view = condensing.cycle_view(opened.code)
    kept = None
    # Where nothing can be written, the answer is the same.
    with suppress(DiskFailure):
        kept = condensing.write_view(codebase.place.derived, view)
    found: list[Cycle] = []
    if "files" in of:
        found += _between_files(opened.code, view.files)
    if "items" in of:
        found += _between_items(opened.code, view.items)
    files, items = _members(view.files), _members(view.items)
    return Cycles(tuple(found), files, items, kept, opened.age)


def condense(opened: OpenIndex, codebase: Codebase) -> Condensation:
    """Make the view of components anew, and let `scc_latest` name it."""
    view: CycleView = condensing.cycle_view(opened.code)
    name = condensing.write_view(codebase.place.derived, view)
    sizes = [
        size
        for each in (view.files, view.items)
        for size in (_members(each), len(each.components), len(each.cycles))
    ]
    return Condensation(name, *sizes)


def _members(condensed: CondensedGraph) -> int:
    return sum(map(len, condensed.components))


def _between_files(code: Code, condensed: CondensedGraph) -> list[Cycle]:
    edges = condensing.edges_in_cycles(condensed, code.importing_files())
    found = []
    for members in condensed.cycles:
        files = code.located(item_id(each, 0) for each in members)
        told = tuple(CycleMember(each.name, each.path, 1) for each in files)
        paths = {file_of(each.id): each.path for each in files}
        loop = condensing.shortest_loop(list(paths), edges[members[0]])
        found.append(Cycle("files", told, tuple(paths[each] for each in loop)))
    return found


def _between_items(code: Code, condensed: CondensedGraph) -> list[Cycle]:
    found = []
    for members in condensed.cycles:
        items = code.located(members)
        told = tuple(CycleMember(each.name, each.path, each.line) for each in items)
        names = {each.id: each.name for each in items}
        calls = code.edges_from(members, ("CALLS",), MEDIUM)
        edges = [(edge.source, edge.target) for edge in calls if edge.target in names]
        loop = condensing.shortest_loop(list(names), edges)
        found.append(Cycle("items", told, tuple(names[each] for each in loop)))
    return found
