"""Take back a change."""

from typing import NamedTuple

from ctx.errors import NodeNotFound, UsageError
from ctx.ids import short
from ctx.memory import records, undo
from ctx.memory.changes import changing
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
    if dry_run:
        change_id = _chosen(memory, text)
        return Undone(undo.made(memory.graph, change_id), _told(memory.graph, change_id), (), None)
    # Chosen under the lock: of two who undo at once, each takes another change.
    with changing(memory.graph, undo.ACTION, memory.who) as change:
        change_id = _chosen(memory, text)
        made = undo.made(memory.graph, change_id)
        kept = undo.take_back(change, change_id)
    return Undone(made, _told(memory.graph, change_id), tuple(kept), change.id)


def _chosen(memory: Memory, text: str | None) -> str:
    if text is None:
        return _newest(memory)
    change_id = _find(memory.graph, text)
    if undo.is_undone(memory.graph, change_id):
        raise UsageError(
            f"The change {change_id} is undone already.",
            hint="`ctx undo --list` shows what took it back, which can be undone too.",
        )
    return change_id


def _newest(memory: Memory) -> str:
    """The newest change of this session that is not undone and is not an undoing itself."""
    for made in undo.changes(memory.graph, memory.session):
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
