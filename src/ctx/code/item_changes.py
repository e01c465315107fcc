"""The differences between two versions of a file: new, modified and deleted items.

Items are identified by their kind and by the names from the file inward. Among items that share
these, such as overloads, equal ones are paired first, then those with equal signatures, then the
rest in order.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from ctx.code.qualified_names import separator
from ctx.code.source_model import ParsedFile, SourceItem, path_in_file

Part = Literal["signature", "body"]


class ItemChange(NamedTuple):
    change: Literal["new", "modified", "deleted"]
    parts: tuple[Part, ...]
    """The parts that were modified."""
    kind: str
    name: str
    """The names from the file inward; empty for the file itself."""
    line: int
    """The current line; the old one if it is deleted."""
    signature: str
    old_signature: str
    """Set if it differs."""


Key = tuple[str, tuple[str, ...]]


def compare_files(old: ParsedFile | None, new: ParsedFile | None) -> list[ItemChange]:
    """The changes from one version of a file to another, in file order."""
    before, after = _by_key(old), _by_key(new)
    language = new.language if new else old.language if old else ""
    changes: list[ItemChange] = []
    for key in dict.fromkeys((*after, *before)):
        for one, other in _pairs(before.get(key, []), after.get(key, [])):
            if change := _change(key, one, other, separator(language)):
                changes.append(change)
    return sorted(changes, key=lambda change: (change.line, change.name, change.change))


def _by_key(parsed: ParsedFile | None) -> dict[Key, list[SourceItem]]:
    by_key: dict[Key, list[SourceItem]] = defaultdict(list)
    items = parsed.items if parsed else ()
    for place, item in enumerate(items):
        by_key[item.kind, path_in_file(items, place)].append(item)
    return by_key


def _pairs(
    old: list[SourceItem], new: list[SourceItem]
) -> Iterator[tuple[SourceItem | None, SourceItem | None]]:
    alike: tuple[Callable[[SourceItem], object], ...] = (
        lambda item: (item.signature, item.body_hash),
        lambda item: item.signature,
        lambda _: None,
    )
    for looks in alike:
        waiting: dict[object, deque[SourceItem]] = defaultdict(deque)
        for item in old:
            waiting[looks(item)].append(item)
        unmet = []
        for item in new:
            if same := waiting[looks(item)]:
                yield same.popleft(), item
            else:
                unmet.append(item)
        old, new = [item for same in waiting.values() for item in same], unmet
    yield from ((item, None) for item in old)
    yield from ((None, item) for item in new)


def _change(
    key: Key, old: SourceItem | None, new: SourceItem | None, joint: str
) -> ItemChange | None:
    kind, names = key
    name = joint.join(names)
    if old is None:
        assert new is not None
        return ItemChange("new", (), kind, name, new.line, new.signature, "")
    if new is None:
        return ItemChange("deleted", (), kind, name, old.line, old.signature, "")
    parts: list[Part] = []
    if old.signature_hash != new.signature_hash:
        parts.append("signature")
    if old.body_hash != new.body_hash:
        parts.append("body")
    if not parts:
        return None
    was = old.signature if "signature" in parts else ""
    return ItemChange("modified", tuple(parts), kind, name, new.line, new.signature, was)
