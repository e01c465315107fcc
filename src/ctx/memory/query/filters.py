"""The filters of the query language and their values."""

from collections.abc import Callable
from typing import NamedTuple

from ctx import ids
from ctx.errors import QueryInvalid, UsageError
from ctx.memory import model
from ctx.memory.query import time_filters
from ctx.memory.query.syntax import FILTERS, Token, invalid, on_one_line
from ctx.memory.query.time_filters import Comparison, TimeFilter

PROJECT = "project:"
TASK = "task:"
HAS = ("summary", "edges", "tags", "metadata", "superseded")
LONGEST_VALUE = 1000

_MOST_DIGITS = 15
_ID_LENGTH = 26


class TypeFilter(NamedTuple):
    type: str


class TagFilter(NamedTuple):
    tag: str


class TagPrefixFilter(NamedTuple):
    prefix: str


class TokensFilter(NamedTuple):
    comparison: Comparison
    number: int


class HasFilter(NamedTuple):
    what: str


class LinkedFrom(NamedTuple):
    """With an edge from a node with this id prefix."""

    prefix: str


class LinkedTo(NamedTuple):
    """With an edge to a node with this id prefix."""

    prefix: str


class SessionFilter(NamedTuple):
    id: str


class PathFilter(NamedTuple):
    pattern: str


class IdFilter(NamedTuple):
    prefix: str


class OtherNameFilter(NamedTuple):
    """Tagged in a namespace, but not with this name. Only the scope of a query uses it."""

    namespace: str
    name: str


# Tuples of different classes may be equal: tell them apart by their class, never by `==`.
Filter = (
    TypeFilter
    | TagFilter
    | TagPrefixFilter
    | TimeFilter
    | TokensFilter
    | HasFilter
    | LinkedFrom
    | LinkedTo
    | SessionFilter
    | PathFilter
    | IdFilter
    | OtherNameFilter
)


def read(text: str, token: Token) -> Filter:
    """Parse and check the filter of a token."""
    if token.name not in FILTERS:
        raise _unknown(text, token)
    if not token.is_closed:
        sentence, hint = "This quote is not closed.", 'Inside quotes, write \\" for a quote.'
        raise invalid(text, token.value_start, token.value_start + 1, sentence, hint)
    try:
        return _READERS[token.name](_checked_value(token))
    except UsageError as error:
        # An empty value has no position of its own, so the error marks the whole filter.
        start = token.value_start if token.value else token.start
        raise invalid(text, start, token.end, error.message, error.hint) from None


def _unknown(text: str, token: Token) -> QueryInvalid:
    value = on_one_line(token.value[:80])
    tag = f"{token.name}:{value}"
    quoted = f'"{tag}"' if " " in tag else tag
    near = _nearest(token.name, FILTERS)
    hint = f"Did you mean `{near}:{value}`?" if near else f"There are: {', '.join(FILTERS)}."
    return invalid(
        text,
        token.start,
        token.start + len(token.name),
        f"There is no filter `{token.name[:80]}`; for a tag write `tag:{quoted}`.",
        f"{hint} In quotes it is words to search for.",
    )


def _checked_value(token: Token) -> str:
    if not token.value:
        raise UsageError(f"`{token.name}:` has no value.", hint=_EXAMPLES[token.name])
    if len(token.value) > LONGEST_VALUE:
        raise UsageError(f"A value has at most {LONGEST_VALUE:,} characters.")
    try:
        token.value.encode()
    except UnicodeEncodeError:
        raise UsageError("This value is not valid UTF-8.") from None
    return token.value


def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word.lower(), known, n=1)), None)


def _tag(value: str) -> TagFilter | TagPrefixFilter:
    value = model.spelling(value)
    return TagPrefixFilter(value[:-1]) if value.endswith("*") else TagFilter(value)


def _tokens(value: str) -> TokensFilter:
    comparison, number = time_filters.comparison(value)
    if len(number) > _MOST_DIGITS or not number.isascii() or not number.isdigit():
        raise UsageError(f"{number[:80]!r} is not a number of tokens.", hint=_EXAMPLES["tokens"])
    return TokensFilter(comparison, int(number))


def _has(value: str) -> HasFilter:
    if value not in HAS:
        near = _nearest(value, HAS)
        start = f"Did you mean `{near}`? " if near else ""
        raise UsageError(
            f"`has:` does not know {value[:80]!r}.", hint=f"{start}There are: {', '.join(HAS)}."
        )
    return HasFilter(value)


def _id(value: str) -> str:
    prefix = value.upper()
    if len(prefix) < ids.SHORTEST_PREFIX or not ids.is_ulid(prefix.ljust(_ID_LENGTH, "0")):
        raise UsageError(
            f"{value[:80]!r} is not an id or its beginning.",
            hint=f"Give its first {ids.SHORTEST_PREFIX} characters or more, as `ctx list` does.",
        )
    return prefix


_EXAMPLES = {
    "type": f"Give one of: {', '.join(model.NODE_TYPES)}.",
    "tag": "For example `tag:tier:pinned`, or `tag:task:*` for all that begin so.",
    "created": time_filters.HINT,
    "updated": time_filters.HINT,
    "tokens": "For example `tokens:<1000`.",
    "has": f"Give one of: {', '.join(HAS)}.",
    "from": "Give an id, as `ctx list` shows it.",
    "to": "Give an id, as `ctx list` shows it.",
    "session": "Give the id of a session.",
    "project": "For example `project:shop`.",
    "path": "For example `path:src/net`, or `path:src/*.py`.",
    "id": "Give an id, as `ctx list` shows it.",
}
_READERS: dict[str, Callable[[str], Filter]] = {
    "type": lambda value: TypeFilter(model.node_type(value)),
    "tag": _tag,
    "created": lambda value: time_filters.read("created_at", value),
    "updated": lambda value: time_filters.read("updated_at", value),
    "tokens": _tokens,
    "has": _has,
    "from": lambda value: LinkedFrom(_id(value)),
    "to": lambda value: LinkedTo(_id(value)),
    "session": lambda value: SessionFilter(ids.session_id(value)),
    "project": lambda value: _tag(PROJECT + value),
    "path": PathFilter,
    "id": lambda value: IdFilter(_id(value)),
}
