"""What a node is called where people and agents see it.

Hooks load this module: it imports nothing but the length of a shown id.
"""

from collections.abc import Iterable
from sqlite3 import Connection

from ctx.ids import SHOWN_LENGTH, NodeId

_BATCH = 500


def shown(connection: Connection, node_ids: Iterable[NodeId]) -> dict[NodeId, str]:
    """Ids as they are shown: short, but long enough to name one node of this graph."""
    found: dict[NodeId, str] = {}
    beginning = f"substr(n.id, 1, {SHOWN_LENGTH})"
    wanted = list(dict.fromkeys(node_ids))
    for start in range(0, len(wanted), _BATCH):
        part = wanted[start : start + _BATCH]
        places = ", ".join("?" * len(part))
        alone = dict(
            connection.execute(
                "SELECT n.id, 1 = (SELECT count(*) FROM (SELECT 1 FROM nodes AS m"
                f" WHERE m.id >= {beginning} AND m.id < {beginning} || '~' LIMIT 2))"
                f" FROM nodes AS n WHERE n.id IN ({places})",
                part,
            )
        )
        for node_id in part:
            is_alone = alone.get(node_id, True)
            found[node_id] = node_id[:SHOWN_LENGTH] if is_alone else _longer(connection, node_id)
    return found


def _longer(connection: Connection, node_id: NodeId) -> str:
    length = SHOWN_LENGTH
    # What begins with the same characters lies next to it.
    for row in connection.execute(
        "SELECT * FROM (SELECT id FROM nodes WHERE id < ? ORDER BY id DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT id FROM nodes WHERE id > ? ORDER BY id LIMIT 1)",
        (node_id, node_id),
    ):
        while node_id[:length] == row[0][:length]:
            length += 1
    return node_id[:length]
