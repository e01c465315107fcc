"""Short ids: the id prefixes that people and agents see.

Hooks load this module, so it imports only `ctx.ids`.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from ctx.ids import SHOWN_LENGTH, NodeId

_BATCH = 500


def short_ids(connections: Sequence[Connection], node_ids: Iterable[NodeId]) -> dict[NodeId, str]:
    """Short ids that are long enough to be unambiguous in these graphs."""
    wanted = list(dict.fromkeys(node_ids))
    prefixes = {node_id: node_id[:SHOWN_LENGTH] for node_id in wanted}
    for connection in connections:
        for start in range(0, len(wanted), _BATCH):
            for node_id in _ambiguous_nodes(connection, wanted[start : start + _BATCH]):
                longer = _longer(connection, node_id)
                prefixes[node_id] = max(prefixes[node_id], longer, key=len)
    return prefixes


def _ambiguous_nodes(connection: Connection, part: Sequence[NodeId]) -> list[NodeId]:
    """The nodes whose short id is also a prefix of another node's id."""
    places = ", ".join(["(?)"] * len(part))
    beginning = f"substr(w.id, 1, {SHOWN_LENGTH})"
    rows = connection.execute(
        f"WITH wanted(id) AS (VALUES {places}) SELECT w.id FROM wanted AS w WHERE EXISTS"
        f" (SELECT 1 FROM nodes AS m WHERE m.id >= {beginning} AND m.id < {beginning} || '~'"
        " AND m.id <> w.id)",
        part,
    )
    return [row[0] for row in rows]


def _longer(connection: Connection, node_id: NodeId) -> str:
    length = SHOWN_LENGTH
    # Ids with the same prefix are its neighbours in order.
    for row in connection.execute(
        "SELECT * FROM (SELECT id FROM nodes WHERE id < ? ORDER BY id DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT id FROM nodes WHERE id > ? ORDER BY id LIMIT 1)",
        (node_id, node_id),
    ):
        while node_id[:length] == row[0][:length]:
            length += 1
    return node_id[:length]
