"""What was changed on two branches at once, and nobody has looked at since.

Records commute: of two that set one field, the later one holds, and the other stays readable. That
is a decision of a clock. Where neither of them knew of the other, and they say different things, a
person may want to decide.

A record knows of another one if its commit comes after the other's, unless the commit says that
the other came while this one was staged. What is staged knows of the history that there was at its
step, and of what was staged beside it, also where that was committed here since. So of everything
that was said about a field, what nobody knew of when they wrote about it again is left: where that
is more than one value, it is a dispute. It ends with the next word about the field by somebody who
knows of all of them, or by a record that says that it is settled.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.ids import NodeId, Ulid
from ctx.memory import history, inverse_changes, records, replay
from ctx.memory.graph import Graph
from ctx.memory.history import IndexedCommit
from ctx.memory.records import Record

LIFE = "node"
"""The field of a node that was deleted on one side and edited on the other."""
METADATA = "metadata "
"""What the fields that are keys of the metadata begin with."""


class ConflictSide(NamedTuple):
    """What one side says a field is."""

    record: Record
    commit: IndexedCommit | None
    """None where it is staged."""
    value: Any
    """For the node as a whole: whether it is there."""


class Conflict(NamedTuple):
    node_id: NodeId
    field: str
    """`type`, `content`, `summary`, `metadata KEY`, or `node` for the node as a whole."""
    versions: tuple[ConflictSide, ...]
    """The one that holds first, then the others, newest first."""
    records: tuple[Ulid, ...]
    """All that say so, the one that holds first. Several may say the same."""


class _FieldRecord(NamedTuple):
    """A record about a field."""

    record: Record
    commits: tuple[int, ...]
    """Who holds it, as numbers of commits; none where it is staged."""
    heads: str
    """Where it is staged: the heads that there were."""
    unread: Set[str]
    """What its writer had not read of the history before."""
    value: Any = None


def find_conflicts(graph: Graph) -> list[Conflict]:
    """What waits for somebody to decide, by node."""
    commits = history.commits(graph.connection)
    if _is_one_line(commits) and not _came_meanwhile(graph.connection, commits):
        return []
    held = _RecordHolders(graph.connection, commits)
    known = _Ancestry(graph.connection, commits, held.commits())
    return [
        dispute
        for node_id in held.nodes()
        for dispute in _Node(graph, node_id, held.words(node_id, known), known).conflicts()
    ]


def unread(graph: Graph, session: str) -> tuple[Ulid, ...]:
    """What is in history, and what a session has spoken against without having read it."""
    staged = {record.id for record in history.staged_by(graph.connection, session)}
    found = {
        record
        for dispute in find_conflicts(graph)
        if not staged.isdisjoint(dispute.records)
        for record in dispute.records
    }
    return tuple(sorted(found - staged))


def _is_one_line(commits: Mapping[str, IndexedCommit]) -> bool:
    """Whether each commit comes after all that were made before it: then all were known."""
    every = list(commits.values())
    return all(before.id in commit.parents for commit, before in pairwise(every))


def _came_meanwhile(connection: Connection, commits: Mapping[str, IndexedCommit]) -> bool:
    """Whether something came into a history of one line while something else was staged."""
    row = connection.execute(
        "SELECT 1 FROM batches WHERE unread <> '' OR session IS NOT NULL AND heads <> ?",
        (next(iter(commits), ""),),
    ).fetchone()
    return row is not None


class _Holder(NamedTuple):
    """A batch that holds a record."""

    batch: str
    is_committed: bool
    heads: str
    unread: str


class _RecordHolders:
    """Of which nodes several commits or sessions speak, and who holds what they say."""

    def __init__(self, connection: Connection, commits: Mapping[str, IndexedCommit]) -> None:
        self._connection = connection
        # A batch may be named by several commits, as by one that was amended and one that was not.
        self._named: dict[str, list[str]] = {}
        for commit in commits.values():
            for batch in commit.batches:
                self._named.setdefault(batch, []).append(commit.id)
        self._found: dict[str, dict[str, list[_Holder]]] = {}
        for node_id, record, *held in connection.execute(_HELD):
            holders = self._found.setdefault(node_id, {}).setdefault(record, [])
            holders.append(_Holder(*held))

    def nodes(self) -> list[NodeId]:
        return [NodeId(Ulid(node_id)) for node_id in sorted(self._found)]

    def commits(self) -> list[str]:
        every = (each for found in self._found.values() for each in found.values())
        batches = {holder.batch for holders in every for holder in holders}
        return sorted({commit for batch in batches for commit in self._named.get(batch, ())})

    def words(self, node_id: NodeId, known: "_Ancestry") -> list[_FieldRecord]:
        """What was said about a node, in the order of time."""
        found = self._found[node_id]
        return [
            self._word(record, found[record.id], known)
            for record in records.about(self._connection, node_id, "node.")
            if record.id in found
        ]

    def _word(self, record: Record, holders: Sequence[_Holder], known: "_Ancestry") -> _FieldRecord:
        named = {commit for each in holders for commit in self._named.get(each.batch, ())}
        staged = [each.heads for each in holders if not each.is_committed]
        unread = [frozenset(each.unread.split()) for each in holders]
        return _FieldRecord(
            record,
            known.numbers(named),
            staged[0] if staged and not named else "",
            frozenset.intersection(*unread),
        )


# A record may have come with several commits, as after a cherry-pick.
_HELD = f"""
WITH held AS (
    SELECT r.subject, r.id, r.batch FROM records AS r
    WHERE r.kind >= 'node.' AND r.kind < 'node/' AND r.stamp < {records.BEYOND:d}
    UNION ALL
    SELECT r.subject, r.id, m.batch FROM repeated AS m JOIN records AS r ON r.id = m.record
    WHERE r.kind >= 'node.' AND r.kind < 'node/' AND r.stamp < {records.BEYOND:d}
), spoken AS (
    SELECT h.subject, h.id, b.id AS batch, b.commit_id, b.session, b.heads, b.unread
    FROM held AS h JOIN batches AS b ON b.number = h.batch
    WHERE b.commit_id IS NOT NULL OR b.session IS NOT NULL
)
SELECT subject, id, batch, commit_id IS NOT NULL, heads, unread FROM spoken WHERE subject IN (
    SELECT subject FROM spoken GROUP BY subject
    HAVING count(DISTINCT coalesce(commit_id, 'staged ' || session)) > 1
)
"""


class _Ancestry:
    """Which of some commits come before which."""

    def __init__(
        self, connection: Connection, commits: Mapping[str, IndexedCommit], chosen: Sequence[str]
    ) -> None:
        self._ids = list(chosen)
        self._numbers = {commit: number for number, commit in enumerate(self._ids)}
        self._commits = commits
        self._before: list[int] = [0] * len(self._ids)
        self._reached: dict[str, int] = {}
        for commit in reversed(list(commits.values())):
            mask = 0
            for parent in commit.parents:
                mask |= self._reached.get(parent, 0)
            if (number := self._numbers.get(commit.id)) is not None:
                self._before[number] = mask
                mask |= 1 << number
            self._reached[commit.id] = mask
        self._mine = 0
        self._instead: dict[str, str] = {}
        for id, replaced, mine in connection.execute("SELECT id, replaced, mine FROM commits"):
            self._instead.update(dict.fromkeys(replaced.split(), id))
            if (number := self._numbers.get(id)) is not None:
                self._mine |= mine << number

    def numbers(self, commits: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted(self._numbers[commit] for commit in commits))

    def commit(self, word: _FieldRecord) -> IndexedCommit | None:
        return self._commits[self._ids[word.commits[0]]] if word.commits else None

    def knows(self, later: _FieldRecord, earlier: _FieldRecord) -> bool:
        """Whether what was said later was said by somebody who could read what was said before."""
        if not earlier.commits:
            return not later.commits and later.record.order > earlier.record.order
        if not later.commits:
            seen = self._seen(later.heads)
            return any(seen >> other & 1 for other in earlier.commits)
        if set(later.commits) & set(earlier.commits):
            return later.record.order > earlier.record.order
        return earlier.record.id not in later.unread and any(
            self._before[mine] >> other & 1 for mine in later.commits for other in earlier.commits
        )

    def _seen(self, heads: str) -> int:
        """What somebody could read who staged something when these were the heads."""
        # What was committed here was staged here, and in sight.
        seen = self._mine
        for head in heads.split():
            reached = self._reached.get(self._instead.get(head, head))
            if reached is None:
                # Nobody can tell any more what was before it.
                return -1
            seen |= reached
        return seen


class _Node:
    """A node of which several commits speak."""

    def __init__(
        self, graph: Graph, node_id: NodeId, said: Sequence[_FieldRecord], known: _Ancestry
    ) -> None:
        self._graph = graph
        self._id = node_id
        self._said = said
        self._known = known

    def conflicts(self) -> Iterator[Conflict]:
        settled = self._settled()
        fields: dict[str, list[_FieldRecord]] = {}
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
                ranked = _ranked(name, open_words)
                ids = tuple(word.record.id for word in ranked)
                yield Conflict(self._id, name, self._versions(ranked), ids)

    def _settled(self) -> set[tuple[str, str]]:
        """The fields, and what was said about them, that somebody has looked at and has let be."""
        return {
            (str(field), str(record))
            for word in self._said
            if word.record.kind == "node.settle"
            and not inverse_changes.is_undone(self._graph, word.record.change)
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

    def _unknown_to_others(self, words: Sequence[_FieldRecord]) -> list[_FieldRecord]:
        """What was said, and not said again by somebody who could know of it."""
        knows = self._known.knows
        return [
            word
            for word in words
            if not any(knows(other, word) for other in words if other is not word)
        ]

    def _versions(self, words: Iterable[_FieldRecord]) -> tuple[ConflictSide, ...]:
        found: dict[str, ConflictSide] = {}
        for word in words:
            # Two sides may say the same: one version of it is enough.
            version = ConflictSide(word.record, self._known.commit(word), word.value)
            found.setdefault(_comparable(word.value), version)
        return tuple(found.values())


def _ranked(field: str, words: Iterable[_FieldRecord]) -> list[_FieldRecord]:
    """What holds first. A deletion does whenever it was said; of anything else, the last word."""

    def rank(word: _FieldRecord) -> tuple[bool, tuple[int, str]]:
        return field == LIFE and word.record.kind == "node.delete", word.record.order

    return sorted(words, key=rank, reverse=True)


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
