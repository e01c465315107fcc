"""What the user decides about a node that agents get or may get: accept it, hide it, show it again.

To accept a node is to vouch for its text: its source becomes `user`, so that agents no longer get
it as a quotation or as the words of another agent. To hide it is `tier:off-context`: it stays in
memory and is found by a search, but no context has it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import lookups, model, sources
from ctx.memory.graph import USER
from ctx.memory.model import OFF_CONTEXT, PINNED, REFERENCE, REMOVED_COMMAND, Node
from ctx.operations import learnings
from ctx.workspace import Memory

_KINDS = ("kind:", learnings.TAG)
"""Nodes with such a tag have a layer of their own in a context and need no tier."""


class HiddenNodes(NamedTuple):
    """The nodes of this place that no context has."""

    nodes: tuple[Node, ...]
    """The newest of them."""
    more: bool


def accept(memory: Memory, node_ids: Sequence[NodeId]) -> None:
    """Vouch for the text of nodes."""
    by_scope = _by_scope(_after_learnings(memory, node_ids, learnings.confirm))
    if not by_scope:
        return
    # In the shell of an agent, it is the agent who vouches.
    metadata = {sources.KEY: sources.USER, **memory.source_metadata}
    with memory.transaction("accept", *by_scope) as change:
        for here, node in change.by_node(by_scope):
            here.update_node(node.id, metadata=metadata)
            if model.tier(node.tags) is None and not has_layer(node):
                here.set_tier(node.id, REFERENCE)


def hide(memory: Memory, node_ids: Sequence[NodeId]) -> None:
    """Keep nodes out of every context. A learning is rejected, so that it is not learned again."""
    by_scope = _by_scope(_after_learnings(memory, node_ids, learnings.reject))
    if not by_scope:
        return
    with memory.transaction("hide", *by_scope) as change:
        for here, node in change.by_node(by_scope):
            here.untag(node.id, PINNED)
            here.set_tier(node.id, OFF_CONTEXT)


def _after_learnings(
    memory: Memory, node_ids: Sequence[NodeId], decide: Callable[[Memory, NodeId], object]
) -> list[Node]:
    """Decide about the learnings among some nodes, and return the others."""
    nodes = list(memory.graph.nodes(node_ids))
    for node in filter(is_learning, nodes):
        decide(memory, node.id)
    return [node for node in nodes if not is_learning(node)]


def reveal(memory: Memory, node_id: NodeId) -> None:
    """Let contexts have a node again."""
    node = memory.graph.node(node_id)
    if is_learning(node):
        learnings.confirm(memory, node.id)
        return
    with memory.transaction("reveal", node.scope) as change:
        for verdict in (model.WRONG, model.USELESS):
            change.untag(node.id, verdict)
        if REMOVED_COMMAND in node.tags or model.JUDGED in node.metadata:
            change.delete_node(node.id)
        elif has_layer(node):
            change.untag(node.id, OFF_CONTEXT)
        else:
            change.set_tier(node.id, REFERENCE)


def remove_command(memory: Memory, command: str) -> None:
    """Keep a command out of every context of this project, though sessions run it."""
    project = [memory.own_tag] if memory.own_tag else []
    with memory.transaction("hide", USER) as change:
        node_id = change.add_node("fact", command)
        for tag in (REMOVED_COMMAND, OFF_CONTEXT, *project):
            change.tag(node_id, tag)


def hidden(memory: Memory, most: int) -> HiddenNodes:
    """The hidden nodes of this place, newest first."""
    found: list[NodeId] = []
    for graph in memory.graph.graphs:
        everywhere = graph.scope != USER
        found += lookups.hidden(graph.connection, memory.own_tag, most + 1, everywhere=everywhere)
    found.sort(reverse=True)
    return HiddenNodes(tuple(memory.graph.nodes(found[:most])), len(found) > most)


def is_learning(node: Node) -> bool:
    return any(tag.startswith(learnings.TAG) for tag in node.tags)


def has_layer(node: Node) -> bool:
    """Whether it comes from a session, and is given while it is new."""
    return node.type == "summary" or any(tag.startswith(_KINDS) for tag in node.tags)


def _by_scope(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.scope, []).append(node)
    return found
