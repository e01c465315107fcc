"""What was changed on two branches at once, and nobody has looked at since.

Records commute: of two that set one field, the later one holds, and the other stays readable. That
is a decision of a clock. Where neither of them knew of the other, and they say different things, a
person may want to decide.

A record knows of another one if its commit comes after the other's; what is staged knows of all.
So of everything that was said about a field, what nobody knew of when they wrote about it again is
left: where that is more than one value, it is a dispute. It ends with the next word about the field
in a commit that knows of all of them, or by a record that says that it is settled.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.ids import NodeId
from ctx.memory import history, records, replay, undo
from ctx.memory.graph import Graph
from ctx.memory.history import Commit
from ctx.memory.records import Record

LIFE = "node"
"""The field of a node that was deleted on one side and edited on the other."""
METADATA = "metadata "
"""What the fields that are keys of the metadata begin with."""


class Version(NamedTuple):
    """What one side says a field is."""

    record: Record
    commit: Commit
    value: Any
    """For the node as a whole: whether it is there."""


class Dispute(NamedTuple):
    node_id: NodeId
    field: str
    """`type`, `content`, `summary`, `metadata KEY`, or `node` for the node as a whole."""
    versions: tuple[Version, ...]
    """The one that holds first, then the others, newest first."""


class _Word(NamedTuple):
    """A record about a field."""

    record: Record
    commits: tuple[int, ...]
    """Who holds it, as numbers of commits; none where it is staged, which knows of all."""
    value: Any


def disputes(graph: Graph) -> list[Dispute]:
    """What waits for somebody to decide, by node."""
    commits = history.commits(graph.connection)
    if _is_one_line(commits):
        return []
    known = _Ancestry(commits, _spoken_in(graph.connection))
    return [
        dispute
        for node_id, said in _candidates(graph.connection, known)
        for dispute in _Node(graph, node_id, said, known).disputes()
    ]


def _is_one_line(commits: Mapping[str, Commit]) -> bool:
    """Whether each commit comes after all that were made before it: then all were known."""
    every = list(commits.values())
    return all(before.id in commit.parents for commit, before in pairwise(every))


def _spoken_in(connection: Connection) -> list[str]:
    """The commits that speak of nodes of which others speak too."""
    rows = connection.execute(
        f"WITH spoken AS ({_SPOKEN}) SELECT DISTINCT commit_id FROM spoken WHERE subject IN"
        " (SELECT subject FROM spoken GROUP BY subject HAVING count(DISTINCT commit_id) > 1)"
    )
    return [row[0] for row in rows]


_SPOKEN = """
SELECT r.subject, b.commit_id FROM records AS r JOIN batches AS b ON b.number = r.batch
WHERE r.kind >= 'node.' AND r.kind < 'node/' AND b.commit_id IS NOT NULL
"""


class _Ancestry:
    """Which of some commits come before which."""

    def __init__(self, commits: Mapping[str, Commit], chosen: Sequence[str]) -> None:
        self._ids = list(chosen)
        self._numbers = {commit: number for number, commit in enumerate(self._ids)}
        self._commits = commits
        self._before: list[int] = [0] * len(self._ids)
        reached: dict[str, int] = {}
        for commit in reversed(list(commits.values())):
            mask = 0
            for parent in commit.parents:
                mask |= reached.get(parent, 0)
            if (number := self._numbers.get(commit.id)) is not None:
                self._before[number] = mask
                mask |= 1 << number
            reached[commit.id] = mask

    def number(self, commit: str) -> int | None:
        return self._numbers.get(commit)

    def commit(self, number: int) -> Commit:
        return self._commits[self._ids[number]]

    def knows(self, later: _Word, earlier: _Word) -> bool:
        """Whether what was said later was said by somebody who could read what was said before."""
        if not earlier.commits:
            return not later.commits and later.record.order > earlier.record.order
        if not later.commits:
            return True
        if set(later.commits) & set(earlier.commits):
            return later.record.order > earlier.record.order
        return any(
            self._before[mine] >> other & 1 for mine in later.commits for other in earlier.commits
        )


def _candidates(connection: Connection, known: _Ancestry) -> Iterator[tuple[NodeId, list[_Word]]]:
    """The nodes of which several commits speak, and what is said about each."""
    rows = connection.execute(
        f"SELECT subject FROM ({_SPOKEN}) GROUP BY subject"
        " HAVING count(DISTINCT commit_id) > 1 ORDER BY subject"
    ).fetchall()
    for (node_id,) in rows:
        held: dict[str, set[int]] = {}
        for record, commit in connection.execute(_HELD, (node_id,)):
            found = held.setdefault(record, set())
            if commit is not None and (number := known.number(commit)) is not None:
                found.add(number)
        yield (
            node_id,
            [
                _Word(record, tuple(sorted(held[record.id])), None)
                for record in records.about(connection, node_id, "node.")
                if record.id in held and record.stamp < records.BEYOND
            ],
        )


# A record may have come with several commits, as after a cherry-pick.
_HELD = """
SELECT r.id, b.commit_id FROM records AS r JOIN batches AS b ON b.number = r.batch
WHERE r.subject = ?1 AND r.kind >= 'node.' AND r.kind < 'node/'
UNION ALL SELECT r.id, b.commit_id FROM records AS r JOIN repeated AS m ON m.record = r.id
JOIN batches AS b ON b.number = m.batch
WHERE r.subject = ?1 AND r.kind >= 'node.' AND r.kind < 'node/'
"""


class _Node:
    """A node of which several commits speak."""

    def __init__(
        self, graph: Graph, node_id: NodeId, said: Sequence[_Word], known: _Ancestry
    ) -> None:
        self._graph = graph
        self._id = node_id
        self._said = said
        self._known = known

    def disputes(self) -> Iterator[Dispute]:
        settled = self._settled()
        fields: dict[str, list[_Word]] = {}
        for word in self._said:
            for name, value in _fields(word.record):
                fields.setdefault(name, []).append(word._replace(value=value))
        is_there = self._graph.has(self._id)
        for name, words in fields.items():
            if (name != LIFE and not is_there) or (name == "content" and self._has_document()):
                continue
            unknown = self._unknown_to_others(words)
            open_words = [word for word in unknown if (name, word.record.id) not in settled]
            if len({_comparable(word.value) for word in open_words}) > 1:
                yield Dispute(self._id, name, self._versions(name, open_words))

    def _settled(self) -> set[tuple[str, str]]:
        """The fields, and what was said about them, that somebody has looked at and has let be."""
        return {
            (str(field), str(record))
            for word in self._said
            if word.record.kind == "node.settle"
            and not undo.is_undone(self._graph, word.record.change)
            for field in word.record.body.get("fields", ())
            for record in word.record.body.get("over", ())
        }

    def _has_document(self) -> bool:
        """Whether the node says what its file says: there, two edits are git's to merge."""
        row = self._graph.connection.execute(
            "SELECT 1 FROM records JOIN nodes ON nodes.id = subject WHERE subject = ?"
            " AND stamp >= ? AND kind = 'node.put' AND json_extract(body, '$.content') = content",
            (self._id, records.BEYOND),
        ).fetchone()
        return row is not None

    def _unknown_to_others(self, words: Sequence[_Word]) -> list[_Word]:
        """What was said, and not said again by somebody who could know of it."""
        knows = self._known.knows
        return [
            word
            for word in words
            if not any(knows(other, word) for other in words if other is not word)
        ]

    def _versions(self, field: str, words: Iterable[_Word]) -> tuple[Version, ...]:
        # A deletion holds whenever it was said; of anything else, the last word.
        def rank(word: _Word) -> tuple[bool, tuple[int, str]]:
            return field == LIFE and word.record.kind == "node.delete", word.record.order

        found: dict[str, Version] = {}
        for word in sorted(words, key=rank, reverse=True):
            # Two sides may say the same: one version of it is enough.
            version = Version(word.record, self._known.commit(word.commits[0]), word.value)
            found.setdefault(_comparable(word.value), version)
        return tuple(found.values())


def _fields(record: Record) -> Iterator[tuple[str, Any]]:
    """What a record sets, by name."""
    if record.kind == "node.put":
        yield LIFE, True
        for name in replay.FIELDS:
            if name in record.body:
                yield name, record.body[name]
        for key, value in record.body.get("metadata", {}).items():
            yield METADATA + key, value
    elif record.kind in ("node.delete", "node.restore"):
        yield LIFE, record.kind == "node.restore"


def _comparable(value: Any) -> str:
    return records.as_json({"": value})
