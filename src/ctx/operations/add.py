"""Add a node."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import model, pending
from ctx.memory.changes import changing
from ctx.memory.model import Evidence, Node, Redaction
from ctx.workspace import Memory


class Options(NamedTuple):
    type: str
    content: str
    tags: Sequence[str] = ()
    summary: str | None = None
    metadata: Mapping[str, str] = {}
    supersedes: Sequence[NodeId] = ()


class Added(NamedTuple):
    """The answer of `ctx add`."""

    node: Node
    short_id: str
    task: str | None
    """The current task, where the node was added to it."""
    redacted: tuple[Redaction, ...]


def add(memory: Memory, options: Options) -> Added:
    """A new node; working notes belong to the current task unless they name another."""
    tags = [model.tag(word) for word in options.tags]
    task = None
    if model.WORKING in tags and not any(tag.startswith("task:") for tag in tags):
        task = pending.current_task(memory.graph, memory.task_key)
    with changing(memory.graph, "add", memory.who) as change:
        node_id = change.add_node(
            options.type, options.content, summary=options.summary, metadata=options.metadata
        )
        for tag in tags:
            change.tag(node_id, tag)
        if task:
            change.tag(node_id, f"task:{task}")
        for old in options.supersedes:
            change.link(node_id, old, "SUPERSEDES", Evidence(memory.who.author))
    node = memory.graph.node(node_id)
    short = memory.graph.shown([node_id])[node_id]
    return Added(node, short, task, tuple(change.redacted))
