"""Which items of code a write changed: new, modified or deleted.

Only files that parse are compared: if a write breaks the syntax, items that seem to be missing may
only be hidden.

Most edits stay inside one item, and files are large. So only that item is parsed again, if its old
text alone parses to the same items as it did in its file.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from msgspec.structs import replace

from ctx.capture.steps import SymbolChange
from ctx.code.grammars import GRAMMARS
from ctx.code.item_changes import ItemChange
from ctx.code.source_model import ParsedFile, SourceItem
from ctx.hosts.tool_calls import FileContents

MOST = 40

_LARGEST = 300_000
"""A larger file could take too long to parse."""
_LONGEST_SIGNATURE = 200
_LONGEST_NAME = 200
_MOST_KNOWN = 32
_LARGE_ITEM_FACTOR = 2
"""An item larger than the file divided by this is not parsed alone."""


def changes(path: str, written: FileContents, most: int = MOST) -> tuple[SymbolChange, ...]:
    if not written.is_whole or max(len(written.before or ""), len(written.after)) > _LARGEST:
        return ()
    found = [
        SymbolChange(
            *(each.change, each.kind, each.name[:_LONGEST_NAME]),
            *(each.signature[:_LONGEST_SIGNATURE], each.line),
        )
        for each in _compare_items(path, written)
        if each.name and each.kind != "impl"
    ]
    return tuple(found[:most])


def forget() -> None:
    """Clear the cache of parsed files."""
    _known.clear()


_known: dict[tuple[str, bytes], "ParsedFile | None"] = {}
"""Files as parsed after a write: the old version of the next write."""


def _compare_items(path: str, written: FileContents) -> "list[ItemChange]":
    from ctx.code import item_changes as compared

    after = written.after.encode("utf-8", "replace")
    old = None
    if written.before is not None:
        before = written.before.encode("utf-8", "replace")
        key = _key(path, before)
        old = _known.pop(key) if key in _known else _read(path, before)
        if old and not old.problems and (edit := _edit_of_one(path, old, before, after)):
            _keep(path, after, edit.file)
            return [
                each._replace(line=each.line + edit.line)
                for each in compared.compare_files(edit.old, edit.new)
            ]
    new = _read(path, after)
    _keep(path, after, new)
    if new is None or (new.problems and not (old and old.problems)):
        return []
    return compared.compare_files(old, new)


def _keep(path: str, content: bytes, found: "ParsedFile | None") -> None:
    while len(_known) >= _MOST_KNOWN:
        del _known[next(iter(_known))]
    _known[_key(path, content)] = found


def _key(path: str, content: bytes) -> tuple[str, bytes]:
    return path, blake2b(content, digest_size=16).digest()


def _read(path: str, content: bytes) -> "ParsedFile | None":
    """The items of a file; None if its language is not supported."""
    from ctx.code import language_detection, source_parser

    name = language_detection.language_of(path, content[: language_detection.HEAD])
    if name not in GRAMMARS or language_detection.unfit(
        path, content, language_detection.FileLimits(_LARGEST)
    ):
        return None
    return source_parser.parse_items(path, content, name)


# One item of a file


class _Edit(NamedTuple):
    """A change inside one item."""

    old: "ParsedFile"
    new: "ParsedFile"
    """The item alone, before and after."""
    line: int
    """How many lines of the file come before it."""
    file: "ParsedFile"
    """The whole file as it is now."""


def _edit_of_one(path: str, old: "ParsedFile", before: bytes, after: bytes) -> _Edit | None:
    from ctx.code import source_parser

    first, last = _common(before, after)
    shift = len(after) - len(before)
    place, end = _enclosing_item(old.items, first, len(before) - last)
    if not place:
        return None
    item = old.items[place]
    if (item.end - item.start) * _LARGE_ITEM_FACTOR > len(before):
        return None
    alone = source_parser.parse_items(path, before[item.start : item.end], old.language)
    own = old.items[place:end]
    if alone.problems or [_content(each) for each in alone.items[1:]] != [
        (*_content(each)[:-1], _content(each)[-1] - item.line + 1) for each in own
    ]:
        return None
    new = source_parser.parse_items(path, after[item.start : item.end + shift], old.language)
    if new.problems or not new.items[1:] or new.items[1].start != alone.items[1].start:
        return None
    return _Edit(alone, new, item.line - 1, _splice_items(old, new, place, end, shift))


def _content(item: "SourceItem") -> tuple[str, str, str, bytes, int]:
    return item.kind, item.name, item.signature, item.body_hash, item.line


def _enclosing_item(items: Sequence[SourceItem], first: int, last: int) -> tuple[int, int]:
    """The top-level item that strictly contains some bytes, and the end of its children; zeros if
    there is none."""
    tops = [number for number, item in enumerate(items) if item.parent == 0 and number]
    for number, place in enumerate(tops):
        item = items[place]
        if item.start < first and last < item.end:
            end = tops[number + 1] if number + 1 < len(tops) else len(items)
            return place, end
    return 0, 0


def _splice_items(
    old: "ParsedFile", new: "ParsedFile", place: int, end: int, shift: int
) -> "ParsedFile":
    """A file in which one item is replaced by others."""
    from ctx.code.source_model import ParsedFile

    item, more = old.items[place], len(new.items) - 1 - (end - place)
    lines = new.lines - (item.end_line - item.line + 1)
    file = replace(old.items[0], end=old.items[0].end + shift, end_line=old.lines + lines)
    inside = [
        replace(
            each,
            parent=each.parent + place - 1 if each.parent else 0,
            start=each.start + item.start,
            end=each.end + item.start,
            line=each.line + item.line - 1,
            end_line=each.end_line + item.line - 1,
        )
        for each in new.items[1:]
    ]
    behind = [
        replace(
            each,
            parent=each.parent + more if each.parent >= end else each.parent,
            start=each.start + shift,
            end=each.end + shift,
            line=each.line + lines,
            end_line=each.end_line + lines,
        )
        for each in old.items[end:]
    ]
    items = (file, *old.items[1:place], *inside, *behind)
    return ParsedFile(old.language, "", old.lines + lines, items)


def _common(one: bytes, other: bytes) -> tuple[int, int]:
    """The lengths of the common prefix, and of the common suffix of the rest."""
    most = min(len(one), len(other))
    first = _largest_size(lambda size: one[:size] == other[:size], most)
    last = _largest_size(
        lambda size: one[len(one) - size :] == other[len(other) - size :], most - first
    )
    return first, last


def _largest_size(is_same: Callable[[int], bool], most: int) -> int:
    """The largest size up to `most` for which a monotone condition holds."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if is_same(middle):
            least = middle
        else:
            most = middle - 1
    return least
