"""Fields that were edited on two branches or machines at once and not reviewed since.

Records commute: if two records set one field, the later one wins and the other stays readable. The
clock decides that. If neither author could see the other's edit and the values differ, a person may
want to decide.

A record sees another one if its commit descends from the other's commit, unless the commit lists
the other as unread (it arrived while this one was staged). A staged record sees the history at the
time of its step, and everything staged in the same working tree, even if that has been committed
since. In the user store, a record sees all earlier ones, except those that `replicas` has noted as
unread when they came from another machine.

The edits of a field that no later edit saw are its open edits. If they have more than one value,
the field has a conflict. A new edit that sees all of them ends the conflict, and so does a
`node.settle` record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.ids import NodeId, Ulid
from ctx.memory import history, inverse_changes, records, replay, replicas
from ctx.memory.graph import USER, Graph
from ctx.memory.history import IndexedCommit
from ctx.memory.records import Record

LIFE = "node"
"""The field name for a node that one side deleted and the other edited."""
METADATA = "metadata "
"""The prefix of field names that stand for metadata keys."""


class ConflictSide(NamedTuple):
    """The value that one side gave a field."""

    record: Record
    commit: IndexedCommit | None
    """None if the record is staged."""
    value: Any
    """For the node as a whole: whether it exists."""


class Conflict(NamedTuple):
    node_id: NodeId
    field: str
    """`type`, `content`, `summary`, `metadata KEY`, or `node` for the node as a whole."""
    versions: tuple[ConflictSide, ...]
    """The current value first, then the others, newest first."""
    records: tuple[Ulid, ...]
    """The ids of all open records, the current one first. Several may have the same value."""


class _FieldRecord(NamedTuple):
    """A record that sets a field."""

    record: Record
    commits: tuple[int, ...]
    """The numbers of the commits that contain it; empty if it is staged."""
    heads: str
    """If it is staged: the heads at the time of its step."""
    unread: Set[str]
    """The earlier records that its author had not read."""
    value: Any = None


def find_conflicts(graph: Graph) -> list[Conflict]:
    """All open conflicts, by node."""
    if graph.scope == USER:
        return list(_conflicts_of_replicas(graph))
    if history.is_linear(graph.connection):
        return []
    commits = history.commits(graph.connection)
    holders = _RecordHolders(graph.connection, commits)
    ancestry = _Ancestry(graph.connection, commits, holders.commits())
    return [
        conflict
        for node_id in holders.nodes()
        for conflict in _Node(
            graph, node_id, holders.edits(node_id, ancestry), ancestry
        ).conflicts()
    ]


def _conflicts_of_replicas(graph: Graph) -> Iterator[Conflict]:
    """The conflicts about texts. Machines also write metadata, which nobody could decide about."""
    for subject, pairs in replicas.unread_by_node(graph.connection).items():
        edits = [
            _FieldRecord(record, (), "", frozenset())
            for record in records.records_about(graph.connection, subject, "node.")
            if record.kind != "node.put" or not record.body.keys().isdisjoint(_TEXTS)
        ]
        node = _Node(graph, NodeId(Ulid(subject)), edits, _ReadRecords(pairs))
        yield from (each for each in node.conflicts() if each.field in (LIFE, *_TEXTS))


_TEXTS = ("content", "summary")


class _ReadRecords:
    """Which edits of the user store saw which others."""

    def __init__(self, unread: Set[tuple[str, str]]) -> None:
        self._unread = unread

    def commit(self, _edit: "_FieldRecord") -> None:
        """There are no commits."""

    def sees(self, later: "_FieldRecord", earlier: "_FieldRecord") -> bool:
        ids = later.record.id, earlier.record.id
        return later.record.order > earlier.record.order and ids not in self._unread


def unread(graph: Graph, session: str) -> tuple[Ulid, ...]:
    """The committed records that a session contradicts without having read them."""
    staged = {record.id for record in history.staged_by(graph.connection, session)}
    involved = {
        record
        for conflict in find_conflicts(graph)
        if not staged.isdisjoint(conflict.records)
        for record in conflict.records
    }
    return tuple(sorted(involved - staged))


class _Holder(NamedTuple):
    """A batch that holds a record."""

    batch: str
    is_committed: bool
    heads: str
    unread: str


class _RecordHolders:
    """The nodes that several commits or sessions edit, and the batches that hold the records."""

    def __init__(self, connection: Connection, commits: Mapping[str, IndexedCommit]) -> None:
        self._connection = connection
        # Several commits may name one batch, such as a commit and its amended version.
        self._commits_of: dict[str, list[str]] = {}
        for commit in commits.values():
            for batch in commit.batches:
                self._commits_of.setdefault(batch, []).append(commit.id)
        self._by_node: dict[str, dict[str, list[_Holder]]] = {}
        for node_id, record, *columns in connection.execute(_HOLDERS_SQL):
            holders = self._by_node.setdefault(node_id, {}).setdefault(record, [])
            holders.append(_Holder(*columns))

    def nodes(self) -> list[NodeId]:
        return [NodeId(Ulid(node_id)) for node_id in sorted(self._by_node)]

    def commits(self) -> list[str]:
        lists = (holders for records in self._by_node.values() for holders in records.values())
        batches = {holder.batch for holders in lists for holder in holders}
        return sorted({commit for batch in batches for commit in self._commits_of.get(batch, ())})

    def edits(self, node_id: NodeId, ancestry: "_Ancestry") -> list[_FieldRecord]:
        """The records about a node, oldest first."""
        holders = self._by_node[node_id]
        return [
            self._edit(record, holders[record.id], ancestry)
            for record in records.records_about(self._connection, node_id, "node.")
            if record.id in holders
        ]

    def _edit(
        self, record: Record, holders: Sequence[_Holder], ancestry: "_Ancestry"
    ) -> _FieldRecord:
        commits = {
            commit for holder in holders for commit in self._commits_of.get(holder.batch, ())
        }
        staged = [holder.heads for holder in holders if not holder.is_committed]
        unread = [frozenset(holder.unread.split()) for holder in holders]
        return _FieldRecord(
            record,
            ancestry.numbers(commits),
            staged[0] if staged and not commits else "",
            frozenset.intersection(*unread),
        )


# Several commits may contain one record, for example after a cherry-pick.
_HOLDERS_SQL = f"""
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
    """Which commits are ancestors of which."""

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

    def commit(self, edit: _FieldRecord) -> IndexedCommit | None:
        return self._commits[self._ids[edit.commits[0]]] if edit.commits else None

    def sees(self, later: _FieldRecord, earlier: _FieldRecord) -> bool:
        """Whether the author of the later edit could read the earlier one."""
        if not earlier.commits:
            return not later.commits and later.record.order > earlier.record.order
        if not later.commits:
            visible = self._visible_from(later.heads)
            return any(visible >> other & 1 for other in earlier.commits)
        if set(later.commits) & set(earlier.commits):
            return later.record.order > earlier.record.order
        return earlier.record.id not in later.unread and any(
            self._before[mine] >> other & 1 for mine in later.commits for other in earlier.commits
        )

    def _visible_from(self, heads: str) -> int:
        """The commits visible to a step that was staged on these heads, as a bit mask."""
        # A commit that was made here was staged here before, so it was visible.
        visible = self._mine
        for head in heads.split():
            reached = self._reached.get(self._instead.get(head, head))
            if reached is None:
                # Its ancestors are unknown now.
                return -1
            visible |= reached
        return visible


class _Node:
    """A node that several commits or machines edit."""

    def __init__(
        self,
        graph: Graph,
        node_id: NodeId,
        edits: Sequence[_FieldRecord],
        ancestry: _Ancestry | _ReadRecords,
    ) -> None:
        self._graph = graph
        self._id = node_id
        self._edits = edits
        self._ancestry = ancestry

    def conflicts(self) -> Iterator[Conflict]:
        settled = self._settled_edits()
        fields: dict[str, list[_FieldRecord]] = {}
        for edit in self._edits:
            for name, value in _fields(edit.record):
                fields.setdefault(name, []).append(edit._replace(value=value))
        exists = self._graph.has(self._id)
        for name, edits in fields.items():
            if (name != LIFE and not exists) or (name == "content" and self._has_document()):
                continue
            unseen = [
                edit
                for edit in edits
                if not any(self._ancestry.sees(other, edit) for other in edits if other is not edit)
            ]
            open_edits = [edit for edit in unseen if (name, edit.record.id) not in settled]
            if len({_comparable(edit.value) for edit in open_edits}) > 1:
                ranked = _rank_edits(name, open_edits)
                ids = tuple(edit.record.id for edit in ranked)
                yield Conflict(self._id, name, self._sides(ranked), ids)

    def _settled_edits(self) -> set[tuple[str, str]]:
        """The fields and record ids that a person has reviewed and settled."""
        return {
            (str(field), str(record))
            for edit in self._edits
            if edit.record.kind == "node.settle"
            and not inverse_changes.is_undone(self._graph, edit.record.change)
            for field in edit.record.body.get("fields", ())
            for record in edit.record.body.get("over", ())
        }

    def _has_document(self) -> bool:
        """Whether the node has the content of its file: git merges two edits of a file."""
        row = self._graph.connection.execute(
            "SELECT 1 FROM records JOIN nodes ON nodes.id = subject WHERE subject = ?"
            " AND stamp >= ? AND kind = 'node.put' AND json_extract(body, '$.content') = content",
            (self._id, records.BEYOND),
        ).fetchone()
        return row is not None

    def _sides(self, edits: Iterable[_FieldRecord]) -> tuple[ConflictSide, ...]:
        """One side for each distinct value."""
        sides: dict[str, ConflictSide] = {}
        for edit in edits:
            side = ConflictSide(edit.record, self._ancestry.commit(edit), edit.value)
            sides.setdefault(_comparable(edit.value), side)
        return tuple(sides.values())


def _rank_edits(field: str, edits: Iterable[_FieldRecord]) -> list[_FieldRecord]:
    """The winning edit first: a deletion wins whatever its time, otherwise the latest edit."""

    def rank(edit: _FieldRecord) -> tuple[bool, tuple[int, str]]:
        return field == LIFE and edit.record.kind == "node.delete", edit.record.order

    return sorted(edits, key=rank, reverse=True)


def _fields(record: Record) -> Iterator[tuple[str, Any]]:
    """The fields that a record sets, with their values."""
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
