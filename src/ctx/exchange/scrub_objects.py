"""Removes a text from the objects of a project.

Objects do not change; a replacement is read in their place (`objects/replaced_objects.py`), so
that commit ids stay valid. The replacement keeps ids, unknown records and fields of newer versions;
an object that would become unreadable is left unchanged.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ctx import clock, disk
from ctx.errors import CtxError
from ctx.exchange.scrub_store import changed_record
from ctx.ids import ObjectId
from ctx.objects import codec
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import Kind, Object, blob, from_payload
from ctx.objects.repository import Repository
from ctx.objects.staged_objects import StagedStore
from ctx.redaction.needle import Needle

_RECORD_LENGTH = 11
_FIXED = frozenset(
    {"session_id", "kind", "step_kind", "role", "stream", "label", "tool", "language", "severity"}
)
"""Fields that are not free text, or that identify the object."""
_ENCODER = msgspec.msgpack.Encoder()

_Rewrite = Callable[[Object], Object | None]
"""The replacement of an object; None if it can stay."""


class MatchingObjects(NamedTuple):
    """The objects that match, and unreadable files."""

    objects: dict[ObjectId, Object]
    """The replacement of each."""
    files: tuple[str, ...]
    """All files that contain them, including second copies."""
    unreadable: tuple[str, ...]


def find_objects(
    store: LooseStore, rewritten: _Rewrite, tick: clock.Tick = clock.no_tick
) -> MatchingObjects:
    """Find the objects of a store that must be replaced."""
    found: dict[ObjectId, Object] = {}
    files: list[str] = []
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
            after = found.get(item.id) or rewritten(item)
            if after is not None and after.id != item.id:
                found[item.id] = after
                if path not in files[-1:]:
                    files.append(path)
    return MatchingObjects(found, tuple(files), tuple(unreadable))


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
    with disk.explained("removing objects"):
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
        case str() if key not in _FIXED:
            return needle.name(value) if key == "path" else needle.scrubbed(value)
        case list():
            return [_scrubbed_value(nested, needle, key) for nested in value]
        case dict():
            return {
                name: _scrubbed_value(nested, needle, str(name)) for name, nested in value.items()
            }
        case _:
            return value
