"""Which nodes are superseded, and by which.

A node is superseded by the newest node that has a `SUPERSEDES` edge to it. Merging what two people
said, or restoring what was deleted, can close such edges to a circle. In a circle none comes after
another, so its edges do not count: nothing is out of sight without something in its place.
"""

from collections.abc import Iterable
from sqlite3 import Connection


def settle(connection: Connection, node_ids: Iterable[str]) -> None:
    """Fill `superseded_by` for these nodes, and for all that their edges may reach.

    An edge that comes or goes can close or open a circle far away from it.
    """
    for node_id in _connected(connection, node_ids):
        newer = _newer(connection, node_id)
        connection.execute("UPDATE nodes SET superseded_by = ? WHERE id = ?", (newer, node_id))


def settle_all(connection: Connection) -> None:
    rows = connection.execute("SELECT DISTINCT to_id FROM edges WHERE +type = 'SUPERSEDES'")
    for (node_id,) in rows.fetchall():
        newer = _newer(connection, node_id)
        connection.execute("UPDATE nodes SET superseded_by = ? WHERE id = ?", (newer, node_id))


def _newer(connection: Connection, node_id: str) -> str | None:
    rows = connection.execute(
        "SELECT from_id FROM edges WHERE to_id = ? AND type = 'SUPERSEDES'"
        " ORDER BY created_at DESC, id DESC, from_id DESC",
        (node_id,),
    ).fetchall()
    older = reached(connection, node_id) if rows else set()
    return next((from_id for (from_id,) in rows if from_id not in older), None)


def reached(connection: Connection, node_id: str) -> set[str]:
    """What a node supersedes, directly or through others."""
    found: set[str] = set()
    waiting = [node_id]
    while waiting:
        for (to_id,) in connection.execute(
            "SELECT to_id FROM edges WHERE from_id = ? AND +type = 'SUPERSEDES'", (waiting.pop(),)
        ):
            if to_id not in found:
                found.add(to_id)
                waiting.append(to_id)
    return found


def _connected(connection: Connection, node_ids: Iterable[str]) -> list[str]:
    found = dict.fromkeys(node_ids)
    waiting = list(found)
    while waiting:
        node_id = waiting.pop()
        for (other,) in connection.execute(
            "SELECT to_id FROM edges WHERE from_id = ?1 AND +type = 'SUPERSEDES'"
            " UNION SELECT from_id FROM edges WHERE to_id = ?1 AND type = 'SUPERSEDES'",
            (node_id,),
        ):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return list(found)
