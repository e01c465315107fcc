"""The items that readers of other programs' formats return, and parsers for their values."""

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from ctx import clock, ids
from ctx.errors import UsageError
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.model import Draft, Edge, View


class SkippedItem(NamedTuple):
    """Something that is not imported."""

    what: str
    reason: str


class LocatedDraft(NamedTuple):
    """A draft with its place in the source."""

    place: str
    """Such as `line 7`."""
    draft: Draft


class CompletePage(NamedTuple):
    """A page that was read completely: its other nodes were removed from it."""

    path: str
    tags: tuple[str, ...]
    """The tags of all its nodes."""
    node_ids: frozenset[NodeId]


Item = Draft | LocatedDraft | CompletePage | Edge | View | SkippedItem


class ForeignSource(NamedTuple):
    """An open source."""

    program: str
    total: int
    """The number of items, as far as it is known in advance."""
    items: Iterator[Item]


YEAR_10000 = 253_402_300_800_000
_LARGEST_EPOCH_IN_SECONDS = 100_000_000_000
_DEEPEST = 50
_TIME_LENGTH = 10
_NO_TIME = "0" * _TIME_LENGTH
_UNFIT_IN_TEXT = re.compile("[\0\ud800-\udfff]")
_UNFIT_IN_TAG = re.compile(r"[\s,\"()'`]+")


def text(value: object) -> str:
    """A database value as text. Invalid UTF-8 is kept as surrogates."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)


def clean_text(value: str) -> tuple[str, int]:
    """A text without NUL characters and surrogates, and the number of replacements."""
    return _UNFIT_IN_TEXT.subn("\ufffd", value)


def cleaned_value(value: Any, depth: int = 0) -> tuple[Any, int]:
    """A value cleaned for JSON, without very deep nesting, and the number of replacements.

    Bytes and numbers that are not finite become text. `1e999`, for example, is valid JSON when it
    is read but not when it is written.
    """
    if isinstance(value, str):
        return clean_text(value)
    if depth == _DEEPEST and isinstance(value, dict | list):
        return "…", 0
    if isinstance(value, dict):
        pairs = [
            (clean_text(str(key)), cleaned_value(nested, depth + 1))
            for key, nested in value.items()
        ]
        count = sum(key[1] + pair[1] for key, pair in pairs)
        return {key[0]: pair[0] for key, pair in pairs}, count
    if isinstance(value, list | tuple):
        parts = [cleaned_value(nested, depth + 1) for nested in value]
        return [part[0] for part in parts], sum(part[1] for part in parts)
    if value is None or isinstance(value, int):
        return value, 0
    if isinstance(value, float) and math.isfinite(value):
        return value, 0
    return clean_text(text(value))


def moment(*values: object) -> int | None:
    """The first value that is a time, in milliseconds since 1970.

    Programs write seconds, milliseconds or text; 0 means none.
    """
    for value in values:
        # Eight digits may be a date.
        if isinstance(value, str) and value.isdecimal() and 8 < len(value) < 25:
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            ms = _epoch(value)
        else:
            ms = clock.parse_iso(text(value))
        if ms is not None and 0 < ms < YEAR_10000:
            return ms
    return None


def _epoch(value: float) -> int | None:
    """Milliseconds from seconds, milliseconds, microseconds or nanoseconds."""
    if not abs(value) < _LARGEST_EPOCH_IN_SECONDS * 10**9:
        return None
    if abs(value) < _LARGEST_EPOCH_IN_SECONDS:
        return int(value * 1000)
    number = int(value)
    while abs(number) >= _LARGEST_EPOCH_IN_SECONDS * 1000:
        number //= 1000
    return number


def iso(ms: int | None) -> str:
    """A time in our format; empty if the source has none."""
    return "" if ms is None else clock.iso(ms)


def derived_id(ms: int | None, *parts: object) -> NodeId:
    """The id of an item that another program identifies by these parts.

    An item without a time gets an id without one: `ItemImporter` adds a time, or finds the one
    that it added before.
    """
    return NodeId(ids.derived_ulid(ms or 0, "\0".join(text(part) for part in parts)))


def is_untimed(node_id: str) -> bool:
    return node_id.startswith(_NO_TIME)


def id_without_time(node_id: str) -> str:
    """The part of an id without the time."""
    return node_id[_TIME_LENGTH:]


def id_with_time(node_id: str, ms: int) -> NodeId:
    """The same id with a time."""
    return NodeId(ids.Ulid(ids.derived_ulid(ms, "")[:_TIME_LENGTH] + id_without_time(node_id)))


def kept_id(value: str, ms: int | None, *parts: object) -> NodeId:
    """A value that is already one of our ids, else an id derived from it."""
    upper = value.strip().upper()
    return NodeId(ids.Ulid(upper)) if ids.is_ulid(upper) else derived_id(ms, *parts, value)


@lru_cache(maxsize=1 << 12)
def tag(word: str) -> str | None:
    """The valid tag closest to a word; None if nothing is left of it."""
    try:
        return model.tag(word)
    except UsageError:
        import unicodedata

        visible = "".join(character if character.isprintable() else " " for character in word)
        composed = unicodedata.normalize("NFC", visible.strip())
        cleaned_tag = _UNFIT_IN_TAG.sub("-", composed)[:200].strip("-:*")
        if cleaned_tag.lower().startswith("tier:"):
            cleaned_tag = cleaned_tag.replace(":", "-", 1)
        return cleaned_tag or None


def tags(*words: str) -> tuple[str, ...]:
    """The tags made from words, without duplicates and without `name:` that has no value."""
    named = (tag(word) for word in words if not word.rstrip().endswith(":"))
    return tuple(dict.fromkeys(word for word in named if word))


def parse_list(value: object) -> list[Any]:
    """Parse a JSON list; other text becomes a list of one."""
    written = text(value).strip()
    if not written:
        return []
    parsed = json_value(written)
    if isinstance(parsed, list):
        return parsed
    return [written] if parsed is None else [parsed]


def words(value: object) -> list[str]:
    """Parse a JSON list of texts; other values stay JSON."""
    texts = (
        entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
        for entry in parse_list(value)
        if entry is not None
    )
    return [word.strip() for word in texts if word.strip()]


def json_value(written: str | bytes) -> Any:
    """Parse JSON; None if it is invalid."""
    try:
        return json.loads(written, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    """NaN and Infinity are not valid JSON and would make our output unreadable."""
    raise ValueError(name)


def node_type(word: str) -> tuple[str, dict[str, str]]:
    """The closest of our types, and metadata with the original type if it differs."""
    plain = word.strip().lower().replace("_", "-").replace(" ", "-")
    if plain in model.NODE_TYPES:
        return plain, {}
    nearest = _NEAREST.get(plain, "observation")
    return nearest, {"original_type": word.strip()} if word.strip() else {}


def edge_type(word: str) -> str:
    """Our edge type of this name, else `RELATES_TO`."""
    try:
        return model.edge_type(word)
    except UsageError:
        return "RELATES_TO"


_NEAREST = {
    "convention": "pattern",
    "rule": "pattern",
    "learning": "pattern",
    "preference": "fact",
    "knowledge": "fact",
    "memory": "fact",
    "reference": "fact",
    "idea": "hypothesis",
    "assumption": "hypothesis",
    "question": "open-question",
    "openquestion": "open-question",
    "todo": "task",
    "issue": "task",
    "document": "source",
    "doc": "source",
    "choice": "decision",
}
