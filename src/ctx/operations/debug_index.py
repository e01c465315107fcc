"""What the indexes of a project have under a key: that of the objects, and that of the code."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ctx.code import coverage, lookup
from ctx.code.lookup import Code, Located
from ctx.errors import UsageError
from ctx.ids import ObjectId
from ctx.objects import index
from ctx.workspace import Workspace

_IN_OBJECTS = ("path", "file", "commit", "narrative")
_IN_CODE = ("path", "name", "item")


class Found(NamedTuple):
    """The answer of `ctx debug index`."""

    key: str
    heads: tuple[ObjectId, ...]
    """The heads that the index of the objects was made from."""
    entries: tuple[Mapping[str, Any], ...]
    """What the index of the objects has."""
    code: tuple[Mapping[str, Any], ...]
    """What the index of the code has, as the last refresh left it."""


def look_up(workspace: Workspace, key: str | None) -> Found:
    """What is known under `path:…`, `file:…`, `commit:…`, `narrative:…`, `name:…` or `item:…`."""
    kind, colon, wanted = (key or "").partition(":")
    if key and (not colon or kind not in {*_IN_OBJECTS, *_IN_CODE}):
        kinds = ", ".join(f"{name}:" for name in dict.fromkeys((*_IN_OBJECTS, *_IN_CODE)))
        raise UsageError(f"{key!r} is no key of the index.", hint=f"A key begins with {kinds}.")
    known = kind in _IN_OBJECTS or not key
    found = index.look_up(workspace.repository, workspace.repo_id, key if known else None)
    place = workspace.project.code
    entries: list[dict[str, Any]] = []
    code = lookup.opened(place.database, place.root)
    if code:
        with code:
            entries += _in_code(code, kind, wanted)
    return Found(key or "", found.heads, found.entries if known else (), tuple(entries))


def _in_code(code: Code, kind: str, wanted: str) -> Iterator[dict[str, Any]]:
    match kind:
        case "path":
            if file := code.file(wanted):
                yield {**file._asdict(), "items": len(code.outline(file))}
        case "name":
            for each in code.named(wanted):
                yield _told(each)
        case "item":
            # A stable key is the whole name, and nothing less.
            for each in code.named(wanted):
                if each.name == wanted:
                    yield _told(each)
        case "":
            known = coverage.of(code.connection)
            counted = ("files", "parsed", "items", "edges", "refreshed_at")
            yield {name: getattr(known, name) for name in counted}


def _told(item: Located) -> dict[str, Any]:
    return {**item._asdict(), "file_id": item.id >> 16}
