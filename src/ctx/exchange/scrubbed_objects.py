"""What an object says without something that is to go.

Fields of newer versions are kept, and records too: nothing is decoded but what holds text. Ids are
left alone, and an object that would not be readable any more is left as it is.
"""

from typing import Any

import msgspec

from ctx.errors import CtxError
from ctx.exchange.scrub_store import changed_record
from ctx.objects import codec
from ctx.objects.store import Kind, Object, blob, from_payload
from ctx.redaction.needle import Needle

_RECORD_LENGTH = 11
_FIXED = frozenset(
    {"session_id", "kind", "step_kind", "role", "stream", "label", "tool", "language", "severity"}
)
"""Fields that are no text, or by which others find the object."""
_ENCODER = msgspec.msgpack.Encoder()


def rewritten(found: Object, needle: Needle) -> Object | None:
    """The object without it; None where it holds none of it."""
    if found.kind is Kind.BLOB:
        text = found.payload.decode("utf-8", "surrogateescape")
        after = needle.scrubbed(text)
        return blob(after.encode("utf-8", "surrogateescape")) if after != text else None
    try:
        name, version, fields = msgspec.msgpack.decode(found.payload)
        changed = _fields(name, fields, needle)
        if changed == fields:
            return None
        payload = _ENCODER.encode((name, version, changed))
        before, after_value = codec.decode(found.payload), codec.decode(payload)
    except (msgspec.MsgspecError, CtxError, UnicodeError, RecursionError, ValueError, TypeError):
        return None
    # A word may be one of those that the format itself is made of.
    return from_payload(Kind.TYPED, payload) if type(before) is type(after_value) else None


def _fields(name: str, fields: Any, needle: Needle) -> Any:
    if name == "record_batch" and isinstance(fields, dict):
        said = fields.get("records", ())
        return {**fields, "records": [_record(each, needle) for each in said]}
    if name == "tree" and isinstance(fields, dict):
        return {**fields, "entries": _entries(fields.get("entries", ()), needle)}
    return _value(fields, needle)


def _record(record: Any, needle: Needle) -> Any:
    if isinstance(record, list) and len(record) >= _RECORD_LENGTH:
        texts = [each for n, each in enumerate(record[:_RECORD_LENGTH]) if n not in (1, 7)]
        if all(isinstance(each, str) for each in texts):
            return changed_record(record, needle) or record
    # Nobody reads what is no record. It is kept without this all the same.
    return _value(record, needle)


def _entries(entries: Any, needle: Needle) -> Any:
    """The entries of a folder under their new names, in order, each name once."""
    named: dict[str, Any] = {}
    for entry in entries:
        name = after = needle.name(entry["name"])
        number = 1
        while after in named:
            number += 1
            after = f"{name}-{number}"
        named[after] = {**entry, "name": after}
    return [named[name] for name in sorted(named)]


def _value(value: Any, needle: Needle, key: str = "") -> Any:
    match value:
        case str() if key not in _FIXED:
            return needle.name(value) if key == "path" else needle.scrubbed(value)
        case list():
            return [_value(each, needle, key) for each in value]
        case dict():
            return {name: _value(each, needle, str(name)) for name, each in value.items()}
        case _:
            return value
