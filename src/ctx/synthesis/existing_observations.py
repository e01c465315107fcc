"""What memory already has about a session or a project, to compare new observations with.

The key of an observation identifies its subject. If two sessions make the same observation, the
keys are equal, or the wording is almost the same.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx.ids import NodeId
from ctx.memory import lookups
from ctx.memory.graph import Graph
from ctx.memory.lookups import NodeStatement
from ctx.memory.model import from_json
from ctx.synthesis import dedupe
from ctx.synthesis.decisions import contradicts
from ctx.synthesis.observations import Observation, Summary

_MOST_COMPARED = 200
_LONGEST_TITLE = 400
_FEWEST_WORDS = 4
_MOST_LEAD = 8
_WORD = re.compile(r"\w+")


class KnownNode(NamedTuple):
    """The parts of an existing node that are needed for comparison."""

    id: NodeId
    metadata: Mapping[str, Any]
    title: str
    kind: str

    @property
    def key(self) -> str:
        """The subject; empty if a user or agent stated it and it came from no session."""
        return str(self.metadata.get("key", ""))

    def texts(self, name: str) -> list[str]:
        value = self.metadata.get(name)
        return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def of_session(graph: Graph, session_id: str) -> list[KnownNode]:
    """The nodes that synthesis wrote about a session."""
    return [_known_node(each) for each in lookups.of_session(graph.connection, session_id)]


def of_project(
    graph: Graph, tag: str, keys: Sequence[str], without: Iterable[str]
) -> list[KnownNode]:
    """The known nodes of a project: those with one of the keys, then the newest.

    Superseded nodes are left out, and so are nodes with a key in `without`.
    """
    found = lookups.with_keys(graph.connection, tag, keys)
    found += lookups.newest_statements(graph.connection, tag, _MOST_COMPARED)
    left_out = set(without)
    return [each for each in map(_known_node, found) if each.key not in left_out]


def find_same(found: Observation, others: Sequence[KnownNode]) -> KnownNode | None:
    """The same observation from another session, in the same or almost the same words."""
    if found.key.startswith("changes:"):
        # A code change happens once, even if another one sounds the same.
        return None
    for other in others:
        if not other.key or other.kind != found.kind:
            continue
        if other.key == found.key:
            return other
        if found.kind != "bugfix" and dedupe.is_same(found.title, other.title):
            return other
    return None


def is_stated(found: Observation, others: Sequence[KnownNode]) -> bool:
    """Whether memory has it as a direct statement, or the agent only repeats memory."""
    return found.kind in ("rule", "correction", "decision", "discovery", "statement") and any(
        (not other.key and dedupe.is_same(found.title, other.title)) or _repeats(found, other.title)
        for other in others
    )


def _repeats(found: Observation, known: str) -> bool:
    """Whether an agent repeats a known title after a few words: `According to memory, …`."""
    if found.said_by == "user":
        return False
    said, before = _words(found.title.rstrip("…")), _words(known.rstrip("…"))
    size = len(before)
    if size < _FEWEST_WORDS or not size < len(said) <= size + _MOST_LEAD:
        return False
    return said[-size:] == before and not contradicts(found.title, known)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _known_node(found: NodeStatement) -> KnownNode:
    said = from_json(found.metadata)
    title = said.get("title")
    shown = title if isinstance(title, str) else found.content.partition("\n")[0][:_LONGEST_TITLE]
    return KnownNode(found.id, said, shown, (found.kind or "").removeprefix("kind:"))


def without_deleted(found: Summary, deleted: Sequence[Observation]) -> Summary:
    """A summary without the lines that repeat deleted observations."""
    if not deleted:
        return found
    titles = [_plain(each.title) for each in deleted]
    gone = [_plain(f"{each.title} {each.text}") for each in deleted]

    def left(lines: Sequence[str]) -> tuple[str, ...]:
        said = [(line, _plain(line.removeprefix("Decided: "))) for line in lines]
        return tuple(
            line
            for line, words in said
            if not any(words in text for text in gone)
            and not any(title in words for title in titles)
        )

    return found._replace(
        learned=left(found.learned),
        completed=left(found.completed),
        notes=left(found.notes),
        ended=left(found.ended),
    )


def _plain(text: str) -> str:
    return " ".join(text.rstrip("….!").lower().split())
