"""Rows of nodes for the layers of a context, and the parts of them that lines show.

Hooks load this module, so it queries the tables directly.
"""

from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from ctx.ids import NodeId
from ctx.markdown import flat

LONGEST_COMPARED = 4_000
HOLDS = (
    " n.superseded_by IS NULL AND NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id"
    " AND tag = 'tier:off-context') AND (SELECT min(tag <> 'project:' || ?1) FROM tags"
    " WHERE node_id = n.id AND tag >= 'project:' AND tag < 'project;') IS NOT 1"
)
"""Whether a node is valid and belongs to the project of the first parameter, or to none."""
COLUMNS = "n.id, n.type, n.content, n.metadata, n.created_at, n.updated_at"

_MOST_SHARED = 200
_PART = 150


def nodes(
    connections: Sequence[Connection], node_ids: Sequence[str], project: str | None
) -> "list[Any]":
    """The valid nodes, in the order of `node_ids`."""
    found: dict[str, Any] = {}
    for start in range(0, len(node_ids), _PART):
        part = node_ids[start : start + _PART]
        places = ", ".join("?" * len(part))
        sql = f"SELECT {COLUMNS} FROM nodes AS n WHERE {HOLDS} AND n.id IN ({places})"
        for connection in connections:
            found.update((row[0], row) for row in connection.execute(sql, (project or "", *part)))
    return [found[each] for each in node_ids if each in found]


def shared(
    projects: Sequence[Connection], node_type: str, project: str | None, session: str
) -> "list[Any]":
    """What sessions, also those of other people, left in the project's store."""
    sql = (
        f"SELECT {COLUMNS} FROM nodes AS n WHERE n.type = ?2 AND {HOLDS} AND EXISTS (SELECT 1"
        " FROM tags WHERE node_id = n.id AND tag >= 'session:' AND tag < 'session;'"
        " AND tag <> 'session:' || ?3) ORDER BY n.created_at DESC, n.id DESC LIMIT ?4"
    )
    values = (project or "", node_type, session, _MOST_SHARED)
    return [row for each in projects for row in each.execute(sql, values)]


def tagged(
    connections: Sequence[Connection], project: str | None, tag: str, most: int
) -> "list[Any]":
    """The newest valid nodes with a tag."""
    sql = (
        f"SELECT {COLUMNS} FROM tags AS t JOIN nodes AS n ON n.id = t.node_id WHERE t.tag = ?2"
        f" AND {HOLDS} ORDER BY t.node_id DESC LIMIT ?3"
    )
    return [row for each in connections for row in each.execute(sql, (project or "", tag, most))]


def kinds(connections: Sequence[Connection], node_ids: Sequence[str]) -> dict[str, str]:
    rows = _among(
        connections,
        "SELECT node_id, min(substr(tag, 6)) FROM tags WHERE tag >= 'kind:' AND tag < 'kind;'"
        " AND node_id IN",
        node_ids,
        "GROUP BY node_id",
    )
    return dict(rows)


def _among(
    connections: Sequence[Connection], sql: str, node_ids: Sequence[str], order: str = ""
) -> "list[Any]":
    found: list[Any] = []
    for start in range(0, len(node_ids), _PART):
        part = node_ids[start : start + _PART]
        statement = f"{sql} ({', '.join('?' * len(part))}) {order}"
        found += [row for each in connections for row in each.execute(statement, part)]
    return found


def author_prefixes(connections: Sequence[Connection], node_ids: Sequence[str]) -> dict[str, str]:
    """The author prefix of each node that somebody else wrote."""
    if len(connections) == 1 or not node_ids:
        return {}
    from ctx.project import authors

    known = authors.strangers(connections[:-1], [NodeId(each) for each in node_ids])  # type: ignore[arg-type]
    return {node_id: f"(by {name}) " for node_id, name in known.items()}


def one_line(value: Any) -> str:
    """A section of a summary in one line: a text, or a list of them."""
    lines = value.splitlines() if isinstance(value, str) else []
    parts = [line.strip().lstrip("-*• ") for line in lines] or texts(value)
    return flat("; ".join(part.rstrip(".") for part in parts if part.strip())[:LONGEST_COMPARED])


def texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def label(row: Sequence[Any]) -> str:
    return f"{row[1]}:{row[0][:12]}"
