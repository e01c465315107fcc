"""What memory was told of sessions already, for whoever is about to tell more.

An observation has a key: what it is about. Two sessions that find the same thing have the same key,
or say it in almost the same words.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.capture.steps import Step
from ctx.ids import NodeId
from ctx.memory import lookups, records
from ctx.memory.graph import Graph
from ctx.memory.lookups import NodeStatement
from ctx.memory.model import from_json
from ctx.synthesis import dedupe
from ctx.synthesis.by_model import merge_answers, model_answers
from ctx.synthesis.decisions import contradicts
from ctx.synthesis.observations import Observation, Synthesis

_MOST_COMPARED = 200
_LONGEST_TITLE = 400
_FEWEST_WORDS = 4
_MOST_LEAD = 8
_WORD = re.compile(r"\w+")


class KnownNode(NamedTuple):
    """A node as far as it matters here."""

    id: NodeId
    metadata: Mapping[str, Any]
    title: str
    kind: str

    @property
    def key(self) -> str:
        """What it is about; empty: somebody stated it, and no session told it."""
        return str(self.metadata.get("key", ""))

    def texts(self, name: str) -> list[str]:
        value = self.metadata.get(name)
        return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def of_session(graph: Graph, session_id: str) -> list[KnownNode]:
    """What was told of a session."""
    return [_read(each) for each in lookups.of_session(graph.connection, session_id)]


def of_project(
    graph: Graph, tag: str, keys: Sequence[str], without: Iterable[str]
) -> list[KnownNode]:
    """What is known in a project: what has one of these keys, then the newest.

    What is superseded is left out, and so are other keys that were asked to be.
    """
    found = lookups.with_keys(graph.connection, tag, keys)
    found += lookups.newest_statements(graph.connection, tag, _MOST_COMPARED)
    left_out = set(without)
    return [each for each in map(_read, found) if each.key not in left_out]


def find_same(found: Observation, others: Sequence[KnownNode]) -> KnownNode | None:
    """What another session told, in these or almost these words."""
    if found.key.startswith("changes:"):
        # What was done is done once, also where it sounds the same.
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
    """Whether somebody has said it to memory themselves, or memory said it and it was repeated."""
    return found.kind in ("decision", "discovery") and any(
        (not other.key and dedupe.is_same(found.title, other.title)) or _repeats(found, other.title)
        for other in others
    )


def titles_changed_by_others(graph: Graph, session_name: str, author: str) -> list[str]:
    """Titles of what was told of a session, and that somebody else has changed or deleted since."""
    found = []
    for subject in records.nodes_said_by(graph.connection, session_name, author):
        about = records.about(graph.connection, subject, "node.")
        if max(about, key=lambda record: record.order).author != author:
            metadata = [each.body.get("metadata") for each in about if each.author == author]
            found += [each["title"] for each in metadata if each and "title" in each]
    return [title for title in found if isinstance(title, str)]


def model_answer_rows(connection: Connection, session_id: str) -> list[tuple[str, ...]]:
    """What models were asked about a session and answered, as it lies in the store."""
    return connection.execute(
        "SELECT session, kind, first, steps, at, model, body, problem FROM model_answers"
        " WHERE session = ? ORDER BY kind, first",
        (session_id,),
    ).fetchall()


def merge_model_answers(
    found: Synthesis, steps: Sequence[Step], said: Sequence[tuple[str, ...]], *, is_whole: bool
) -> Synthesis:
    """What was found in a session, with what models have said of it.

    `is_whole` says that the agent rests or is gone.
    """
    if not said:
        return found
    return merge_answers.merged(
        found, steps, [*map(model_answers.from_row, said)], is_whole=is_whole
    )


def _repeats(found: Observation, known: str) -> bool:
    """Whether an agent says what memory knows with a few words before: `According to memory, …`."""
    if found.said_by == "user":
        return False
    said, before = _words(found.title.rstrip("…")), _words(known.rstrip("…"))
    size = len(before)
    if size < _FEWEST_WORDS or not size < len(said) <= size + _MOST_LEAD:
        return False
    return said[-size:] == before and not contradicts(found.title, known)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _read(found: NodeStatement) -> KnownNode:
    said = from_json(found.metadata)
    title = said.get("title")
    shown = title if isinstance(title, str) else found.content.partition("\n")[0][:_LONGEST_TITLE]
    return KnownNode(found.id, said, shown, (found.kind or "").removeprefix("kind:"))
