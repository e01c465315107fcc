"""Computes which nodes are superseded, and by which node.

A node is superseded by the newest node that has a `SUPERSEDES` edge to it. Merging two histories or
restoring a deleted node can produce a cycle of such edges. Edges of a cycle do not count, so that
no node is hidden without a replacement.

Only nodes that an edge can affect are updated. A file that was saved a thousand times is a chain of
a thousand nodes, and the next save must not cost more than the first.
"""

from collections.abc import Iterable
from sqlite3 import Connection


def affected_by_edge(connection: Connection, from_id: str, to_id: str) -> set[str]:
    """The nodes that an edge affects: its target, and the nodes of a cycle through it.

    Call it before an edge is removed and after one is added.
    """
    above = superseding_nodes(connection, from_id)
    return {to_id, from_id, *above} if to_id in above else {to_id}


def affected_by_node(connection: Connection, node_id: str) -> set[str]:
    """The nodes that the removal of a node affects. Call it before the node is removed."""
    rows = connection.execute(
        "SELECT to_id FROM edges WHERE from_id = ? AND +type = 'SUPERSEDES'", (node_id,)
    ).fetchall()
    return set[str]().union(*(affected_by_edge(connection, node_id, row[0]) for row in rows))


def settle(connection: Connection, node_ids: Iterable[str]) -> None:
    """Update `superseded_by` of these nodes."""
    for node_id in node_ids:
        rows = connection.execute(
            "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'"
            " ORDER BY created_at DESC, id DESC, from_id DESC",
            (node_id,),
        ).fetchall()
        newer = (row[0] for row in rows if node_id not in superseding_nodes(connection, row[0]))
        connection.execute(
            "UPDATE nodes SET superseded_by = ? WHERE id = ?", (next(newer, None), node_id)
        )


def settle_all(connection: Connection) -> None:
    rows = connection.execute("SELECT DISTINCT to_id FROM edges WHERE +type = 'SUPERSEDES'")
    settle(connection, [row[0] for row in rows.fetchall()])


def superseding_nodes(connection: Connection, node_id: str) -> set[str]:
    """The nodes that supersede a node, directly or not; in a cycle, also the node itself."""
    newer: set[str] = set()
    waiting = [node_id]
    while waiting:
        for (from_id,) in connection.execute(
            "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'", (waiting.pop(),)
        ):
            if from_id not in newer:
                newer.add(from_id)
                waiting.append(from_id)
    return newer
