"""Writes to a graph: one change at a time, all of it or nothing.

    with changing(graph, "add", who) as change:
        node_id = change.add_node("fact", "The API speaks OAuth 2.0.")
        change.tag(node_id, "tier:reference")

A change collects records. At its end, the records are written and the tables updated in one
transaction. Statements without an effect are not recorded, such as adding a tag twice.

Every text is redacted here. `redacted` lists the secrets that were removed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ctx import clock, ids, interrupts
from ctx.errors import ContentRefused, NodeNotFound, UsageError
from ctx.ids import NodeId, ObjectId, Ulid
from ctx.memory import model, records
from ctx.memory.graph import PROJECT, Graph
from ctx.memory.materialise import materialise_written
from ctx.memory.model import Evidence, Redaction
from ctx.memory.records import Record
from ctx.memory.written_records import NewSubjects, nothing_looked_up
from ctx.redaction import redact
from ctx.sqlite.connection import transaction

if TYPE_CHECKING:
    from ctx.objects.object_store import Object
    from ctx.objects.object_types import StepKind

T = TypeVar("T")

_SHORT = 200
_AHEAD_MS = 60_000
_MOST_IDS = 256
_DATED = {
    "node.put": ("created_at", "updated_at"),
    "tag.add": ("created_at",),
    "edge.put": ("created_at",),
    "view.put": ("created_at", "updated_at"),
}
# Tags, keys and names of tools repeat often.
_redact_word = lru_cache(maxsize=1 << 12)(redact)


class ChangeAuthor(NamedTuple):
    """The session and the author of a change."""

    session: str
    author: str


@contextmanager
def changing(
    graph: Graph, action: str, who: ChangeAuthor, change_id: Ulid | None = None
) -> Iterator["Change"]:
    """Make a change. If it belongs to a change of another store, it has the same id."""
    with transaction(graph.connection):
        change = Change(graph, action, who, change_id)
        yield change
        change.write()
        interrupts.defer()


class Change:
    def __init__(
        self, graph: Graph, action: str, who: ChangeAuthor, change_id: Ulid | None = None
    ) -> None:
        self.id = change_id or ids.new_ulid()
        self.graph = graph
        self.records: list[Record] = []
        """Records that are not written yet."""
        self.written: list[Record] = []
        """Written records, for a project, which stages them at the end of the change."""
        self.redacted: list[Redaction] = []
        self.objects: list[Object] = []
        """Objects that the records refer to; a project stores them with the records."""
        self.versions: list[Object] = []
        """File versions; a project stores them with the records."""
        self.kind: StepKind | None = None
        """The kind of the project's step, if it does not follow from the contents."""
        self.step: ObjectId | None = None
        """The project's step, once it is written."""
        self.source = ""
        """The source of the current text, for reporting where a secret was."""
        self.action = action
        self.parts: Mapping[str, Change] = {graph.scope: self}
        """The changes of one transaction, by the scope of their store."""
        self.lookup = nothing_looked_up()
        """What is known about the items of a batch, so that it is not looked up one by one."""
        self._who = who
        # Under the write lock no other process can take a later stamp first.
        self._clock = clock.HybridClock(records.last_stamp(graph.connection))
        self._tags: dict[tuple[str, str], bool] = {}
        self._new: set[str] = set()
        # What the records that are not written yet are about, and no others.
        self._without_records = NewSubjects(set(), set())
        self._record_ids: list[Ulid] = []
        self._ids_taken = 1

    def in_scope(self, scope: str) -> "Change":
        """The part of the same transaction in another store."""
        return self.parts[scope]

    def by_node(self, by_scope: Mapping[str, Iterable[T]]) -> Iterator[tuple["Change", T]]:
        """Each node with the part of the transaction that changes its store."""
        for scope, part in by_scope.items():
            for each in part:
                yield self.in_scope(scope), each

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing for a project to stage."""
        return not (self.records or self.written or self.versions)

    # Nodes

    def add_node(
        self,
        node_type: str,
        content: str,
        *,
        summary: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        node_id: NodeId | None = None,
        times: tuple[str, str] | None = None,
    ) -> NodeId:
        """Add a node. An imported one has its own id and times."""
        new_id = node_id or ids.new_node_id()
        body: dict[str, Any] = {
            "type": model.node_type(node_type),
            "content": self._clean(model.content(content), "content"),
        }
        if summary and summary.strip():
            body["summary"] = self._clean(summary.strip(), "summary")
        if metadata:
            body["metadata"] = self._clean_metadata(metadata)
        if times:
            body["created_at"], body["updated_at"] = times
        self._record("node.put", new_id, body=body)
        self._new.add(new_id)
        if new_id in self.lookup.new_nodes:
            self._without_records.subjects.add(new_id)
        return new_id

    def update_node(
        self,
        node_id: NodeId,
        *,
        node_type: str | None = None,
        content: str | None = None,
        summary: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        updated_at: str | None = None,
        over: str | None = None,
        before: str | None = None,
    ) -> tuple[str, ...]:
        """Set some fields; returns the names of those that changed.

        An empty summary and a metadata value of None remove the old value. Content that is set
        `over` a version of a document stays until the document changes. Content that is written
        into the document has the text `before`, so that it can be undone.
        """
        node = self.graph.node(node_id)
        wanted: dict[str, Any] = {}
        if node_type is not None:
            wanted["type"] = model.node_type(node_type)
        if content is not None:
            wanted["content"] = self._clean(model.content(content), "content")
        if summary is not None:
            wanted["summary"] = self._clean(summary.strip(), "summary") or None
        body = {name: value for name, value in wanted.items() if getattr(node, name) != value}
        if metadata:
            cleaned = self._clean_metadata(metadata)
            new = {k: v for k, v in cleaned.items() if node.metadata.get(k) != v}
            if new:
                body["metadata"] = new
        if before is not None and before != wanted.get("content"):
            # Also if the node already has this content as an override of the document.
            body |= {"content": wanted["content"], "before": self._clean(before, "content")}
        changed = tuple(name for name in body if name != "before")
        if body:
            if updated_at:
                body["updated_at"] = updated_at
            if over and "content" in body:
                body["over"] = over
            self._record("node.put", node_id, body=body)
        return changed

    def delete_node(self, node_id: NodeId) -> None:
        self._record("node.delete", node_id)

    def restore_node(self, node_id: NodeId) -> None:
        self._record("node.restore", node_id)

    def settle(self, node_id: NodeId, fields: Sequence[str], over: Sequence[Ulid]) -> None:
        """Mark a conflict as reviewed: these records no longer count."""
        self._record("node.settle", node_id, body={"fields": list(fields), "over": list(over)})

    # Tags

    def tag(self, node_id: NodeId, tag: str, created_at: str | None = None) -> bool:
        """Add a tag to a node; whether it is new."""
        word = model.tag(tag)
        self._refuse_secret(word, "A tag")
        if self.has_tag(node_id, word):
            return False
        self._require(node_id)
        body = {"created_at": created_at} if created_at else {}
        self._record("tag.add", node_id, word, body=body)
        self._tags[node_id, word] = True
        return True

    def untag(self, node_id: NodeId, tag: str) -> bool:
        """Remove a tag from a node; whether it had it."""
        if not self.has_tag(node_id, tag):
            return False
        self._record("tag.remove", node_id, tag)
        self._tags[node_id, tag] = False
        return True

    def set_tier(self, node_id: NodeId, tier: str) -> list[str]:
        """Set a node's tier; returns the tiers that it replaces. A pin stays."""
        present = [known for known in model.TIERS if self.has_tag(node_id, known)]
        self.tag(node_id, tier)
        return [old for old in model.replaced_tiers(present, [tier]) if self.untag(node_id, old)]

    def has_tag(self, node_id: NodeId, tag: str) -> bool:
        if (known := self._tags.get((node_id, tag))) is not None:
            return known
        if node_id in self.lookup.new_nodes:
            return False
        row = self.graph.connection.execute(
            "SELECT 1 FROM tags WHERE node_id = ? AND tag = ?", (node_id, tag)
        ).fetchone()
        return row is not None

    # Edges

    def link(
        self,
        from_id: NodeId,
        to_id: NodeId,
        edge_type: str,
        evidence: Evidence | Mapping[str, Any],
        *,
        edge_id: Ulid | None = None,
        created_at: str | None = None,
        outside: bool = False,
    ) -> bool:
        """Add an edge, or new evidence for it; whether anything changed.

        An `outside` edge points to a node of another store.
        """
        kind = model.edge_type(edge_type)
        if from_id == to_id:
            raise UsageError(f"An edge cannot lead from {ids.short(from_id)} to itself.")
        self._require(from_id)
        if not outside:
            self._require(to_id)
        details = evidence.metadata() if isinstance(evidence, Evidence) else evidence
        metadata = self._clean_metadata(details)
        key = records.edge_key(kind, to_id)
        is_new = (from_id, key) in self.lookup.new_edges
        present = None if is_new else self.graph.edge(from_id, to_id, kind)
        if present and present.metadata == metadata:
            return False
        body: dict[str, Any] = {"id": present.id if present else edge_id or ids.new_ulid()}
        if metadata:
            body["metadata"] = metadata
        if created_at or present:
            body["created_at"] = created_at or (present.created_at if present else None)
        if outside:
            body["outside"] = True
        self._record("edge.put", from_id, key, to_id, body)
        if is_new:
            self._without_records.keys.add((from_id, key))
        return True

    def unlink(self, from_id: NodeId, to_id: NodeId, edge_type: str) -> bool:
        if self.graph.edge(from_id, to_id, edge_type) is None:
            return False
        self._record("edge.delete", from_id, records.edge_key(edge_type, to_id), to_id)
        return True

    def _require(self, node_id: NodeId) -> None:
        """Raise if another process has deleted the node."""
        if node_id in self._new or node_id in self.lookup.nodes:
            return
        if not self.graph.has(node_id):
            raise NodeNotFound(f"There is no node {node_id} any more.")

    # Views

    def put_view(
        self, name: str, query: str, budget: int | None, times: tuple[str, str] | None = None
    ) -> None:
        if budget is not None and not model.SMALLEST_BUDGET <= budget <= model.LARGEST_BUDGET:
            raise UsageError(
                f"A view cannot have a budget of {budget:,} tokens.",
                hint=f"Give one from {model.SMALLEST_BUDGET} to {model.LARGEST_BUDGET:,}.",
            )
        self._refuse_secret(name, "The name of a view")
        body: dict[str, Any] = {"query": self._clean(query, "query")}
        if budget is not None:
            body["budget"] = budget
        if times:
            body["created_at"], body["updated_at"] = times
        self._record("view.put", name, body=body)

    def set_current_task(self, place: str, task: str | None) -> None:
        """Set the current task of a place, such as a working tree."""
        self._record("task.set", place, body={"task": task} if task else {})

    def delete_view(self, name: str) -> None:
        self._record("view.delete", name)

    # For other modules of this package

    def repeat(self, record: Record, kind: str, body: Mapping[str, Any]) -> None:
        """Record something about the subject of another record, to undo that one."""
        self._record(kind, record.subject, record.key, record.target, body)

    def mark_undone(self, change: str) -> None:
        self._record("undo", change)

    def _record(
        self,
        kind: str,
        subject: str,
        key: str = "",
        target: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        now = clock.now_ms()
        stamp = self._clock.tick(now)
        fields = dict(body or {})
        if clock.stamp_ms(stamp) > now + _AHEAD_MS and kind in _DATED:
            # A clock was ahead. Stamps continue from there, but people see the real time.
            for name in _DATED[kind]:
                if name != "created_at" or kind != "node.put" or "content" in fields:
                    fields.setdefault(name, clock.iso(now))
        self.records.append(
            Record(
                self._new_record_id(),
                stamp,
                self.id,
                self.action,
                kind,
                subject,
                key,
                target,
                fields,
                self._who.session,
                self._who.author,
            )
        )

    def _new_record_id(self) -> Ulid:
        if not self._record_ids:
            # A small change takes few, a large one many at once.
            self._record_ids = ids.new_ulids(self._ids_taken)[::-1]
            self._ids_taken = min(2 * self._ids_taken, _MOST_IDS)
        return self._record_ids.pop()

    def write(self) -> None:
        """Write the records collected so far. A large change is written in parts."""
        if self.graph.write_records is not None:
            self.graph.write_records(self.records)
        else:
            records.insert(self.graph.connection, self.records)
            materialise_written(self.graph.connection, self.records, self._without_records)
        if self.graph.scope == PROJECT:
            self.written += self.records
        self.records.clear()
        # The tables have them now.
        self._tags.clear()
        self._new.clear()
        self._without_records = NewSubjects(set(), set())

    def _clean(self, text: str, where: str) -> str:
        # Text from JSON and other programs may contain surrogates, which cannot be stored.
        text.encode("utf-8")
        if text in self.lookup.clean_texts:
            return text
        redacted = _redact_word(text) if len(text) < _SHORT else redact(text)
        place = f"{self.source} {where}".strip()
        self.redacted += [
            Redaction(place, finding.rule, finding.line) for finding in redacted.findings
        ]
        return redacted.text

    def _refuse_secret(self, word: str, what: str) -> None:
        """Refuse a name with a secret: redacting it would change the name."""
        if _redact_word(word).findings:
            raise ContentRefused(f"{what} contains a secret.", hint="Secrets are not stored.")

    def _clean_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for key, value in metadata.items():
            name = self._clean(str(key), "metadata")
            cleaned[name] = self._clean_value(name, value)
        return cleaned

    def _clean_value(self, key: str, value: Any) -> Any:
        """A JSON value without secrets. Redaction also looks at the key."""
        if isinstance(value, str):
            text = self._clean(searched_text(key, value), f"metadata {key}")
            return text.removeprefix(searched_text(key, ""))
        if isinstance(value, Mapping):
            return self._clean_metadata(value)
        if isinstance(value, list | tuple):
            return [self._clean_value(key, nested) for nested in value]
        if isinstance(value, float) and not isfinite(value):
            raise ContentRefused(f"The metadata {key} is {value}, which is not a JSON number.")
        return value


def searched_text(key: str, value: str) -> str:
    """The text in which a secret is looked for in a value of the metadata."""
    return f"{key}={value}"
