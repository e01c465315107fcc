"""Imports items from other sources: new items are added, changed ones are merged.

For an existing node, the records of earlier imports show its last state in the source. Only what
the source has changed since then is applied; local edits stay unless the source is newer. Tags and
edges are united. Nodes that were deleted here are not imported again, unless the undo of an import
deleted them.

An id without a time gets one: the time when the item was made, else the time of the import. The
rest of the id identifies the node at the next import.

Nodes whose text was removed from their page are archived: they are kept, but no context shows them.

Items are written in batches, so that a large source need not fit into memory; it is still one
change and one transaction.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ctx import clock, ids
from ctx.errors import ContentRefused, CtxError, QueryInvalid, UsageError
from ctx.exchange.foreign import foreign_items
from ctx.exchange.foreign.foreign_items import CompletePage, Item, LocatedDraft, SkippedItem
from ctx.ids import NodeId, Ulid
from ctx.memory import inverse_changes, model, records, replay
from ctx.memory.changes import Change, ChangeAuthor, searched_text
from ctx.memory.model import (
    DEFAULT_QUERY,
    DEFAULT_VIEW,
    Draft,
    Edge,
    Evidence,
    Node,
    Redaction,
    View,
)
from ctx.memory.query.compile import Scope, compile_query
from ctx.memory.query.query_parser import parse
from ctx.memory.records import Record
from ctx.memory.written_records import look_up, parts

ACTION = "import"
"""The action of import changes; it identifies earlier imports."""

MOST_NEW = 1000
"""The maximum number of new nodes to list."""

_PART = 2_000
_IN_CONTEXT = frozenset({model.WORKING, model.REFERENCE})
_FIELDS = {"type": "node_type", "content": "content", "summary": "summary"}


class ImportCounts(NamedTuple):
    """The results of an import."""

    added: Mapping[str, int]
    """New nodes, by type."""
    updated: int
    unchanged: int
    kept: int
    """Nodes that are newer here than in the source and stay unchanged."""
    tags: int
    """Tags added to existing nodes."""
    edges: int
    views: int
    archived: int
    """Nodes whose text was removed from their pages."""
    cleaned: int
    """Invalid characters that were replaced by U+FFFD."""


class ItemImporter:
    """A running import, inside the transaction of its change: an error rolls all of it back.

    `expected` is the number of items, if known.
    """

    def __init__(self, change: Change, expected: int = 0) -> None:
        self.skipped: list[SkippedItem] = []
        self.new: list[NodeId] = []
        """The first new nodes."""
        self.has_written = False
        self._change = change
        self._graph = change.graph
        self._added: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        # Recorded, but not in the tables yet.
        self._recent: set[str] = set()
        self._imports: dict[str, bool] = {}
        self._timed: dict[str, NodeId] | None = None
        # Each item is a millisecond after the previous one, and none is in the future.
        self._began = clock.now_ms() - expected
        self._position = 0

    def take_all(self, items: Iterable[Item], program: str) -> None:
        for batch in parts(items):
            # What was recorded before is in the tables then.
            self._write()
            cleaned = [self._clean_item(item) for item in batch]
            self._look_up(cleaned)
            for item in cleaned:
                self._take(item, program)

    def _look_up(self, batch: Iterable[Item]) -> None:
        """Look up what the store has about these items. Ids without a time are looked up later."""
        new_ids: list[str] = []
        edges: list[Edge] = []
        texts: list[str] = []
        for item in batch:
            draft = item.draft if isinstance(item, LocatedDraft) else item
            if isinstance(draft, Draft):
                texts += _searched_texts(draft)
                if not foreign_items.is_untimed(draft.id):
                    new_ids.append(draft.id)
            elif isinstance(item, Edge):
                edges.append(item)
        self._change.lookup = look_up(
            self._graph.connection,
            new_ids,
            (end for edge in edges for end in (edge.from_id, edge.to_id)),
            ((edge.from_id, records.edge_key(edge.type, edge.to_id)) for edge in edges),
            (edge.id for edge in edges),
            texts,
        )

    def _take(self, item: Item, program: str) -> None:
        match item:
            case SkippedItem():
                self.skipped.append(item)
            case Draft():
                self._take_draft(item, _place(item), program)
            case LocatedDraft(place, draft):
                self._take_draft(draft, place, program)
            case CompletePage():
                self._archive(item)
            case Edge():
                self._change.source = f"edge {item.id}"
                self._link(
                    self._id_of(item.from_id),
                    self._id_of(item.to_id),
                    item.type,
                    item.metadata,
                    edge_id=item.id,
                    created_at=item.created_at or None,
                )
            case View():
                self._take_view(item)
        if len(self._change.records) > _PART:
            self._write()

    def finish(self) -> ImportCounts:
        self._write()
        kinds = ("updated", "unchanged", "kept", "tags", "edges", "views", "archived", "cleaned")
        return ImportCounts(
            dict(sorted(self._added.items())), *(self._counts[kind] for kind in kinds)
        )

    def _write(self) -> None:
        self.has_written = self.has_written or bool(self._change.records)
        self._change.write()
        self._recent.clear()

    def _id_of(self, node_id: NodeId, draft: Draft | None = None) -> NodeId:
        """The id of an item here. An id without a time gets one together with its draft."""
        if not foreign_items.is_untimed(node_id):
            return node_id
        if self._timed is None:
            known = self._graph.connection.execute(
                "SELECT DISTINCT subject FROM records WHERE length(subject) = 26"
            )
            self._timed = {foreign_items.id_without_time(row[0]): row[0] for row in known}
        name = foreign_items.id_without_time(node_id)
        if draft is not None and name not in self._timed:
            self._position += 1
            made = clock.parse_iso(draft.created_at) if draft.created_at else None
            ms = self._began if made is None else max(made, 0)
            self._timed[name] = foreign_items.id_with_time(node_id, ms + self._position)
        return self._timed.get(name, node_id)

    def _take_draft(self, draft: Draft, place: str, program: str) -> None:
        if foreign_items.is_untimed(draft.id):
            draft = draft._replace(id=self._id_of(draft.id, draft))
        self._change.source = place or f"node {draft.id}"
        if draft.id in self._recent:
            self._write()
        is_new = draft.id in self._change.lookup.new_nodes
        try:
            node = None if is_new else next(self._graph.nodes([draft.id]), None)
            if is_new:
                self._add(draft)
                self._change.lookup.new_nodes.discard(draft.id)
            elif node is not None:
                self._merge(draft, node)
            elif (by := self._deleting_action(draft.id)) not in (None, "undo"):
                reason = f"it was deleted here (`ctx restore {draft.id}` restores it)"
                self.skipped.append(SkippedItem(f"node {draft.id}", reason))
                return
            else:
                self._add(draft)
                if by == "undo":
                    self._change.restore_node(draft.id)
        except (ContentRefused, UsageError) as error:
            self.skipped.append(SkippedItem(place or f"node {draft.id}", _reason(error)))
            return
        evidence = Evidence(program).metadata()
        for edge_type, target in draft.edges:
            to_id = self._id_of(target)
            edge_id = foreign_items.derived_id(None, program, draft.id, edge_type, to_id)
            at = draft.created_at or None
            self._link(draft.id, to_id, edge_type, evidence, edge_id=edge_id, created_at=at)

    def _clean_item(self, item: Item) -> Item:
        """The item without characters that cannot be stored, which are counted."""
        if isinstance(item, Draft):
            return self._clean_draft(item)
        if isinstance(item, LocatedDraft):
            return item._replace(draft=self._clean_draft(item.draft))
        if isinstance(item, Edge) and item.metadata:
            metadata, count = foreign_items.cleaned_value(dict(item.metadata))
            self._counts["cleaned"] += count
            return item._replace(metadata=metadata)
        return item

    def _clean_draft(self, draft: Draft) -> Draft:
        content, count = foreign_items.clean_text(draft.content)
        if not (count or draft.summary or draft.metadata):
            return draft
        summary, in_summary = foreign_items.clean_text(draft.summary or "")
        metadata, in_metadata = foreign_items.cleaned_value(dict(draft.metadata))
        self._counts["cleaned"] += count + in_summary + in_metadata
        return draft._replace(content=content, summary=summary or None, metadata=metadata)

    def _deleting_action(self, node_id: NodeId) -> str | None:
        """The action that deleted a node. Undoing an import does not mean that the node is
        unwanted."""
        about = records.records_about(self._graph.connection, node_id, "node.")
        deletions = [record for record in about if record.kind in ("node.delete", "node.restore")]
        return deletions[-1].action if deletions and deletions[-1].kind == "node.delete" else None

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
        if len(self.new) < MOST_NEW:
            self.new.append(draft.id)
        for tag in draft.tags:
            self._tag(draft.id, tag, draft.tagged_at.get(tag) or created_at)

    def _tag(self, node_id: NodeId, tag: str, at: str | None) -> bool:
        try:
            return self._change.tag(node_id, tag, at)
        except (ContentRefused, UsageError) as error:
            self.skipped.append(SkippedItem(f"a tag of {node_id}", _reason(error)))
            return False

    def _merge(self, draft: Draft, node: Node) -> None:
        about = records.records_about(self._graph.connection, draft.id)
        before = replay.node(record for record in about if self._is_import(record))
        changed, redacted = self._changed_fields(draft, node, before)
        if changed and _is_newer(draft, node, before):
            self._change.update_node(draft.id, **changed, updated_at=draft.updated_at or None)
            self._change.redacted += redacted
            self._counts["updated"] += 1
            # Later items about this node apply to its new state.
            self._recent.add(draft.id)
        else:
            self._counts["kept" if changed else "unchanged"] += 1
        for tag in draft.tags:
            at = draft.tagged_at.get(tag) or draft.created_at
            if tag not in node.tags and not _was_removed_by_user(about, "tag.remove", tag, at):
                self._counts["tags"] += self._tag(draft.id, tag, at or None)
                if tag in _IN_CONTEXT and _is_archived(about, node):
                    self._change.untag(draft.id, model.OFF_CONTEXT)

    def _is_import(self, record: Record) -> bool:
        """Whether an import wrote a record, and the import was not undone."""
        if record.change not in self._imports:
            undone = record.action == ACTION and inverse_changes.is_undone(
                self._graph, record.change
            )
            self._imports[record.change] = record.action == ACTION and not undone
        return self._imports[record.change]

    def _changed_fields(
        self, draft: Draft, node: Node, before: replay.NodeState | None
    ) -> tuple[dict[str, Any], list[Redaction]]:
        """The fields that the source has changed since the last import and that differ from the
        node.

        The values are redacted. The second result lists the secrets.
        """
        fields = draft.type, draft.content.strip(), draft.summary, draft.metadata
        if before and fields == (before.type, before.content, before.summary, before.metadata):
            return {}, []
        metadata = {key: None for key in node.metadata if key not in draft.metadata}
        metadata.update(draft.metadata)
        # A change that is never applied: it shows what would be written.
        trial = Change(self._graph, ACTION, ChangeAuthor("", ""))
        trial.source = self._change.source
        if not trial.update_node(
            draft.id,
            node_type=draft.type,
            content=draft.content,
            summary=draft.summary or "",
            metadata=metadata,
        ):
            return {}, []
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
        return ({**changed, "metadata": keys} if keys else changed), trial.redacted

    def _archive(self, page: CompletePage) -> None:
        """Archive nodes whose text was removed from a page. A pin is a person's decision and
        stays."""
        present = {self._id_of(node_id) for node_id in page.node_ids}
        rows = self._graph.connection.execute(
            "SELECT id FROM nodes WHERE json_extract(metadata, '$.path') = ?",
            (foreign_items.clean_text(page.path)[0],),
        ).fetchall()
        for node in self._graph.nodes(row[0] for row in rows if row[0] not in present):
            is_of_page = set(page.tags) <= set(node.tags)
            if is_of_page and _IN_CONTEXT.intersection(node.tags) and not self._is_wanted(node):
                self._change.set_tier(node.id, model.OFF_CONTEXT)
                self._counts["archived"] += 1

    def _is_wanted(self, node: Node) -> bool:
        """Whether a person restored it after an import had archived it."""
        about = records.records_about(self._graph.connection, node.id, "tag.add")
        tier_tags = [record for record in about if record.key in model.TIERS[1:]]
        archived = any(r.key == model.OFF_CONTEXT and self._is_import(r) for r in tier_tags[:-1])
        return archived and not self._is_import(tier_tags[-1])

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
        missing = [end for end in (from_id, to_id) if not self._node_exists(end)]
        if missing:
            self.skipped.append(SkippedItem(what, f"{missing[0]} is not here"))
            return
        if from_id == to_id:
            self.skipped.append(SkippedItem(what, "it links a node to itself"))
            return
        key = records.edge_key(edge_type, to_id)
        name = f"{from_id} {key}"
        if name in self._recent:
            return
        new_edges = self._change.lookup.new_edges
        if (from_id, key) not in new_edges:
            if self._graph.edge(from_id, to_id, edge_type):
                return
            about = records.about_key(self._graph.connection, from_id, "edge.", key)
            if _was_removed_by_user(about, "edge.delete", key, created_at or ""):
                return
        if edge_id and foreign_items.is_untimed(edge_id):
            edge_id = foreign_items.id_with_time(edge_id, ids.ulid_ms(max(from_id, to_id)))
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
        new_edges.discard((from_id, key))
        self._change.lookup.free_edge_ids.discard(free or "")

    def _node_exists(self, node_id: NodeId) -> bool:
        return (
            node_id in self._recent
            or node_id in self._change.lookup.nodes
            or self._graph.has(node_id)
        )

    def _names_another(self, edge_id: str) -> bool:
        if edge_id in self._change.lookup.free_edge_ids:
            return False
        row = self._graph.connection.execute("SELECT 1 FROM edges WHERE id = ?", (edge_id,))
        return f"edge {edge_id}" in self._recent or row.fetchone() is not None

    def _take_view(self, view: View) -> None:
        present = self._graph.find_view(view.name)
        if present and ((present.query, present.budget) == (view.query, view.budget)):
            return
        if present and is_untouched(view):
            return
        if present and not is_untouched(present) and view.updated_at <= present.updated_at:
            return
        now = clock.iso(clock.now_ms())
        times = view.created_at or now, view.updated_at or now
        query = foreign_items.clean_text(view.query)[0]
        self._change.source = f"view {view.name}"
        try:
            model.view_name(view.name)
            compile_query(parse(query), Scope(), clock.now_ms())
            Change(self._graph, ACTION, ChangeAuthor("", "")).put_view(
                view.name, query, view.budget
            )
        except (ContentRefused, QueryInvalid, UsageError) as error:
            self.skipped.append(SkippedItem(f"view {view.name}", _reason(error)))
            return
        if present and is_untouched(present):
            # Otherwise the new view would keep the time of the old one.
            self._change.delete_view(view.name)
        self._change.put_view(view.name, query, view.budget, times)
        self._counts["views"] += 1


def _searched_texts(draft: Draft) -> Iterator[str]:
    """The texts of a draft in which a change looks for secrets."""
    yield draft.content.strip()
    if draft.summary:
        yield draft.summary.strip()
    for key, value in draft.metadata.items():
        if isinstance(value, str):
            yield searched_text(key, value)


def _place(draft: Draft) -> str:
    """The place of a draft in its page, if it has one."""
    path, line = draft.metadata.get("path"), draft.metadata.get("line")
    return f"{os.path.basename(path)}:{line}" if isinstance(path, str) and line else ""


def _reason(error: CtxError) -> str:
    return error.message[:1].lower() + error.message[1:].rstrip(".")


def is_untouched(view: View) -> bool:
    """Whether this is the unchanged default view of every new store."""
    return (
        view.name == DEFAULT_VIEW
        and view.query == DEFAULT_QUERY
        and view.budget is None
        and view.created_at == view.updated_at
    )


def _is_newer(draft: Draft, node: Node, before: replay.NodeState | None) -> bool:
    """Whether the source wins: it is newer, or the node was not edited here since."""
    if before is not None and before.updated_at == node.updated_at:
        return True
    return not draft.updated_at or draft.updated_at > node.updated_at


def _is_archived(about: Iterable[Record], node: Node) -> bool:
    """Whether it is archived only because its page did not contain it for a while."""
    added = [
        record for record in about if (record.kind, record.key) == ("tag.add", model.OFF_CONTEXT)
    ]
    return model.OFF_CONTEXT in node.tags and bool(added) and added[-1].action == ACTION


def _was_removed_by_user(about: Iterable[Record], kind: str, key: str, given_at: str) -> bool:
    """Whether a person removed something here that the source still has."""
    return any(
        record.kind == kind
        and record.key == key
        and record.action not in ("undo", ACTION)
        and replay.wall_time(record) >= given_at
        for record in about
    )
