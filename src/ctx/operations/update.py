"""Change a node's fields."""

from collections.abc import Mapping
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory.changes import changing
from ctx.memory.model import Node, Redaction
from ctx.workspace import Memory


class Options(NamedTuple):
    """What is None stays as it is; an empty summary or metadata value takes it away."""

    content: str | None = None
    type: str | None = None
    summary: str | None = None
    metadata: Mapping[str, str] = {}


class Updated(NamedTuple):
    """The answer of `ctx update` and `ctx edit`."""

    node: Node
    short_id: str
    changed: tuple[str, ...]
    """The fields that are not what they were."""
    redacted: tuple[Redaction, ...]


def update(memory: Memory, node_id: NodeId, options: Options) -> Updated:
    with changing(memory.graph, "update", memory.who) as change:
        changed = change.update_node(
            node_id,
            node_type=options.type,
            content=options.content,
            summary=options.summary,
            metadata={key: value or None for key, value in options.metadata.items()},
        )
    short = memory.graph.shown([node_id])[node_id]
    return Updated(memory.graph.node(node_id), short, changed, tuple(change.redacted))
