"""Removes a text from the objects of a project.

Objects do not change; a replacement is read in their place (`objects/replaced_objects.py`), so
that commit ids stay valid. The replacement keeps ids, unknown records and fields of newer versions.
Words of the format itself, such as kinds, are kept too, and so is an object that would become
unreadable. Both are reported.
"""

import os
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from ctx import clock, disk
from ctx.errors import CtxError
from ctx.exchange.scrub_store import changed_record
from ctx.ids import ObjectId
from ctx.objects import codec, object_types
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import Kind, Object, blob, from_payload
from ctx.objects.repository import Repository
from ctx.objects.staged_objects import StagedStore
from ctx.redaction.needle import Needle

_RECORD_LENGTH = 11
_NAMES = frozenset(
    {"path", "session_id", "stream", "role", "tool", "kind", "step_kind", "severity"}
)
"""Fields with names, which must not contain brackets."""
_FIXED = frozenset({"label", "language", "visibility"})
"""Fields with words of the format."""
_WORDS = frozenset(
    str(word)
    for kinds in vars(object_types).values()
    if isinstance(kinds, type) and issubclass(kinds, StrEnum)
    for word in kinds
).union(("main", "work", "overview", "decision", "log", "task", "doc"))
"""Words of the format in fields with names."""
_ENCODER = msgspec.msgpack.Encoder()


class MatchingObjects(NamedTuple):
    """The objects that match, and unreadable files."""

    objects: dict[ObjectId, Object]
    """The replacement of each."""
    files: tuple[str, ...]
    """All files that contain them, including second copies."""
    kept: tuple[str, ...]
    """Files with objects that contain it and cannot be replaced."""
    unreadable: tuple[str, ...]


def find_objects(
    store: LooseStore, needle: Needle, tick: clock.Tick = clock.no_tick
) -> MatchingObjects:
    """Find the objects of a store that must be replaced."""
    found: dict[ObjectId, Object] = {}
    files: list[str] = []
    kept: list[str] = []
    unreadable: list[str] = []
    every = list(store.files())
    for number, path in enumerate(every):
        tick(number, len(every))
        if not os.path.getsize(path):
            continue
        inside = store.inside(path)
        if not inside:
            unreadable.append(path)
        for item in inside:
            after = found.get(item.id) or rewritten_object(item, needle)
            if after is not None and after.id != item.id:
                found[item.id] = after
                if path not in files[-1:]:
                    files.append(path)
            if path not in kept[-1:] and _is_in(after or item, needle):
                kept.append(path)
    return MatchingObjects(found, tuple(files), tuple(kept), tuple(unreadable))


def replace_objects(repository: Repository, store: LooseStore, held: MatchingObjects) -> None:
    """Replace the objects. The caller holds the project's lock.

    The replacement is made durable first, then the name that leads to it, and then the old file is
    removed. A crash leaves one object too many, which the next scrub removes.
    """
    if not held.objects:
        return
    store.write(held.objects.values())
    repository.replaced.note((old, new.id) for old, new in held.objects.items())
    repository.note_as_own(new.id for new in held.objects.values())
    with disk.explain_errors("removing objects"):
        for path in held.files:
            id = store.id_of_file(path)
            if id is not None and id not in held.objects:
                # It shares a file with others, and gets its own now.
                store.rewrite([store.read_file(path)])
            elif isinstance(store, StagedStore):
                disk.discard(path)
            else:
                disk.replace(path, b"", durable_name=False)
        for folder in sorted({os.path.dirname(path) for path in held.files}):
            disk.sync_folder(folder)


def rewritten_object(stored: Object, needle: Needle) -> Object | None:
    """The object without the text; None if it does not contain it."""
    if stored.kind is Kind.BLOB:
        text = stored.payload.decode("utf-8", "surrogateescape")
        after = needle.scrubbed(text)
        return blob(after.encode("utf-8", "surrogateescape")) if after != text else None
    try:
        name, version, fields = msgspec.msgpack.decode(stored.payload)
        changed = _scrubbed_fields(name, fields, needle)
        if changed == fields:
            return None
        payload = _ENCODER.encode((name, version, changed))
        before, after_value = codec.decode(stored.payload), codec.decode(payload)
    except (msgspec.MsgspecError, CtxError, UnicodeError, RecursionError, ValueError, TypeError):
        return None
    # The text may be a word of the format itself.
    return from_payload(Kind.TYPED, payload) if type(before) is type(after_value) else None


def _is_in(stored: Object, needle: Needle) -> bool:
    """Whether an object contains it anywhere, also in words of the format."""
    if needle.is_rules:
        return False
    if stored.kind is Kind.BLOB:
        return needle.is_in_bytes(stored.payload)
    try:
        value = msgspec.msgpack.decode(stored.payload)
        return any(map(needle.is_in, _strings(value)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return needle.is_in_bytes(stored.payload)


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bytes():
            yield value.decode("utf-8", "surrogateescape")
        case list():
            for nested in value:
                yield from _strings(nested)
        case dict():
            for name, nested in value.items():
                yield str(name)
                yield from _strings(nested)


def _scrubbed_fields(name: str, fields: Any, needle: Needle) -> Any:
    if name == "record_batch" and isinstance(fields, dict):
        records = fields.get("records", ())
        return {**fields, "records": [_scrubbed_record(record, needle) for record in records]}
    if name == "tree" and isinstance(fields, dict):
        return {**fields, "entries": _renamed_entries(fields.get("entries", ()), needle)}
    return _scrubbed_value(fields, needle)


def _scrubbed_record(record: Any, needle: Needle) -> Any:
    if isinstance(record, list) and len(record) >= _RECORD_LENGTH:
        texts = [field for n, field in enumerate(record[:_RECORD_LENGTH]) if n not in (1, 7)]
        if all(isinstance(text, str) for text in texts):
            return changed_record(record, needle) or record
    # Readers skip an invalid record, but it is kept, so it is scrubbed too.
    return _scrubbed_value(record, needle)


def _renamed_entries(entries: Any, needle: Needle) -> Any:
    """The entries of a tree under their new names, sorted and without duplicates."""
    named: dict[str, Any] = {}
    for entry in entries:
        name = after = needle.name(entry["name"])
        number = 1
        while after in named:
            number += 1
            after = f"{name}-{number}"
        named[after] = {**entry, "name": after}
    return [named[name] for name in sorted(named)]


def _scrubbed_value(value: Any, needle: Needle, key: str = "") -> Any:
    match value:
        case str() if key in _NAMES:
            return value if value in _WORDS and key != "path" else needle.name(value)
        case str() if key not in _FIXED:
            return needle.scrubbed(value)
        case list():
            return [_scrubbed_value(nested, needle, key) for nested in value]
        case dict():
            return {
                name: _scrubbed_value(nested, needle, str(name)) for name, nested in value.items()
            }
        case _:
            return value
