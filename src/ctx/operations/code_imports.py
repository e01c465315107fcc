"""What a file or an item imports, and who imports it."""

from typing import NamedTuple

from ctx.code.lookup import LocatedItem
from ctx.code.vocabulary import file_of
from ctx.codebase import code_items
from ctx.codebase.code_index import IndexAge, OpenIndex

_IMPORTS = ("IMPORTS",)


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
    items = code_items.shown(meant)
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
