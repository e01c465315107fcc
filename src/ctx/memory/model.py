"""The values of the graph, and the words that may stand in them.

These are plain tuples: every command that shows a node loads this module, and anything heavier
would be felt at each start.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ctx.errors import ContentRefused, UsageError
from ctx.ids import NodeId, Ulid

KNOWLEDGE_TYPES = (
    "fact",
    "decision",
    "pattern",
    "observation",
    "hypothesis",
    "task",
    "summary",
    "source",
    "open-question",
)
ANCHOR_TYPES = ("file", "item", "package", "diagnostic")
"""What stands for a thing in the code."""
NODE_TYPES = KNOWLEDGE_TYPES + ANCHOR_TYPES

EDGE_TYPES = (
    "DEPENDS_ON",
    "DERIVED_FROM",
    "SUPERSEDES",
    "RELATES_TO",
    "CHILD_OF",
    "MENTIONS",
    "UPDATED_IN",
    "CONTAINS",
    "DEFINES",
    "HAS_VERSION",
    "IMPORTS",
    "REFERENCES",
    "CALLS",
    "IMPLEMENTS",
    "USES_TYPE",
    "TARGET_OF",
    "CRATE_FROM_TARGET",
)

PINNED = "tier:pinned"
WORKING = "tier:working"
REFERENCE = "tier:reference"
OFF_CONTEXT = "tier:off-context"
TIERS = (PINNED, WORKING, REFERENCE, OFF_CONTEXT)
"""The strongest first. A pin stands beside another tier; the others exclude each other."""

DEFAULT_VIEW = "default"
DEFAULT_QUERY = "tag:tier:pinned OR tag:tier:reference OR tag:tier:working"

SMALLEST_BUDGET, LARGEST_BUDGET = 100, 10_000_000

LARGE_CONTENT = 50_000
"""Characters above which a node is kept with a warning: it fills a context by itself."""
LARGEST_CONTENT = 64 * 1024 * 1024

CERTAIN = 1000

_LONGEST_TAG = 200
_TAG_SEPARATORS = frozenset(",\"()'`")


class Node(NamedTuple):
    """One piece of knowledge. The names of its fields are those of the table and of the JSON."""

    id: NodeId
    type: str
    content: str
    summary: str | None
    tags: tuple[str, ...]
    token_estimate: int
    superseded_by: NodeId | None
    created_at: str
    updated_at: str
    metadata: Mapping[str, Any]
    scope: str = "user"
    """Whose store holds it: `user` or `project`."""
    staged: str | None = None
    """The session in which something about it is staged, and not in a commit yet."""


class Edge(NamedTuple):
    """A typed, directed relation. What it rests on is in the metadata, as `Evidence` says."""

    id: Ulid
    from_id: NodeId
    to_id: NodeId
    type: str
    created_at: str
    metadata: Mapping[str, Any]


class Evidence(NamedTuple):
    """What an edge rests on."""

    tool: str
    """Who says so: `cli` for a person's command, the agent, the parser."""
    confidence: int = CERTAIN
    """In per mille."""
    reason: str = ""
    commit: str = ""
    span: str = ""
    blob: str = ""

    def metadata(self) -> dict[str, Any]:
        """As it is kept: what is empty is left out."""
        return {name: value for name, value in self._asdict().items() if value != ""}


class Draft(NamedTuple):
    """A node as another program had it, on its way in."""

    id: NodeId
    """The same each time the same thing is read, so that nothing comes in twice."""
    type: str
    content: str
    created_at: str
    updated_at: str
    summary: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    edges: tuple[tuple[str, NodeId], ...] = ()
    """Type and target of the edges that begin here."""
    tagged_at: Mapping[str, str] = {}
    """When it was given a tag, where that is not when it was made."""


class View(NamedTuple):
    """A named query with a budget."""

    name: str
    query: str
    budget: int | None
    """None: `view.default_budget` of the configuration."""
    created_at: str
    updated_at: str


class Redaction(NamedTuple):
    """A secret that was not written down: where it stood, and which rule knew it."""

    where: str
    rule: str
    line: int


def node_type(word: str) -> str:
    """The type that a person or an agent named, in any case and with either dash."""
    found = word.strip().lower().replace("_", "-")
    if found not in NODE_TYPES:
        raise UsageError(
            f"There is no node type {word[:80]!r}.", hint=_did_you_mean(found, NODE_TYPES)
        )
    return found


def edge_type(word: str) -> str:
    """`DEPENDS_ON`, also for `DependsOn`, `depends-on` and `depends on`."""
    import re

    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word.strip())
    found = re.sub(r"[\s_-]+", "_", spaced).upper()
    if found not in EDGE_TYPES:
        raise UsageError(
            f"There is no edge type {word[:80]!r}.", hint=_did_you_mean(found, EDGE_TYPES)
        )
    return found


def tag(word: str) -> str:
    """A tag as a person or an agent wrote it, checked: `namespace:value`, or a plain word."""
    found = spelling(word.strip())
    if (
        not found
        or len(found) > _LONGEST_TAG
        or found.startswith(":")
        or found.endswith((":", "*"))
        or not found.isprintable()
        or any(character.isspace() or character in _TAG_SEPARATORS for character in found)
    ):
        raise UsageError(
            f"{word[:80]!r} cannot be a tag.",
            hint="A tag is namespace:value or a word, without spaces, commas and quotes.",
        )
    if found.lower().startswith("tier:") and found not in TIERS:
        raise UsageError(f"There is no tier {found[:80]!r}.", hint=_did_you_mean(found, TIERS))
    return found


def view_name(word: str) -> str:
    """What a person wants to call a view, checked."""
    if (
        not 0 < len(word) <= 100
        or not word[0].isalnum()
        or any(not character.isalnum() and character not in "-_." for character in word)
    ):
        raise UsageError(
            f"{word[:80]!r} cannot name a view.",
            hint="Use up to 100 letters, digits, dashes, dots and underscores.",
        )
    return word


def spelling(word: str) -> str:
    """A tag as it is kept and asked for: two spellings that look the same are the same."""
    if word.isascii():
        return word
    import unicodedata

    return unicodedata.normalize("NFC", word)


def tier(tags: Iterable[str]) -> str | None:
    """The strongest of a node's tiers."""
    return next((known for known in TIERS if known in tags), None)


def tags(words: Iterable[str]) -> list[str]:
    """Tags that are given together: each once, and of the tiers beside the pin at most one."""
    found = list(dict.fromkeys(tag(word) for word in words))
    if len([each for each in found if each in TIERS[1:]]) > 1:
        raise UsageError(
            "A node has one tier beside the pin.",
            hint=f"Give one of {', '.join(TIERS[1:])}; `ctx pin` pins it.",
        )
    return found


def replaced_tiers(present: Iterable[str], added: Iterable[str]) -> list[str]:
    """The tiers that a node loses when it is given others: one beside the pin is enough."""
    given = set(added)
    if not given.intersection((WORKING, REFERENCE, OFF_CONTEXT)):
        return []
    return [old for old in TIERS[1:] if old in present and old not in given]


def content(text: str) -> str:
    """A node's text, checked, without the white space around it."""
    found = text.strip()
    if not found:
        raise ContentRefused("There is no content.", hint="Give it as an argument or by --stdin.")
    if "\0" in found:
        raise ContentRefused(
            "The content has NUL bytes in it, so it is not text.",
            hint="Keep a binary file where it is, and add a note about it.",
        )
    if len(found) > LARGEST_CONTENT:
        raise ContentRefused(
            f"The content has {len(found):,} characters, and {LARGEST_CONTENT:,} are the most.",
            hint="Keep it as a file, and add what matters about it.",
        )
    # What is not UTF-8 on the command line arrives as lone surrogates, which cannot be stored.
    found.encode("utf-8")
    return found


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(word, list(known), n=1)
    start = f"Did you mean `{found[0]}`? " if found else ""
    return f"{start}There are: {', '.join(known)}."


def from_json(text: str) -> dict[str, Any]:
    """Most are empty, and a command that only lists has no other use for the json module."""
    if text == "{}":
        return {}
    import json

    try:
        value = json.loads(text)
    except ValueError:
        # It was written by `as_json`, so the file has been damaged since.
        from sqlite3 import DatabaseError

        raise DatabaseError("there is a value that is not JSON") from None
    return value if isinstance(value, dict) else {}
