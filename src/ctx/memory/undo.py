"""What takes a change back.

Nothing is removed from the records: to undo is to say the opposite, in a change of its own, which
can be undone too. What somebody else has changed since stays as it is, and is named.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from ctx import clock
from ctx.memory import records, replay
from ctx.memory.changes import Change
from ctx.memory.graph import Graph
from ctx.memory.records import Record


class Made(NamedTuple):
    """A change that was made."""

    id: str
    at: str
    action: str
    session: str
    author: str
    records: int
    undone: bool


class Kept(NamedTuple):
    """Something that was not taken back, because it has changed since."""

    subject: str
    what: str


def changes(graph: Graph, session: str | None = None) -> Iterator[Made]:
    """The changes that were made, newest first, by one session or by all.

    A change's records have stamps without a gap, so that a large one is stepped over.
    """
    before = 1 << 62
    while row := graph.connection.execute(
        "SELECT change, session FROM records WHERE stamp < ? AND stamp > 0"
        " ORDER BY stamp DESC LIMIT 1",
        (before,),
    ).fetchone():
        if session in (None, row[1]):
            yield made(graph, row[0])
        before = graph.connection.execute(
            "SELECT min(stamp) FROM records WHERE change = ?", (row[0],)
        ).fetchone()[0]


def made(graph: Graph, change: str) -> Made:
    stamp, action, session, author, count = graph.connection.execute(
        "SELECT max(stamp), action, session, author, count(*) FROM records WHERE change = ?",
        (change,),
    ).fetchone()
    at = clock.iso(clock.stamp_ms(stamp))
    return Made(change, at, action, session, author, count, is_undone(graph, change))


def is_undone(graph: Graph, change: str) -> bool:
    """Whether a change was taken back, and the taking back was not."""
    takers = records.about(graph.connection, change, "undo")
    return any(not is_undone(graph, record.change) for record in takers)


def take_back(change: Change, undone: str) -> list[Kept]:
    """Record the opposite of a change. What was changed again since is kept and returned."""
    graph = change.graph
    kept: list[Kept] = []

    @cache
    def still_holds(other: str) -> bool:
        """A change that was taken back and what took it back are as if they had not been."""
        [record, *_] = records.of_change(graph.connection, other)
        return record.action != "undo" and not is_undone(graph, other)

    for record in reversed(records.of_change(graph.connection, undone)):
        if record.kind == "undo":
            continue
        about = [
            other
            for other in records.about_key(
                graph.connection, record.subject, _family(record.kind), record.key
            )
            if other.change != undone or other.order <= record.order
        ]
        before = [other for other in about if other.order < record.order]
        after = [
            other for other in about if other.order > record.order and still_holds(other.change)
        ]
        kept += _opposite(change, record, before, after)
    change.mark_undone(undone)
    return kept


def _family(kind: str) -> str:
    return kind.partition(".")[0] + "."


def _opposite(
    change: Change, record: Record, before: list[Record], after: list[Record]
) -> list[Kept]:
    match record.kind:
        case "node.put":
            return _opposite_of_put(change, record, before, after)
        case "node.delete":
            change.repeat(record, "node.restore", {})
        case "node.restore":
            change.repeat(record, "node.delete", {})
        case "tag.add" | "tag.remove" | "edge.put" | "edge.delete" | "view.put" | "view.delete":
            if after:
                return [Kept(record.subject, record.key or record.kind)]
            last = before[-1] if before else None
            family = _family(record.kind)
            if last is not None and last.kind in ("tag.add", "edge.put", "view.put"):
                change.repeat(record, last.kind, {"created_at": replay.at(last), **last.body})
            elif record.kind in ("tag.add", "edge.put", "view.put"):
                opposites = {"tag.": "tag.remove", "edge.": "edge.delete", "view.": "view.delete"}
                change.repeat(record, opposites[family], {})
    return []


def _opposite_of_put(
    change: Change, record: Record, before: list[Record], after: list[Record]
) -> list[Kept]:
    puts = [other for other in after if other.kind == "node.put"]
    earlier = replay.node(before)
    if earlier is None:
        if puts:
            return [Kept(record.subject, "content")]
        change.repeat(record, "node.delete", {})
        return []
    body: dict[str, Any] = {}
    kept: list[Kept] = []
    for name in replay.FIELDS:
        if name in record.body:
            if any(name in put.body for put in puts):
                kept.append(Kept(record.subject, name))
            else:
                body[name] = getattr(earlier, name)
    old: Mapping[str, Any] = earlier.metadata
    metadata: dict[str, Any] = {}
    for key in record.body.get("metadata", {}):
        if any(key in put.body.get("metadata", {}) for put in puts):
            kept.append(Kept(record.subject, f"meta {key}"))
        else:
            metadata[key] = old.get(key)
    if metadata:
        body["metadata"] = metadata
    if body:
        change.repeat(record, "node.put", body)
    return kept
