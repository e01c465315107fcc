"""What the indexes of a project have under a key: that of the objects, and that of the code."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ctx.code import coverage, lookup, suggestions
from ctx.code.lookup import LocatedItem
from ctx.code.packages import package_queries as packages
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase, IndexAge, OpenIndex
from ctx.errors import IndexCorrupt, UsageError
from ctx.ids import ObjectId
from ctx.objects import object_index
from ctx.workspace import Workspace

_IN_OBJECTS = ("path", "file", "commit", "narrative")
_IN_CODE = ("path", "name", "item", "package")


class IndexLookup(NamedTuple):
    """The answer of `ctx debug index`."""

    key: str
    heads: tuple[ObjectId, ...]
    """The heads that the index of the objects was made from."""
    entries: tuple[Mapping[str, Any], ...]
    """What the index of the objects has."""
    code: tuple[Mapping[str, Any], ...]
    """What the index of the code has, as the last refresh left it."""
    near: tuple[str, ...]
    """Names of the code like one that it does not have."""
    age: IndexAge | None
    """The state of the code index; null if there is none."""


def is_about_code(key: str | None) -> bool:
    """Whether a key can be looked up without a store."""
    return (key or "").partition(":")[0] in _IN_CODE


def look_up(workspace: Workspace | None, codebase: Codebase, key: str | None) -> IndexLookup:
    """What is known under `path:…`, `file:…`, `commit:…`, `narrative:…`, `name:…`, `item:…` or
    `package:…`."""
    kind, colon, wanted = (key or "").partition(":")
    if key and (not colon or kind not in {*_IN_OBJECTS, *_IN_CODE}):
        kinds = ", ".join(f"{name}:" for name in dict.fromkeys((*_IN_OBJECTS, *_IN_CODE)))
        raise UsageError(f"{key!r} is not a key of the index.", hint=f"A key begins with {kinds}.")
    known = kind in _IN_OBJECTS or not key
    heads: tuple[ObjectId, ...] = ()
    entries: tuple[Mapping[str, Any], ...] = ()
    if workspace:
        found = object_index.look_up(
            workspace.repository, workspace.repo_id, key if known else None
        )
        heads, entries = found.heads, found.entries if known else ()
    try:
        opened = indexing.open_unrefreshed(codebase)
    except IndexCorrupt:
        return IndexLookup(key or "", heads, entries, (), (), None)
    with opened:
        told = tuple(_in_code(opened, kind, wanted))
        is_name = kind in ("name", "item") and not told
        close = suggestions.similar_names(opened.code, wanted, opened.folder) if is_name else []
        if kind == "package" and not told:
            close = packages.similar_names(packages.all_packages(opened.code.connection), wanted)
    return IndexLookup(key or "", heads, entries, told, tuple(close), opened.age)


def _in_code(opened: OpenIndex, kind: str, wanted: str) -> Iterator[dict[str, Any]]:
    code = opened.code
    match kind:
        case "path":
            if file := code.file(wanted, opened.folder):
                yield {**file._asdict(), "items": len(code.outline(file))}
        case "name":
            for each in code.named(wanted):
                yield _item_fields(each)
        case "item":
            # A stable key is the whole name; for the end of a name, the rest is suggested.
            for each in lookup.exact_matches(code.named(wanted), wanted):
                yield _item_fields(each)
        case "package":
            for package in packages.find_packages(packages.all_packages(code.connection), wanted):
                yield package._asdict()
        case "":
            known = coverage.measure(code.connection)
            counted = ("files", "parsed", "items", "edges", "refreshed_at")
            yield {name: getattr(known, name) for name in counted}


def _item_fields(item: LocatedItem) -> dict[str, Any]:
    return {**item._asdict(), "file_id": item.id >> 16}
