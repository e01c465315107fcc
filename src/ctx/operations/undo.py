"""Take back a change."""

from typing import NamedTuple

from ctx.errors import NodeNotFound, UsageError
from ctx.ids import short
from ctx.memory import records, undo
from ctx.memory.changes import changing
from ctx.memory.undo import Kept, Made
from ctx.operations import task
from ctx.operations.show import said
from ctx.workspace import Memory


class Changes(NamedTuple):
    """The answer of `ctx undo --list`."""

    changes: tuple[Made, ...]


class Undone(NamedTuple):
    """The answer of `ctx undo`."""

    change: Made
    what: tuple[str, ...]
    """What the change had done, in a few words each."""
    kept: tuple[Kept, ...]
    """What was not taken back, because it was changed again since."""
    dry_run: bool


def newest(memory: Memory) -> str:
    """The newest change of this session that is not undone and is not an undoing itself."""
    for made in undo.changes(memory.graph, memory.session):
        if made.action != "undo" and not made.undone:
            return made.id
    raise UsageError(
        f"The session {memory.session} has nothing to undo.",
        hint="`ctx undo --list` shows the changes of all sessions; `ctx undo CHANGE` undoes one.",
    )


def find(memory: Memory, text: str) -> str:
    prefix = text.strip().upper()
    rows = memory.graph.connection.execute(
        "SELECT DISTINCT change FROM records WHERE change >= ? AND change < ? AND stamp > 0"
        " LIMIT 2",
        (prefix, prefix + "~"),
    ).fetchall()
    if not prefix or len(rows) != 1:
        problem = "Several changes begin" if rows and prefix else "No change begins"
        raise NodeNotFound(f"{problem} with {text[:40]!r}.", hint="`ctx undo --list` shows them.")
    return str(rows[0][0])


def take_back(memory: Memory, change_id: str, *, dry_run: bool) -> Undone:
    graph = memory.graph
    made = undo.made(graph, change_id)
    if made.undone:
        raise UsageError(f"The change {change_id} is undone already.")
    what = tuple(
        f"{short(record.subject)} {said(record, record.subject)}"
        for record in records.of_change(graph.connection, change_id)
    )
    kept: list[Kept] = []
    if not dry_run:
        with changing(graph, "undo", memory.who) as change:
            kept = undo.take_back(change, change_id)
            task.after_undo(memory, change_id)
    return Undone(made, what, tuple(kept), dry_run)
