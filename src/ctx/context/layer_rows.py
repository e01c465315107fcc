"""The parts of rows of nodes that the lines of a layer show.

Hooks load this module.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from sqlite3 import Connection
from typing import Any

from ctx import checkouts
from ctx.context import hook_queries
from ctx.ids import NodeId
from ctx.markdown import flat
from ctx.memory import model, sources

LONGEST_COMPARED = 4_000
_SHORTEST_WORD = 4
_AROUND_WORDS = ".,:;!?()[]{}`'\"*"
_MOST_OF_IT, _NEARLY_ALL = 0.6, 0.8
_NEGATIONS = frozenset(
    "no not never none without don't doesn't nicht nie kein keine ohne не нет никогда pas jamais"
    " nunca".split()
)
_FEWEST_TOPIC_WORDS, _MOST_TOPIC_WORDS = 2, 4
_MOST_SHARED = 200
_NAMES = re.compile(
    r"`([^`\n]{3,60})`|\b([\w-]+(?:[./_][\w-]+)+|[a-z]+[A-Z]\w+|[A-Z]\w*[a-z][A-Z]\w*|--[a-z][\w-]+)\b"
)


def shared_summaries(
    connections: Sequence[Connection], project: str | None, session: str
) -> "list[Any]":
    """The summaries of sessions that are not in the table of sessions.

    Those are sessions of other people, in the project's store, and sessions that another program
    captured.
    """
    project_nodes = hook_queries.summaries_of_sessions(
        connections[:-1], project, session, _MOST_SHARED
    )
    imported = hook_queries.imported_summaries(connections[-1], project, session, _MOST_SHARED)
    # Another program may summarise a session several times. The newest one comes first.
    last = {row[-1]: row for row in reversed(imported)}
    return [*project_nodes, *(row[:-1] for row in imported if last[row[-1]] is row)]


def author_prefixes(connections: Sequence[Connection], node_ids: Sequence[str]) -> dict[str, str]:
    """The author prefix of each node that somebody else wrote."""
    if len(connections) == 1 or not node_ids:
        return {}
    from ctx.project import authors

    known = authors.strangers(connections[:-1], [NodeId(each) for each in node_ids])  # type: ignore[arg-type]
    return {node_id: f"(by {name}) " for node_id, name in known.items()}


def one_line(value: Any) -> str:
    """A section of a summary in one line: a text, or a list of them."""
    lines = value.splitlines() if isinstance(value, str) else []
    parts = [line.strip().lstrip("-*• ") for line in lines] or texts(value)
    return flat("; ".join(part.rstrip(".") for part in parts if part.strip())[:LONGEST_COMPARED])


def next_steps(about: Mapping[str, Any]) -> str:
    """The next steps of a summary. Agents often write the prefix themselves."""
    further = one_line(about.get("next_steps"))
    return further[5:].lstrip() if further[:5].casefold() == "next:" else further


def texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def label(row: Sequence[Any]) -> str:
    return f"{row[1]}:{row[0][:12]}"


def source(row: Sequence[Any]) -> str:
    """Who said it; without other evidence, an agent."""
    return sources.stated_source(row[1], model.from_json(row[3])) or sources.AGENT


def names(text: str) -> set[str]:
    """The names of files, options and code in a text."""
    return {(quoted or name).lower().strip("()") for quoted, name in _NAMES.findall(text)}


def sessions_elsewhere(
    connection: Connection, root: str, about: Iterable[Mapping[str, Any]]
) -> set[str]:
    """The sessions of nodes that ran on another branch: the files of this one say nothing of them.

    `about` is the metadata of the nodes.
    """
    checkout = checkouts.find_checkout(root)
    if checkout is None:
        return set()
    session_ids = sorted(
        {each["session"] for each in about if isinstance(each.get("session"), str)}
    )
    here, _ = checkouts.branch_and_commit(checkout)
    branches = hook_queries.branches(connection, session_ids)
    return {session for session, branch in branches.items() if branch != here}


def words(text: str) -> set[str]:
    found = (word.strip(_AROUND_WORDS) for word in text[:LONGEST_COMPARED].lower().split())
    return {word for word in found if len(word) >= _SHORTEST_WORD}


class Withdrawn:
    """Tells which passages are outdated: what was made of them has been changed or deleted since,
    or the user called them wrong or useless.

    Sessions are read when they are first asked for.
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        project: str | None,
        sessions: Sequence[str] = (),
        prompt: str = "",
    ) -> None:
        self._connections = connections
        self._prompt = prompt
        self._judged = [
            (is_useless, node_id, all_words(text))
            for is_useless, node_id, text in hook_queries.judged(connections, project)
        ]
        self._titles: dict[str, list[str]] = {}
        self._read: set[str] = set()
        self._add(sessions)

    def has(
        self, session: str, step: str, text: str, shared: Sized = (), node_id: str = ""
    ) -> bool:
        """`shared` are the topic words that a text and the prompt have."""
        if session not in self._read:
            self._add([session])
        every = all_words(text) if self._judged and not node_id else []
        if any(
            (node_id == judged_id or say_the_same(every, judged))
            and not (is_useless and names_subject(self._prompt, text, shared))
            for is_useless, judged_id, judged in self._judged
        ):
            return True
        own, told = words(text), flat(text)
        return any(
            title in told or is_mostly_in(words(title), own, len(own))
            for title in self._titles.get(step, ())
        )

    def _add(self, sessions: Sequence[str]) -> None:
        self._read.update(sessions)
        for metadata in hook_queries.withdrawn(self._connections, sessions):
            about = model.from_json(metadata or "{}")
            title = one_line(about.get("title")).rstrip("…")
            for step in texts(about.get("evidence")) if title else ():
                self._titles.setdefault(step, []).append(title)


def all_words(text: str) -> list[str]:
    """Also the short ones, in their order."""
    return [word for each in text.lower().split() if (word := each.strip(_AROUND_WORDS))]


def say_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one of two texts, given by all their words, is the other with a few words around it.

    If one word inside is another one, or in another place, a text may be the correction of the
    other. A negation more is none of the few words that do not matter.
    """
    less, more = sorted((one, other), key=len)
    if not less or len(less) < _NEARLY_ALL * len(more):
        return False
    spare = len(more) - len(less)
    return any(
        more[at : at + len(less)] == less
        and _NEGATIONS.isdisjoint([*more[:at], *more[at + len(less) :]])
        for at in range(spare + 1)
    )


def names_subject(prompt: str, text: str, shared: Sized) -> bool:
    """Whether a prompt has a name from a text; of one without names half of its words, or a few."""
    named = names(text)
    if not named:
        half = min(_MOST_TOPIC_WORDS, len(words(text)) / 2)
        return len(shared) >= max(_FEWEST_TOPIC_WORDS, half)
    asked = words(prompt)
    return bool(named & names(prompt)) or any(
        name in asked or name.rpartition("/")[2] in asked for name in named
    )


def is_mostly_in(words: AbstractSet[str], other: AbstractSet[str], fewest: int) -> bool:
    """Whether most words of a text are in another one, and at least so many."""
    least = max(1, min(fewest, len(words)))
    return len(words & other) >= max(least, _MOST_OF_IT * len(words))
