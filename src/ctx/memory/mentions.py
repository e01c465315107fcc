"""Which nodes mention the files and items of the code."""

from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory.graphs import Graphs

_MOST = 20_000
"""Mentions that are read from each store, the newest."""


class AnchorMention(NamedTuple):
    """A node that mentions a file or an item."""

    type: str
    """`file` or `item`."""
    name: str
    """The path, or the name of the item."""
    anchor: NodeId
    node: NodeId
    node_type: str
    kind: str
    """The `kind:` tag of the node without its prefix; empty if it has none."""
    created_at: str


def code_mentions(graph: Graphs) -> list[AnchorMention]:
    """The mentions by nodes that are not superseded, the newest nodes first."""
    anchors: dict[NodeId, tuple[str, str]] = {}
    for connection in graph.connections:
        rows = connection.execute(
            "SELECT id, type, content FROM nodes WHERE type IN ('file', 'item')"
        )
        anchors.update((node_id, (kind, name)) for node_id, kind, name in rows)
    found: dict[tuple[NodeId, NodeId], AnchorMention] = {}
    for connection in graph.connections:
        # Edges to a node of another store are in `outside`.
        for table in ("edges", "outside"):
            rows = connection.execute(
                "SELECT e.to_id, n.id, n.type, n.created_at, (SELECT min(substr(tag, 6)) FROM tags"
                " WHERE node_id = n.id AND tag >= 'kind:' AND tag < 'kind;')"
                f" FROM {table} AS e JOIN nodes AS n ON n.id = e.from_id"
                " WHERE e.type = 'MENTIONS' AND n.superseded_by IS NULL"
                " ORDER BY n.id DESC LIMIT ?",
                (_MOST,),
            )
            for anchor, node, node_type, created_at, kind in rows:
                if anchor in anchors:
                    mention = AnchorMention(
                        *anchors[anchor], anchor, node, node_type, kind or "", created_at
                    )
                    found[anchor, node] = mention
    return sorted(found.values(), key=lambda each: (each.node, each.anchor), reverse=True)
