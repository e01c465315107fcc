"""What the index of the code answers: the outline of a file, imports, calls, packages."""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from ctx.code.code_graph import CodeEdge
from ctx.code.lookup import LocatedItem, OutlineEntry
from ctx.code.packages import package_queries
from ctx.code.packages.package_queries import IndexedPackage, PackageDependency
from ctx.code.vocabulary import CONFIDENCES, file_of
from ctx.codebase import code_items
from ctx.codebase.indexing import IndexAge, OpenIndex
from ctx.errors import NodeNotFound

_CALLS = ("CALLS",)
_IMPORTS = ("IMPORTS",)


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
    items = code_items.shown_items(meant)
    return CodeCalls(
        options.name, direction, items, tuple(calls), len(steps) - len(told), opened.age
    )


class FileOutline(NamedTuple):
    """The answer of `ctx code outline`."""

    path: str
    language: str | None
    lines: int
    skipped: str | None
    """Why nothing was read out of it; null: it was."""
    problems: int
    """Places that could not be understood."""
    items: tuple[OutlineEntry, ...]
    age: IndexAge


def outline(opened: OpenIndex, path: str) -> FileOutline:
    file = code_items.require_file(opened, path)
    items = tuple(opened.code.outline(file))
    return FileOutline(
        file.path, file.language, file.lines, file.skipped, file.problems, items, opened.age
    )


class DependentPackage(NamedTuple):
    """A package that depends on what was asked about."""

    package: str
    manifest: str
    dependency: PackageDependency


class PackageList(NamedTuple):
    """The answer of `ctx code packages`."""

    name: str
    """As it was asked; empty for all."""
    packages: tuple[IndexedPackage, ...]
    """None where the name is only that of a package from elsewhere."""
    needed_by: tuple[DependentPackage, ...]
    """Who depends on what has that name; none where no name was asked."""
    age: IndexAge


def packages(opened: OpenIndex, name: str = "") -> PackageList:
    every = package_queries.all_packages(opened.code.connection)
    if not name:
        return PackageList("", tuple(every), (), opened.age)
    meant = package_queries.find_packages(every, name)
    if not meant:
        # A path may also be meant from where the command works, or be a whole one.
        paths = opened.code.inside(name, opened.folder)
        meant = [each for path in paths for each in package_queries.find_packages(every, path)]
    found = (
        package_queries.dependents(every, meant)
        if meant
        else package_queries.dependents_of_external(every, name)
    )
    if not meant and not found:
        hint = code_items.reservation(opened.age) or _hint(every, name)
        raise NodeNotFound(f"There is no package {name[:80]!r}.", hint=hint)
    needing = tuple(DependentPackage(each.name, each.manifest, needed) for each, needed in found)
    return PackageList(name, tuple(meant), needing, opened.age)


def _hint(every: list[IndexedPackage], name: str) -> str:
    if near := package_queries.similar_names(every, name):
        return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?"
    return "`ctx code packages` lists the packages."


class CodeImport(NamedTuple):
    path: str
    line: int
    module: str
    """Where from, as it is written."""
    item: str
    """What of it; empty for the whole, `*` for everything."""
    bound: str
    """What it is called here."""
    target: LocatedItem | None
    """Its file in this repository; null if it is elsewhere or unknown."""


class Importer(NamedTuple):
    importer: LocatedItem
    """The file, or the function that imports for itself."""
    imported: LocatedItem
    path: str
    line: int


class CodeImports(NamedTuple):
    """The answer of `ctx code imports`."""

    name: str
    items: tuple[LocatedItem, ...]
    """What has that name."""
    imports: tuple[CodeImport, ...]
    importers: tuple[Importer, ...]
    more: int
    """Importers that --limit left out."""
    age: IndexAge


def imports(opened: OpenIndex, name: str, limit: int = 0) -> CodeImports:
    """A file or item with its imports, and its importers up to a limit."""
    meant = code_items.require(opened, name)
    items = code_items.shown_items(meant)
    inside = set(opened.code.within(each.id for each in meant))
    brought = []
    for file_id in dict.fromkeys(file_of(each.id) for each in meant):
        brought += [
            (file_id, each) for owner, each in opened.code.imports(file_id) if owner in inside
        ]
    edges = opened.code.edges_to(inside, _IMPORTS)
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    ends.update(each.target for _, each in brought if each.target)
    by_id = {each.id: each for each in opened.code.located(ends)}
    paths = {file_of(each.id): each.path for each in meant}
    found = [
        CodeImport(
            paths[file_id],
            each.line,
            each.written.module,
            each.written.item,
            each.written.bound,
            by_id.get(each.target or 0),
        )
        for file_id, each in brought
    ]
    importers = [
        Importer(by_id[edge.source], by_id[edge.target], by_id[edge.source].path, edge.line)
        for edge in edges
        if edge.source in by_id and edge.target in by_id
    ]
    importers.sort(key=lambda each: (each.path, each.line))
    told = importers[:limit] if limit else importers
    more = len(importers) - len(told)
    return CodeImports(name, items, tuple(found), tuple(told), more, opened.age)
