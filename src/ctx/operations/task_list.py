"""List the tasks of a project, with their state."""

from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import pending
from ctx.operations import document
from ctx.operations.task import ACTIVE, DONE, OPEN, belongs, name_of, word_of
from ctx.workspace import Memory

CURRENT = "current"
_ORDER = (CURRENT, ACTIVE, OPEN, DONE)


class TaskEntry(NamedTuple):
    task: str
    """The word that its nodes carry: `task:<word>`."""
    name: str
    id: NodeId
    short_id: str
    number: str | None
    """`task_0043`, if it has a file."""
    state: str
    """`current`, `active`, `open` or `done`."""
    created_at: str
    started: str | None
    ended: str | None


class TaskList(NamedTuple):
    """The answer of `ctx task list`."""

    tasks: tuple[TaskEntry, ...]
    """The current one first, then those that are active, open and done; the newest first."""
    done: int
    """Tasks that are done and left out."""


def list_tasks(memory: Memory, *, include_done: bool = False) -> TaskList:
    """The tasks of this project, or of none."""
    graph = memory.graph
    current = pending.current_task(memory.user, memory.place.task_key)
    nodes = [
        node for node in graph.nodes(graph.of_type("task")) if belongs(node.tags, memory.project)
    ]
    shown = graph.shown([node.id for node in nodes])
    found = []
    for node in sorted(nodes, key=lambda node: node.id, reverse=True):
        path = document.file_of(node)
        word = word_of(node)
        status = node.metadata.get("status")
        state = CURRENT if word == current else status if status in (ACTIVE, DONE) else OPEN
        found.append(
            TaskEntry(
                word,
                name_of(node),
                node.id,
                shown[node.id],
                document.document_name(path) if path else None,
                state,
                node.created_at,
                node.metadata.get("started"),
                node.metadata.get("ended"),
            )
        )
    found.sort(key=lambda each: _ORDER.index(each.state))
    listed = [each for each in found if include_done or each.state != DONE]
    return TaskList(tuple(listed), len(found) - len(listed))
