"""The input and output of `ctx debug index`."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ctx.cli import code
from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, Table, plain
from ctx.cli.settings import Settings
from ctx.code import coverage, lookup, suggestions
from ctx.code.lookup import LocatedItem
from ctx.code.packages import package_queries as packages
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase, IndexAge, OpenIndex
from ctx.errors import IndexCorrupt, NotAProject, StoreNotTrusted, UsageError
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


def show(key: str | None, settings: Settings, output: Output) -> None:
    workspace = None
    try:
        workspace = open_workspace(settings, output)
    except (NotAProject, StoreNotTrusted):
        # The code index works without a store.
        if not is_about_code(key):
            raise
    result = look_up(workspace, code.codebase_for_command(settings), key)
    output.show(result, _render)
    if result.age:
        code.print_index_age(result.age, output)
    elif is_about_code(key):
        output.note("There is no code index yet. To create it: `ctx code index`")


def _render(result: IndexLookup) -> list[Block]:
    if not result.entries and not result.code:
        offered = " or ".join(f"`{name}`" for name in result.near)
        hint = f" Did you mean {offered}?" if offered else ""
        return [Line(f"The index has nothing under {result.key}.{hint}")]
    blocks: list[Block] = [_entry(entry) for entry in result.entries]
    if result.code:
        blocks.append(Line("In the code", "heading"))
        blocks += [_entry(entry) for entry in result.code]
    return blocks


def _entry(entry: Mapping[str, Any]) -> Block:
    rows = [
        (name, line)
        for name, value in entry.items()
        for line in (map(_one_line_value, value) if isinstance(value, tuple) else [str(value)])
    ]
    return Table(("what", "value"), rows)


def _one_line_value(value: Any) -> str:
    """One of several values, without its empty fields."""
    fields = plain(value)
    if not isinstance(fields, dict):
        return str(value)
    return ", ".join(f"{name} {_value_text(fields[name])}" for name in fields if fields[name])


def _value_text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


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
