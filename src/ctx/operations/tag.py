"""Add tags to nodes and remove them; pin and unpin."""

from collections.abc import Sequence
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.model import PINNED, Node
from ctx.workspace import Memory


class TagResult(NamedTuple):
    """The answer of `ctx tag`, `untag`, `pin` and `unpin`, for one node."""

    node: Node
    short_id: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


class TagResults(NamedTuple):
    nodes: tuple[TagResult, ...]


def tag(memory: Memory, node_id: NodeId, tags: Sequence[str]) -> TagResult:
    """Add tags. A tier replaces the current one, except pinned."""
    with memory.transaction("tag", memory.graph.holding(node_id).scope) as change:
        wanted = model.tags(tags)
        replaced = model.replaced_tiers(memory.graph.tags_of(node_id), wanted)
        added = [word for word in wanted if change.tag(node_id, word)]
        removed = [old for old in replaced if change.untag(node_id, old)]
    return _result(memory, node_id, added, removed)


def untag(memory: Memory, node_id: NodeId, tags: Sequence[str]) -> TagResult:
    with memory.transaction("untag", memory.graph.holding(node_id).scope) as change:
        # A tag that is not valid today can still be removed.
        wanted = [model.spelling(word.strip()) for word in tags]
        removed = [word for word in wanted if change.untag(node_id, word)]
    return _result(memory, node_id, [], removed)


def pin(memory: Memory, node_ids: Sequence[NodeId]) -> TagResults:
    by_scope = memory.graph.by_scope(node_ids)
    with memory.transaction("pin", *by_scope) as change:
        added = {each: here.tag(each, PINNED) for here, each in change.by_node(by_scope)}
    return TagResults(
        tuple(_result(memory, each, [PINNED] if new else [], []) for each, new in added.items())
    )


def unpin(memory: Memory, node_ids: Sequence[NodeId]) -> TagResults:
    by_scope = memory.graph.by_scope(node_ids)
    with memory.transaction("unpin", *by_scope) as change:
        removed = {each: here.untag(each, PINNED) for here, each in change.by_node(by_scope)}
    return TagResults(
        tuple(_result(memory, each, [], [PINNED] if had else []) for each, had in removed.items())
    )


def set_tier(memory: Memory, node_id: NodeId, tier: str) -> TagResult:
    """Give a node one tier, or none if it is empty; the others and the pin go."""
    with memory.transaction("tag", memory.graph.holding(node_id).scope) as change:
        wanted = model.tags([tier] if tier else [])
        removed = [old for old in model.TIERS if old not in wanted and change.untag(node_id, old)]
        added = [word for word in wanted if change.tag(node_id, word)]
    return _result(memory, node_id, added, removed)


def _result(
    memory: Memory, node_id: NodeId, added: Sequence[str], removed: Sequence[str]
) -> TagResult:
    short = memory.graph.shown([node_id])[node_id]
    return TagResult(memory.graph.node(node_id), short, tuple(added), tuple(removed))
