"""Takes in what comes from elsewhere: what is new is added, what changed is merged.

Of a node that is here already, the source's last word is known: the records of earlier imports
say it. Only what the source has changed since then is a change; what a person has changed here
meanwhile stays, unless the source's is newer. Tags and edges are united. What was deleted or
removed here does not come back, unless it was an import that was undone.

Items are written down in parts, so that a large source need not fit into memory; it is still one
change, and one transaction.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import ContentRefused, ImportConflict, UsageError, ViewNotFound
from ctx.ids import NodeId, Ulid
from ctx.memory import records, replay, undo
from ctx.memory.changes import Change, Who
from ctx.memory.foreign import incoming
from ctx.memory.foreign.incoming import Item, Skipped
from ctx.memory.graph import Graph
from ctx.memory.model import DEFAULT_QUERY, DEFAULT_VIEW, Draft, Edge, Evidence, Node, View
from ctx.memory.records import Record

ACTION = "import"
"""The verb of the changes that are made here; by it, earlier ones are known."""

_PART = 500
_CONFLICTS_SHOWN = 5
_FIELDS = {"type": "node_type", "content": "content", "summary": "summary"}


class Counts(NamedTuple):
    """What became of the items."""

    added: Mapping[str, int]
    """New nodes, by type."""
    updated: int
    unchanged: int
    kept: int
    """Nodes that are newer here than in the source, and stay as they are."""
    tags: int
    """Tags that nodes here were given; those of new nodes are not counted."""
    edges: int
    views: int
    cleaned: int
    """Characters that no text may hold, each replaced by U+FFFD."""


class Intake:
    """One import under way, inside the transaction of its change: an error takes all of it back."""

    def __init__(self, change: Change) -> None:
        self.skipped: list[Skipped] = []
        self.has_written = False
        self._change = change
        self._graph = change.graph
        self._added: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        # What is recorded but not in the tables yet.
        self._recent: set[str] = set()
        self._imports: dict[str, bool] = {}

    def take(self, item: Item, program: str) -> None:
        match item:
            case Skipped():
                self.skipped.append(item)
            case Draft():
                self._take_draft(item, program)
            case Edge():
                self._take_edge(item)
            case View():
                self._take_view(item)
        if len(self._change.records) > _PART:
            self._write()

    def finish(self) -> Counts:
        self._write()
        kinds = ("updated", "unchanged", "kept", "tags", "edges", "views", "cleaned")
        return Counts(dict(sorted(self._added.items())), *(self._counts[kind] for kind in kinds))

    def delete_default_view(self) -> None:
        """Where the source has none, and the one here is nobody's."""
        present = _view(self._graph, DEFAULT_VIEW)
        if present and is_untouched(present):
            self._change.delete_view(DEFAULT_VIEW)
            self._counts["views"] += 1

    def _write(self) -> None:
        self.has_written = self.has_written or bool(self._change.records)
        self._change.apply()
        self._change.records.clear()
        self._recent.clear()

    def _take_draft(self, draft: Draft, program: str) -> None:
        draft = self._clean(draft)
        if draft.id in self._recent:
            self._write()
        try:
            node = next(self._graph.nodes([draft.id]), None)
            if node is not None:
                self._merge(draft, node)
            elif (by := self._deleted_by(draft.id)) not in (None, "undo"):
                reason = f"it was deleted here (`ctx restore {draft.id}` brings it back)"
                self.skipped.append(Skipped(f"node {draft.id}", reason))
                return
            else:
                self._add(draft)
                if by == "undo":
                    self._change.restore_node(draft.id)
        except (ContentRefused, UsageError) as error:
            reason = error.message[:1].lower() + error.message[1:].rstrip(".")
            self.skipped.append(Skipped(f"node {draft.id}", reason))
            return
        evidence = Evidence(program).metadata()
        for edge_type, to_id in draft.edges:
            edge_id = incoming.derived_id(None, program, draft.id, edge_type, to_id)
            at = draft.created_at or None
            self._link(draft.id, to_id, edge_type, evidence, edge_id=edge_id, created_at=at)

    def _clean(self, draft: Draft) -> Draft:
        content, in_content = incoming.cleaned(draft.content)
        summary, in_summary = incoming.cleaned(draft.summary or "")
        metadata, in_metadata = incoming.cleaned_value(dict(draft.metadata))
        self._counts["cleaned"] += in_content + in_summary + in_metadata
        return draft._replace(content=content, summary=summary or None, metadata=metadata)

    def _deleted_by(self, node_id: NodeId) -> str | None:
        """The verb that deleted it. To undo an import is not to say that it is unwanted."""
        about = records.about(self._graph.connection, node_id, "node.")
        said = [record for record in about if record.kind in ("node.delete", "node.restore")]
        return said[-1].action if said and said[-1].kind == "node.delete" else None

    def _add(self, draft: Draft) -> None:
        now = clock.iso(clock.now_ms())
        created_at = draft.created_at or now
        self._change.add_node(
            draft.type,
            draft.content,
            summary=draft.summary,
            metadata=draft.metadata,
            node_id=draft.id,
            times=(created_at, draft.updated_at or created_at),
        )
        self._recent.add(draft.id)
        self._added[draft.type] += 1
        for tag in draft.tags:
            self._tag(draft.id, tag, draft.tagged_at.get(tag) or created_at)

    def _tag(self, node_id: NodeId, tag: str, at: str | None) -> bool:
        try:
            return self._change.tag(node_id, tag, at)
        except ContentRefused as error:
            self.skipped.append(Skipped(f"a tag of {node_id}", error.message.rstrip(".").lower()))
            return False

    def _merge(self, draft: Draft, node: Node) -> None:
        about = records.about(self._graph.connection, draft.id)
        before = replay.node(record for record in about if self._is_import(record))
        changed = self._changed(draft, node, before)
        if changed and _is_newer(draft, node, before):
            self._change.update_node(draft.id, **changed, updated_at=draft.updated_at or None)
            self._counts["updated"] += 1
            # The next word about this node is said about what it is then.
            self._recent.add(draft.id)
        else:
            self._counts["kept" if changed else "unchanged"] += 1
        for tag in draft.tags:
            at = draft.tagged_at.get(tag) or draft.created_at
            if tag not in node.tags and not _removed(about, "tag.remove", tag, at):
                self._counts["tags"] += self._tag(draft.id, tag, at or None)

    def _is_import(self, record: Record) -> bool:
        """Whether a record is what the source said, and was not taken back since."""
        if record.change not in self._imports:
            undone = record.action == ACTION and undo.is_undone(self._graph, record.change)
            self._imports[record.change] = record.action == ACTION and not undone
        return self._imports[record.change]

    def _changed(self, draft: Draft, node: Node, before: replay.NodeState | None) -> dict[str, Any]:
        """What the source says now and neither this node nor the source said before."""
        said = draft.type, draft.content.strip(), draft.summary, draft.metadata
        if before and said == (before.type, before.content, before.summary, before.metadata):
            return {}
        metadata = {key: None for key in node.metadata if key not in draft.metadata}
        metadata.update(draft.metadata)
        # A change that is never applied: it says what would be written, without secrets.
        trial = Change(self._graph, ACTION, Who("", ""))
        if not trial.update_node(
            draft.id,
            node_type=draft.type,
            content=draft.content,
            summary=draft.summary or "",
            metadata=metadata,
        ):
            return {}
        body = trial.records[-1].body
        changed: dict[str, Any] = {}
        for name, argument in _FIELDS.items():
            if name in body and (before is None or getattr(before, name) != body[name]):
                changed[argument] = body[name] or ""
        keys = {
            key: value
            for key, value in body.get("metadata", {}).items()
            if before is None or before.metadata.get(key) != value
        }
        return {**changed, "metadata": keys} if keys else changed

    def _take_edge(self, edge: Edge) -> None:
        metadata, count = incoming.cleaned_value(dict(edge.metadata))
        self._counts["cleaned"] += count
        self._link(
            edge.from_id,
            edge.to_id,
            edge.type,
            metadata,
            edge_id=edge.id,
            created_at=edge.created_at or None,
        )

    def _link(
        self,
        from_id: NodeId,
        to_id: NodeId,
        edge_type: str,
        metadata: Mapping[str, Any],
        *,
        edge_id: Ulid | None = None,
        created_at: str | None = None,
    ) -> None:
        what = f"edge {from_id} {edge_type} {to_id}"
        missing = [end for end in (from_id, to_id) if not self._is_here(end)]
        if missing:
            self.skipped.append(Skipped(what, f"{missing[0]} is not here"))
            return
        if from_id == to_id:
            self.skipped.append(Skipped(what, "it leads to where it begins"))
            return
        key = records.edge_key(edge_type, to_id)
        name = f"{from_id} {key}"
        if name in self._recent or self._graph.edge(from_id, to_id, edge_type):
            return
        about = records.about_key(self._graph.connection, from_id, "edge.", key)
        if _removed(about, "edge.delete", key, created_at or ""):
            return
        free = edge_id if edge_id and not self._names_another(edge_id) else None
        self._counts["edges"] += self._change.link(
            from_id,
            to_id,
            edge_type,
            metadata,
            edge_id=free,
            created_at=created_at,
        )
        self._recent.update((name, f"edge {free}"))

    def _is_here(self, node_id: NodeId) -> bool:
        return node_id in self._recent or self._graph.has(node_id)

    def _names_another(self, edge_id: str) -> bool:
        row = self._graph.connection.execute("SELECT 1 FROM edges WHERE id = ?", (edge_id,))
        return f"edge {edge_id}" in self._recent or row.fetchone() is not None

    def _take_view(self, view: View) -> None:
        present = _view(self._graph, view.name)
        if present and ((present.query, present.budget) == (view.query, view.budget)):
            return
        if present and is_untouched(view):
            return
        if present and not is_untouched(present):
            if view.updated_at <= present.updated_at:
                return
        elif present:
            # Its time would stay with the one that takes its place.
            self._change.delete_view(view.name)
        now = clock.iso(clock.now_ms())
        times = view.created_at or now, view.updated_at or now
        self._change.put_view(view.name, incoming.cleaned(view.query)[0], view.budget, times)
        self._counts["views"] += 1


def is_untouched(view: View) -> bool:
    """Whether this is the default view as every store has it from the beginning."""
    return (
        view.name == DEFAULT_VIEW
        and view.query == DEFAULT_QUERY
        and view.budget is None
        and view.created_at == view.updated_at
    )


def _view(graph: Graph, name: str) -> View | None:
    try:
        return graph.view(name)
    except ViewNotFound:
        return None


def _is_newer(draft: Draft, node: Node, before: replay.NodeState | None) -> bool:
    """Whether the source's word counts: it is later, or nobody has said anything here since."""
    if before is not None and before.updated_at == node.updated_at:
        return True
    return not draft.updated_at or draft.updated_at > node.updated_at


def _removed(about: Iterable[Record], kind: str, key: str, given_at: str) -> bool:
    """Whether somebody took away here what the source still has from before."""
    return any(
        record.kind == kind
        and record.key == key
        and record.action != "undo"
        and replay.at(record) >= given_at
        for record in about
    )


def require_no_conflict(graph: Graph, items: Iterable[Item]) -> None:
    """Raise if an item says something else than what is here under the same name."""
    found: list[str] = []
    count = 0
    for item in items:
        if conflict := _conflict(graph, item):
            count += 1
            if len(found) < _CONFLICTS_SHOWN:
                found.append(f"  {conflict}")
    if count:
        more = [f"  … and {count - len(found):,} more"] if count > len(found) else []
        noun = "1 thing is" if count == 1 else f"{count:,} things are"
        raise ImportConflict(
            f"{noun} here already, and different.", detail="\n".join([*found, *more])
        )


def _conflict(graph: Graph, item: Item) -> str | None:
    if isinstance(item, Draft):
        node = next(graph.nodes([item.id]), None)
        if node is None:
            return None
        removed = {key: None for key in node.metadata if key not in item.metadata}
        trial = Change(graph, ACTION, Who("", ""))
        differing = trial.update_node(
            item.id,
            node_type=item.type,
            content=incoming.cleaned(item.content)[0],
            summary=incoming.cleaned(item.summary or "")[0],
            metadata={**removed, **incoming.cleaned_value(dict(item.metadata))[0]},
        )
        if set(item.tags) != set(node.tags):
            differing = (*differing, "tags")
        return f"node {item.id}: {', '.join(differing)}" if differing else None
    if isinstance(item, View):
        view = _view(graph, item.name)
        same = view is None or (view.query, view.budget) == (item.query, item.budget)
        if view and not same and not is_untouched(view) and not is_untouched(item):
            return f"view {item.name}: {view.query}"
    return None
