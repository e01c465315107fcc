"""Which nodes are superseded, and by which.

A node is superseded by the newest node that has a `SUPERSEDES` edge to it. Merging what two people
said, or restoring what was deleted, can close such edges to a circle. In a circle none comes after
another, so its edges do not count: nothing is out of sight without something in its place.

Only the nodes that an edge may concern are looked at. A file that was kept a thousand times is a
chain of a thousand nodes, and the next one must not cost more than the first.
"""

from collections.abc import Iterable
from sqlite3 import Connection


def concerned(connection: Connection, from_id: str, to_id: str) -> set[str]:
    """The nodes for which it matters whether an edge is there: its end, and a circle through it.

    To be asked before an edge goes, and after one has come.
    """
    above = superseding(connection, from_id)
    return {to_id, from_id, *above} if to_id in above else {to_id}


def concerned_by_node(connection: Connection, node_id: str) -> set[str]:
    """The nodes for which it matters whether a node is there; to be asked before it goes."""
    rows = connection.execute(
        "SELECT to_id FROM edges WHERE from_id = ? AND +type = 'SUPERSEDES'", (node_id,)
    ).fetchall()
    return set[str]().union(*(concerned(connection, node_id, row[0]) for row in rows))


def settle(connection: Connection, node_ids: Iterable[str]) -> None:
    """Fill `superseded_by` for these nodes."""
    for node_id in node_ids:
        rows = connection.execute(
            "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'"
            " ORDER BY created_at DESC, id DESC, from_id DESC",
            (node_id,),
        ).fetchall()
        newer = (row[0] for row in rows if node_id not in superseding(connection, row[0]))
        connection.execute(
            "UPDATE nodes SET superseded_by = ? WHERE id = ?", (next(newer, None), node_id)
        )


def settle_all(connection: Connection) -> None:
    rows = connection.execute("SELECT DISTINCT to_id FROM edges WHERE +type = 'SUPERSEDES'")
    settle(connection, [row[0] for row in rows.fetchall()])


def superseding(connection: Connection, node_id: str) -> set[str]:
    """What supersedes a node, directly or through others. In a circle, that is the node too."""
    found: set[str] = set()
    waiting = [node_id]
    while waiting:
        for (from_id,) in connection.execute(
            "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'", (waiting.pop(),)
        ):
            if from_id not in found:
                found.add(from_id)
                waiting.append(from_id)
    return found
