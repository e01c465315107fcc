"""Take back a change."""

from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple

from ctx.errors import NodeNotFound, UsageError
from ctx.ids import short
from ctx.memory import records, undo
from ctx.memory.graph import Graph
from ctx.memory.undo import Kept, Made
from ctx.workspace import Memory

_MOST_TOLD = 1_000


class Changes(NamedTuple):
    """The answer of `ctx undo --list`."""

    changes: tuple[Made, ...]


class Undone(NamedTuple):
    """The answer of `ctx undo`."""

    change: Made
    what: tuple[str, ...]
    """What the change had done, in a few words each; of a very large one, the first."""
    kept: tuple[Kept, ...]
    """What was not taken back, because it was changed again since."""
    by: str | None
    """The change that took it back: undoing that one brings it back."""


def undo_change(memory: Memory, text: str | None, *, dry_run: bool) -> Undone:
    """Take back the change that a person named, else the last one of this session."""
    graph, change_id = _chosen(memory, text)
    if dry_run:
        return Undone(undo.made(graph, change_id), _told(graph, change_id), (), None)
    with memory.changing(undo.ACTION, graph.scope) as change:
        # Chosen again under the lock: of two who undo at once, each takes another change.
        graph, change_id = _chosen(memory, text)
        if graph.scope != change.graph.scope:
            graph, change_id = change.graph, _find(change.graph, change_id)
        made = undo.made(graph, change_id)
        kept = undo.take_back(change, change_id)
    for other in memory.graph.graphs:
        # What one command did in both stores is one change.
        if other.scope != change.graph.scope and records.of_change(other.connection, change_id):
            with memory.also_changing(change, other.scope) as also:
                kept += undo.take_back(also, change_id)
    graph = next(each for each in memory.graph.graphs if each.scope == change.graph.scope)
    return Undone(made, _told(graph, change_id), tuple(kept), change.id)


def changes(memory: Memory, session: str | None) -> Iterator[Made]:
    """The changes that were made in all stores, newest first."""
    found = (undo.changes(graph, session) for graph in memory.graph.graphs)
    # A change of both stores has one id.
    last = ""
    for made in merge(*found, key=lambda made: made.at, reverse=True):
        if made.id != last:
            yield made
        last = made.id


def _chosen(memory: Memory, text: str | None) -> tuple[Graph, str]:
    """The change that is meant, and the store that has it."""
    change_id = _newest(memory) if text is None else _named(memory, text)
    found = [
        (graph, said)
        for graph in memory.graph.graphs
        if (said := records.of_change(graph.connection, change_id))
    ]
    # What was moved away comes back first: killed in between, it is in both stores, not in none.
    found.sort(key=lambda each: not any(record.kind == "node.delete" for record in each[1]))
    if found:
        return found[0][0], change_id
    raise NodeNotFound(f"There is no change {change_id}.")


def _named(memory: Memory, text: str) -> str:
    refusal: NodeNotFound | None = None
    for graph in memory.graph.graphs:
        try:
            change_id = _find(graph, text)
            break
        except NodeNotFound as error:
            refusal = error
    else:
        assert refusal is not None
        raise refusal
    if undo.is_undone(graph, change_id):
        raise UsageError(
            f"The change {change_id} is undone already.",
            hint="`ctx undo --list` shows what took it back, which can be undone too.",
        )
    return change_id


def _newest(memory: Memory) -> str:
    """The newest change of this session that is not undone and is not an undoing itself."""
    for made in changes(memory, memory.session):
        if made.action != undo.ACTION and not made.undone:
            return made.id
    raise UsageError(
        f"The session {memory.session} has nothing to undo.",
        hint="`ctx undo --list` shows the changes of all sessions; `ctx undo CHANGE` undoes one.",
    )


def _find(graph: Graph, text: str) -> str:
    prefix = text.strip().upper()
    found = records.changes_beginning_with(graph.connection, prefix) if prefix else []
    if len(found) != 1:
        problem = "Several changes begin" if found else "No change begins"
        raise NodeNotFound(f"{problem} with {text[:40]!r}.", hint="`ctx undo --list` shows them.")
    return found[0]


def _told(graph: Graph, change_id: str) -> tuple[str, ...]:
    found = records.of_change(graph.connection, undo.origin(graph, change_id))
    return tuple(
        f"{short(record.subject)} {records.said(record, record.subject)}"
        if record.kind.partition(".")[0] in ("node", "tag", "edge")
        else records.said(record, record.subject)
        for record in found[:_MOST_TOLD]
    )
