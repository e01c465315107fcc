"""What every reader hands on, and how it takes text, times and lists as it finds them."""

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
    """Something that does not come in."""

    what: str
    reason: str


class LocatedDraft(NamedTuple):
    """A draft whose place in the source cannot be told from itself."""

    place: str
    """Such as `line 7`."""
    draft: Draft


class CompletePage(NamedTuple):
    """A page that was read to its end: nodes of it that are not among these, it says no more."""

    path: str
    tags: tuple[str, ...]
    """Those that every node of it was given."""
    node_ids: frozenset[NodeId]


Item = Draft | LocatedDraft | CompletePage | Edge | View | SkippedItem


class ForeignSource(NamedTuple):
    """A source that is open."""

    program: str
    total: int
    """How many items there are, as far as can be told beforehand."""
    items: Iterator[Item]


YEAR_10000 = 253_402_300_800_000
_LARGEST_EPOCH_IN_SECONDS = 100_000_000_000
_DEEPEST = 50
_TIME_LENGTH = 10
_NO_TIME = "0" * _TIME_LENGTH
_UNFIT_IN_TEXT = re.compile("[\0\ud800-\udfff]")
_UNFIT_IN_TAG = re.compile(r"[\s,\"()'`]+")


def text(value: object) -> str:
    """A database's value as text. What is not UTF-8 stays recognisable as such."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)


def cleaned(value: str) -> tuple[str, int]:
    """A text without what no text may hold, and how much of that there was.

    NUL characters, and the halves of characters that bytes which are not UTF-8 turn into.
    """
    return _UNFIT_IN_TEXT.subn("\ufffd", value)


def cleaned_value(value: Any, depth: int = 0) -> tuple[Any, int]:
    """The same for a value on its way to be JSON, of which nothing very deep is kept.

    What JSON has no word for is kept as text: bytes, and numbers that are not finite. Those come
    from `1e999` too, which is JSON when it is read and would be none when it is written.
    """
    if isinstance(value, str):
        return cleaned(value)
    if depth == _DEEPEST and isinstance(value, dict | list):
        return "…", 0
    if isinstance(value, dict):
        pairs = [(cleaned(str(key)), cleaned_value(each, depth + 1)) for key, each in value.items()]
        count = sum(key[1] + each[1] for key, each in pairs)
        return {key[0]: each[0] for key, each in pairs}, count
    if isinstance(value, list | tuple):
        parts = [cleaned_value(each, depth + 1) for each in value]
        return [each[0] for each in parts], sum(each[1] for each in parts)
    if value is None or isinstance(value, int):
        return value, 0
    if isinstance(value, float) and math.isfinite(value):
        return value, 0
    return cleaned(text(value))


def moment(*values: object) -> int | None:
    """The first of some values that is a time, in milliseconds since 1970.

    Programs write seconds, milliseconds or text; 0 is what they write for none.
    """
    for value in values:
        # Eight digits may be a date.
        if isinstance(value, str) and value.isdecimal() and 8 < len(value) < 25:
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found = _epoch(value)
        else:
            found = clock.parse_iso(text(value))
        if found is not None and 0 < found < YEAR_10000:
            return found
    return None


def _epoch(value: float) -> int | None:
    """Seconds, or thousandths, millionths or billionths of them."""
    if not abs(value) < _LARGEST_EPOCH_IN_SECONDS * 10**9:
        return None
    if abs(value) < _LARGEST_EPOCH_IN_SECONDS:
        return int(value * 1000)
    number = int(value)
    while abs(number) >= _LARGEST_EPOCH_IN_SECONDS * 1000:
        number //= 1000
    return number


def iso(ms: int | None) -> str:
    """A time as we write it; empty where the source knows none."""
    return "" if ms is None else clock.iso(ms)


def derived_id(ms: int | None, *parts: object) -> NodeId:
    """The id of what another program calls by these parts.

    Where no time belongs to it, the id has none: `Intake` gives it one, or finds the one that it
    was given before.
    """
    return NodeId(ids.derived_ulid(ms or 0, "\0".join(text(part) for part in parts)))


def is_untimed(node_id: str) -> bool:
    return node_id.startswith(_NO_TIME)


def untimed(node_id: str) -> str:
    """The part of an id that says what it names, and not when."""
    return node_id[_TIME_LENGTH:]


def timed(node_id: str, ms: int) -> NodeId:
    """The id of the same thing, with a time."""
    return NodeId(ids.Ulid(ids.derived_ulid(ms, "")[:_TIME_LENGTH] + untimed(node_id)))


def kept_id(value: str, ms: int | None, *parts: object) -> NodeId:
    """An id that is one of ours already, else one that is derived from it."""
    upper = value.strip().upper()
    return NodeId(ids.Ulid(upper)) if ids.is_ulid(upper) else derived_id(ms, *parts, value)


@lru_cache(maxsize=1 << 12)
def tag(word: str) -> str | None:
    """A tag as near to the given one as ours may be; None where nothing is left of it."""
    try:
        return model.tag(word)
    except UsageError:
        import unicodedata

        visible = "".join(character if character.isprintable() else " " for character in word)
        composed = unicodedata.normalize("NFC", visible.strip())
        found = _UNFIT_IN_TAG.sub("-", composed)[:200].strip("-:*")
        if found.lower().startswith("tier:"):
            found = found.replace(":", "-", 1)
        return found or None


def tags(*words: str) -> tuple[str, ...]:
    """Those of the words that can be tags, each once. `name:` without a value is none."""
    found = (tag(word) for word in words if not word.rstrip().endswith(":"))
    return tuple(dict.fromkeys(word for word in found if word))


def listed(value: object) -> list[Any]:
    """A list that was written as JSON; a text that is no JSON is a list of itself."""
    written = text(value).strip()
    if not written:
        return []
    found = json_value(written)
    if isinstance(found, list):
        return found
    return [written] if found is None else [found]


def words(value: object) -> list[str]:
    """The same as texts; what is no text stays JSON."""
    import json

    found = (
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        for each in listed(value)
        if each is not None
    )
    return [word.strip() for word in found if word.strip()]


def json_value(written: str | bytes) -> Any:
    """What a JSON text says; None where it is none, or none that can be kept."""
    import json

    try:
        return json.loads(written, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    """NaN and its like are no JSON, and would make ours unreadable for others."""
    raise ValueError(name)


def node_type(word: str) -> tuple[str, dict[str, str]]:
    """The nearest of our types, and, where it is another word, the metadata that keeps it."""
    plain = word.strip().lower().replace("_", "-").replace(" ", "-")
    if plain in model.NODE_TYPES:
        return plain, {}
    found = _NEAREST.get(plain, "observation")
    return found, {"original_type": word.strip()} if word.strip() else {}


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
