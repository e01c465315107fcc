"""Forget nodes for an agent: what agents said is deleted, what the user said is only proposed.

A deletion can be undone with `ctx undo` or `ctx restore`. The user decides about proposals with
`ctx review`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import sources
from ctx.memory.model import Node
from ctx.operations import agent_proposals
from ctx.operations.delete import delete, deletion, is_kept_until_commit
from ctx.workspace import Memory

ACTION = "forget"


class ForgetResult(NamedTuple):
    """What became of nodes that an agent wanted to forget."""

    forgotten: tuple[Node, ...]
    proposed: tuple[Node, ...]
    """What only the user may delete: they said or pinned it, or other projects see it."""
    short_ids: Mapping[NodeId, str]
    dependents: tuple[Node, ...]
    """Nodes that stay, although they were made from these or rest on them."""
    change: str | None
    """What `ctx undo` takes to bring the nodes back; None if nothing was deleted."""
    until_commit: bool
    """Whether one of them was never committed, so that the next commit leaves it out for good."""


def forget(memory: Memory, node_ids: Sequence[NodeId]) -> ForgetResult:
    found = deletion(memory.graph, node_ids, cascade=False)
    held = tuple(node for node in found.nodes if _is_held(memory, node))
    free = tuple(node for node in found.nodes if node not in held)
    agent_proposals.propose_forgetting(memory, [node.id for node in held])
    change = delete(memory, [node.id for node in free], ACTION) if free else None
    until_commit = is_kept_until_commit(memory, free)
    return ForgetResult(free, held, found.short_ids, found.dependents, change, until_commit)


def _is_held(memory: Memory, node: Node) -> bool:
    return node.source == sources.USER or agent_proposals.is_protected(memory, node)
