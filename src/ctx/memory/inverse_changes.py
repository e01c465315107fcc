"""Computes the records that undo a change.

No record is removed. A change is in effect unless it is undone, and an undo can itself be undone.
An undo sets everything that the change touched to the state that the remaining changes in effect
give, as if this change had never been made. So any order of undo and redo gives the same result.
Later edits by others stay and are reported.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from ctx import clock
from ctx.memory import records, replay
from ctx.memory.changes import Change
from ctx.memory.graph import Graph
from ctx.memory.records import Record

ACTION = "undo"


class ChangeSummary(NamedTuple):
    """A change that was made."""

    id: str
    at: str
    action: str
    session: str
    author: str
    records: int
    undone: bool
    what: str
    """A short description of its first record."""


class KeptField(NamedTuple):
    """A field that was not undone because it has changed since."""

    subject: str
    what: str


class ChangeStamp(NamedTuple):
    """The stamp and id of a change."""

    stamp: int
    change: str


def changes(graph: Graph, session: str | None = None) -> Iterator[ChangeStamp]:
    """The changes of one session or of all, newest first.

    The records of a change have consecutive stamps, so a large change is skipped in one step.
    """
    before = 1 << 62
    while row := graph.connection.execute(
        "SELECT stamp, change, session FROM records WHERE stamp < ? AND stamp > 0"
        " ORDER BY stamp DESC LIMIT 1",
        (before,),
    ).fetchone():
        if session in (None, row[2]):
            yield ChangeStamp(*row[:2])
        before = graph.connection.execute(
            "SELECT min(stamp) FROM records WHERE change = ?", (row[1],)
        ).fetchone()[0]


def describe_change(graph: Graph, change: str) -> ChangeSummary:
    first = records.first_of_change(graph.connection, change)
    count = graph.connection.execute(
        "SELECT count(*) FROM records WHERE change = ?", (change,)
    ).fetchone()[0]
    at = clock.iso(clock.stamp_ms(first.stamp))
    undone = is_undone(graph, change)
    what = records.describe(first, first.subject)
    if first.kind == "node.delete":
        state = replay.node(records.records_about(graph.connection, first.subject, "node."))
        if state is not None:
            what = f"deleted: {' '.join(state.content.split())[:60]}"
    return ChangeSummary(change, at, first.action, first.session, first.author, count, undone, what)


def is_undone(graph: Graph, change: str, *, as_if: str | None = None) -> bool:
    """Whether a change is undone, and the undo is not; `as_if` is a change to treat as undone."""
    takers: dict[str, list[str]] = {}
    undone: dict[str, bool] = {}
    # The undo changes are decided first. The loop allows a thousand undos of undos.
    waiting = [change]
    while waiting:
        current = waiting[-1]
        if current not in takers:
            about = records.records_about(graph.connection, current, ACTION)
            takers[current] = [record.change for record in about if _takes_back(graph, record)]
            waiting += takers[current]
        else:
            waiting.pop()
            by = takers[current]
            undone[current] = current == as_if or any(not undone[taker] for taker in by)
    return undone[change]


def origin(graph: Graph, change: str) -> str:
    """The change that a chain of undos starts from; a change that is no undo itself."""
    while True:
        of_change = records.of_change(graph.connection, change)
        about = [
            record for record in of_change if record.kind == ACTION and _takes_back(graph, record)
        ]
        if not about:
            return change
        change = about[0].subject


def _takes_back(graph: Graph, record: Record) -> bool:
    """Whether an undo is later than all records of the change it undoes.

    Anybody may have written records. Two changes that undo each other have no effect.
    """
    return record.order > records.end_of_change(graph.connection, record.subject)


def take_back(change: Change, undone: str) -> list[KeptField]:
    """Record the undo of a change. Returns the fields that were edited since and are kept."""
    return _UndoWriter(change, undone).run()


class _UndoWriter:
    def __init__(self, change: Change, undone: str) -> None:
        self._change = change
        self._connection = change.graph.connection
        self._undone = undone
        self._root = origin(change.graph, undone)
        self._kept: dict[KeptField, None] = {}

        @cache
        def holds(other: str) -> bool:
            return not is_undone(change.graph, other, as_if=undone)

        self._holds = holds

    def run(self) -> list[KeptField]:
        self._change.mark_undone(self._undone)
        spoken_of: dict[tuple[str, str, str], list[Record]] = {}
        for record in records.of_change(self._connection, self._root):
            family = record.kind.partition(".")[0] + "."
            spoken_of.setdefault((family, record.subject, record.key), []).append(record)
        for (family, subject, key), own in spoken_of.items():
            about = records.about_key(self._connection, subject, family, key)
            valid = [r for r in about if r.action != ACTION and self._holds(r.change)]
            # Records from documents have no time, so they are never later.
            others = [r for r in valid if r.change != self._root and r.stamp < records.BEYOND]
            later = [r for r in others if r.order > own[-1].order]
            match family:
                case "node.":
                    self._node(own, about, valid, later)
                case "tag.":
                    self._single(own[0], replay.tags(about), replay.tags(valid), later)
                case "edge.":
                    self._single(own[0], replay.edges(about), replay.edges(valid), later)
                case "view.":
                    self._view(own[0], replay.view(about), replay.view(valid), later)
                case "task.":
                    self._task(own[0], replay.current_task(about), replay.current_task(valid))
        return list(self._kept)

    def _single(
        self, record: Record, now: dict[Any, Any], wanted: dict[Any, Any], later: list[Record]
    ) -> None:
        """Undo a tag or an edge, which exists or does not."""
        if later:
            self._keep(record, record.key)
        elif now != wanted:
            family = record.kind.partition(".")[0]
            for state in wanted.values():
                if family == "tag":
                    self._change.repeat(record, "tag.add", {"created_at": state})
                else:
                    self._change.repeat(record, "edge.put", state._asdict())
            if not wanted:
                kind = "tag.remove" if family == "tag" else "edge.delete"
                self._change.repeat(record, kind, {})

    def _view(
        self,
        record: Record,
        now: replay.ViewState | None,
        wanted: replay.ViewState | None,
        later: list[Record],
    ) -> None:
        if later:
            self._keep(record, "view")
        elif now != wanted:
            if wanted is None:
                self._change.repeat(record, "view.delete", {})
            else:
                if now is not None and now.created_at != wanted.created_at:
                    self._change.repeat(record, "view.delete", {})
                self._change.repeat(record, "view.put", wanted._asdict())

    def _task(
        self, record: Record, now: replay.TaskState | None, wanted: replay.TaskState | None
    ) -> None:
        if (now and now.word) != (wanted and wanted.word):
            self._change.set_current_task(record.subject, wanted.word if wanted else None)

    def _node(
        self, own: list[Record], about: list[Record], valid: list[Record], later: list[Record]
    ) -> None:
        record = own[0]
        now, wanted = replay.node(about), replay.node(valid)
        # A document gives a recorded node its text, but does not keep it alive.
        recorded = replay.node(r for r in valid if r.stamp < records.BEYOND or "type" in r.body)
        if recorded is None or not recorded.alive:
            wanted = None
        puts = [other for other in later if other.kind == "node.put"]
        is_there = now is not None and now.alive
        if is_there and wanted is None:
            if puts:
                # It was edited since.
                self._keep(record, "the node")
            else:
                self._change.repeat(record, "node.delete", {})
            return
        if now is None or wanted is None:
            return
        if not is_there:
            self._change.repeat(record, "node.restore", {})
        body = self._fields(own, puts, now, wanted)
        written = [record for record in own if "before" in record.body]
        says = [r for r in about if r.stamp >= records.BEYOND and "digest" in r.body]
        if written and says and not any("content" in put.body for put in puts):
            body.pop("content", None)
            body |= self._in_document(written[-1], now.content, says[-1].body["digest"])
        if metadata := self._metadata(own, puts, now, wanted):
            body["metadata"] = metadata
        if body:
            self._change.repeat(record, "node.put", body)

    def _fields(
        self,
        own: list[Record],
        puts: list[Record],
        now: replay.NodeState,
        wanted: replay.NodeState,
    ) -> dict[str, Any]:
        """The fields to write so that the node is as wanted; what was edited since is kept."""
        body: dict[str, Any] = {}
        for name in replay.FIELDS:
            if any(name in record.body for record in own):
                if any(name in put.body for put in puts):
                    self._keep(own[0], name)
                if getattr(now, name) != getattr(wanted, name):
                    body[name] = getattr(wanted, name)
        return body

    def _metadata(
        self,
        own: list[Record],
        puts: list[Record],
        now: replay.NodeState,
        wanted: replay.NodeState,
    ) -> dict[str, Any]:
        """The same for the metadata."""
        metadata: dict[str, Any] = {}
        for key in dict.fromkeys(key for record in own for key in record.body.get("metadata", {})):
            if any(key in put.body.get("metadata", {}) for put in puts):
                self._keep(own[0], f"meta {key}")
            if now.metadata.get(key) != wanted.metadata.get(key):
                metadata[key] = wanted.metadata.get(key)
        return metadata

    def _in_document(self, put: Record, now: str, digest: str) -> dict[str, str]:
        """The content that overrides a document that the change was written into."""
        there, then = put.body["content"], put.body["before"]
        if self._holds(self._root):
            there, then = then, there
        if now == there:
            return {"content": then, "over": digest}
        if now != then:
            self._keep(put, "content")
        return {}

    def _keep(self, record: Record, what: str) -> None:
        # Only the undo of an original change reports kept fields, not a redo.
        if self._root == self._undone:
            self._kept[KeptField(record.subject, what)] = None
