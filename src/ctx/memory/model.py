"""The values of the graph (nodes, edges, views) and their vocabulary.

The values are plain tuples: every command that shows a node loads this module, and anything heavier
would slow down each start.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
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
"""The types of nodes that represent something in the code."""
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
REMOVED_COMMAND = "command:removed"
"""On a node whose text is a command that no context names, though sessions run it."""
WRONG, USELESS = "verdict:wrong", "verdict:useless"
"""What the user said about something that agents were given: about a node, or on a node with the
text of a passage or a command. Agents are not given it again; what is useless, only with a prompt
that names its subject."""
JUDGED = "judged"
"""The key of the metadata of a node with the text of such a passage or command; the value
identifies it (`operations/verdicts.py`)."""
TIERS = (PINNED, WORKING, REFERENCE, OFF_CONTEXT)
"""The strongest first. A node can be pinned and have one of the other tiers."""

DEFAULT_VIEW = "default"
DEFAULT_QUERY = "tag:tier:pinned OR tag:tier:reference OR tag:tier:working"

SMALLEST_BUDGET, LARGEST_BUDGET = 100, 10_000_000

LARGE_CONTENT = 50_000
"""More characters than this cause a warning: the node fills a context by itself."""
LARGEST_CONTENT = 64 * 1024 * 1024

CERTAIN = 1000

_LONGEST_TAG = 200
_TAG_SEPARATORS = frozenset(",\"()'`")


class Node(NamedTuple):
    """One piece of knowledge. The field names are those of the table and of the JSON."""

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
    """The store that holds it: `user` or `project`."""
    staged: str | None = None
    """The session that has staged records about it."""
    source: str = "user"
    """Who said it: `user`, `agent`, `repository`, `tool output` or `web` (`memory/sources.py`)."""


class Edge(NamedTuple):
    """A typed, directed relation. The metadata holds its `Evidence`."""

    id: Ulid
    from_id: NodeId
    to_id: NodeId
    type: str
    created_at: str
    metadata: Mapping[str, Any]


class Evidence(NamedTuple):
    """The evidence for an edge."""

    tool: str
    """The source: `cli` for a person's command, the agent, the parser."""
    confidence: int = CERTAIN
    """In per mille."""
    reason: str = ""
    commit: str = ""
    span: str = ""
    blob: str = ""

    def metadata(self) -> dict[str, Any]:
        """The evidence as it is stored, without empty fields."""
        return {name: value for name, value in self._asdict().items() if value != ""}


class Draft(NamedTuple):
    """A node of another program that is being imported."""

    id: NodeId
    """The same each time the same item is read, so that nothing is imported twice."""
    type: str
    content: str
    created_at: str
    updated_at: str
    summary: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    edges: tuple[tuple[str, NodeId], ...] = ()
    """Type and target of its outgoing edges."""
    tagged_at: Mapping[str, str] = {}
    """When a tag was added, if that differs from `created_at`."""


class View(NamedTuple):
    """A named query with a budget."""

    name: str
    query: str
    budget: int | None
    """None: `view.default_budget` of the configuration."""
    created_at: str
    updated_at: str


class Redaction(NamedTuple):
    """A redacted secret: its place and the rule that matched."""

    where: str
    rule: str
    line: int


def node_type(word: str) -> str:
    """Normalise and check a node type: any case, `-` or `_`."""
    spelled = word.strip().lower().replace("_", "-")
    if spelled not in NODE_TYPES:
        raise UsageError(
            f"There is no node type {word[:80]!r}.", hint=_did_you_mean(spelled, NODE_TYPES)
        )
    return spelled


def edge_type(word: str) -> str:
    """Normalise and check an edge type: `DependsOn` and `depends-on` give `DEPENDS_ON`."""
    if word in EDGE_TYPES:
        return word
    import re

    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word.strip())
    spelled = re.sub(r"[\s_-]+", "_", spaced).upper()
    if spelled not in EDGE_TYPES:
        raise UsageError(
            f"There is no edge type {word[:80]!r}.", hint=_did_you_mean(spelled, EDGE_TYPES)
        )
    return spelled


def is_tag(word: str) -> bool:
    """Whether a word is a tag in its normal form."""
    try:
        return tag(word) == word
    except UsageError:
        return False


@lru_cache(maxsize=1 << 12)
def tag(word: str) -> str:
    """Normalise and check a tag: `namespace:value` or a plain word."""
    spelled = spelling(word.strip())
    if (
        not spelled
        or len(spelled) > _LONGEST_TAG
        or spelled.startswith(":")
        or spelled.endswith((":", "*"))
        or not spelled.isprintable()
        or any(character.isspace() or character in _TAG_SEPARATORS for character in spelled)
    ):
        raise UsageError(
            f"{word[:80]!r} cannot be a tag.",
            hint="A tag is namespace:value or a word, without spaces, commas and quotes, and does"
            " not end with `*`.",
        )
    if spelled.lower().startswith("tier:") and spelled not in TIERS:
        raise UsageError(f"There is no tier {spelled[:80]!r}.", hint=_did_you_mean(spelled, TIERS))
    return spelled


def project_tag(project: str | None) -> str | None:
    """The tag of a project's nodes in the user store; None outside of projects.

    A folder may have a name that no tag can have: its nodes belong to no project.
    """
    try:
        return tag(f"project:{project}") if project else None
    except UsageError:
        return None


def view_name(word: str) -> str:
    """Check the name of a view."""
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
    """The canonical spelling of a tag: spellings that look the same are equal."""
    if word.isascii():
        return word
    import unicodedata

    return unicodedata.normalize("NFC", word)


def tier(tags: Iterable[str]) -> str | None:
    """The strongest of a node's tiers."""
    return next((known for known in TIERS if known in tags), None)


def tags(words: Iterable[str]) -> list[str]:
    """Check tags that are added together: no duplicates, at most one tier besides the pin."""
    spelled = list(dict.fromkeys(tag(word) for word in words))
    if len([word for word in spelled if word in TIERS[1:]]) > 1:
        raise UsageError(
            "A node can have only one tier besides the pin.",
            hint=f"Give one of {', '.join(TIERS[1:])}; `ctx pin` pins it.",
        )
    return spelled


def replaced_tiers(present: Iterable[str], added: Iterable[str]) -> list[str]:
    """The tiers that added tiers replace: a node has at most one besides the pin."""
    new = set(added)
    if not new.intersection((WORKING, REFERENCE, OFF_CONTEXT)):
        return []
    return [old for old in TIERS[1:] if old in present and old not in new]


def content(text: str) -> str:
    """Check a node's text and strip the white space around it."""
    stripped = text.strip()
    if not stripped:
        raise ContentRefused("There is no content.", hint="Give some text.")
    if "\0" in stripped:
        raise ContentRefused(
            "The content has NUL bytes in it, so it is not text.",
            hint="Leave a binary file where it is, and add a note about it.",
        )
    if len(stripped) > LARGEST_CONTENT:
        raise ContentRefused(
            f"The content has {len(stripped):,} characters; the limit is {LARGEST_CONTENT:,}.",
            hint="Keep it as a file, and add what matters about it.",
        )
    # Arguments that are not UTF-8 arrive as lone surrogates, which cannot be stored.
    stripped.encode("utf-8")
    return stripped


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1)
    start = f"Did you mean `{close[0]}`? " if close else ""
    return f"{start}There are: {', '.join(known)}."


def from_json(text: str) -> dict[str, Any]:
    """Parse metadata. Most are empty, and then the json module is not imported."""
    if text == "{}":
        return {}
    import json

    try:
        value = json.loads(text)
    except ValueError:
        # `as_json` wrote it, so the file is damaged.
        from sqlite3 import DatabaseError

        raise DatabaseError("there is a value that is not JSON") from None
    return value if isinstance(value, dict) else {}
