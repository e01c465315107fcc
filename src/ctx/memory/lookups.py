"""Single SQL statements that find nodes by tag, key, path or age.

The query language covers everything else.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.ids import NodeId

_PROJECTS = "tag >= 'project:' AND tag < 'project;'"


class NodeStatement(NamedTuple):
    """The text of a node, for comparing it with others."""

    id: NodeId
    metadata: str
    """JSON."""
    content: str
    kind: str | None
    """Its tag `kind:…`."""


_STATEMENT = (
    "n.id, n.metadata, n.content, (SELECT tag FROM tags"
    " WHERE node_id = n.id AND tag >= 'kind:' AND tag < 'kind;' LIMIT 1)"
)


class ObservationRow(NamedTuple):
    """An observation, once for each requested kind that it has."""

    id: NodeId
    content: str
    created_at: str
    metadata: str
    """JSON."""
    kind: str
    """The tag."""


def with_tag(connection: Connection, tag: str) -> list[NodeId]:
    rows = connection.execute("SELECT node_id FROM tags WHERE tag = ? ORDER BY node_id", (tag,))
    return [row[0] for row in rows]


class JudgedNode(NamedTuple):
    """A node about which the user has said that it is wrong or useless."""

    id: NodeId
    tag: str
    superseded_by: NodeId | None
    metadata: str
    """JSON."""


def judged(connection: Connection) -> list[JudgedNode]:
    rows = connection.execute(
        "SELECT n.id, t.tag, n.superseded_by, n.metadata FROM tags AS t"
        " JOIN nodes AS n ON n.id = t.node_id WHERE t.tag IN ('verdict:wrong', 'verdict:useless')"
    )
    return [JudgedNode._make(row) for row in rows]


def kinds_with_tag(connection: Connection, tags: Sequence[str]) -> dict[str, dict[str, int]]:
    """For each tag, how many nodes of which kind carry it: `bugfix`, `decision`, or the type."""
    rows = connection.execute(
        "SELECT t.tag, coalesce(substr(k.tag, 6), n.type), count(*) FROM tags AS t"
        " JOIN nodes AS n ON n.id = t.node_id LEFT JOIN tags AS k ON k.node_id = t.node_id"
        f" AND k.tag >= 'kind:' AND k.tag < 'kind;' WHERE t.tag IN ({', '.join('?' * len(tags))})"
        " GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2",
        tags,
    )
    found: dict[str, dict[str, int]] = {}
    for tag, kind, number in rows:
        found.setdefault(tag, {})[kind] = number
    return found


def sessions_summarised_with(connection: Connection, text: str) -> list[str]:
    """The sessions whose summary contains a text."""
    rows = connection.execute(
        "SELECT DISTINCT substr(t.tag, 9) FROM nodes AS n JOIN tags AS t ON t.node_id = n.id"
        " AND t.tag >= 'session:' AND t.tag < 'session;' WHERE n.type = 'summary'"
        " AND (instr(lower(n.content), ?1) > 0 OR"
        " instr(lower(coalesce(json_extract(n.metadata, '$.title'), '')), ?1) > 0)",
        (text.lower(),),
    )
    return [row[0] for row in rows]


def title_of(connection: Connection, node_id: str | None) -> str:
    """The title in a node's metadata; empty if it has none or does not exist."""
    row = connection.execute(
        "SELECT json_extract(metadata, '$.title') FROM nodes WHERE id = ?", (node_id,)
    ).fetchone()
    return row[0] if row and isinstance(row[0], str) else ""


def source_of_answer(connection: Connection, key: str) -> NodeId | None:
    """The node that stores a model's answer."""
    row = connection.execute(
        "SELECT id FROM nodes WHERE type = 'source' AND json_extract(metadata, '$.answer') = ?",
        (key,),
    ).fetchone()
    return row[0] if row else None


def hashes(connection: Connection) -> dict[NodeId, int]:
    """A hash of each node, by id, for comparing stores within this process."""
    rows = connection.execute(
        "SELECT id, type, content, summary, metadata,"
        " (SELECT group_concat(tag, ' ') FROM (SELECT tag FROM tags WHERE node_id = nodes.id"
        " ORDER BY tag) AS ordered) FROM nodes"
    )
    return {row[0]: hash(row) for row in rows}


def observations(
    connection: Connection, kinds: Sequence[str], project: str | None, most: int
) -> list[ObservationRow]:
    """The newest observations of some kinds in a project; None: in no project."""
    marks = ", ".join("?" * len(kinds))
    # Scans from the newest node on until there are enough: the CROSS JOIN and the unary plus keep
    # SQLite from reading and sorting all observations.
    rows = connection.execute(
        "SELECT n.id, n.content, n.created_at, n.metadata, k.tag FROM nodes AS n"
        " CROSS JOIN tags AS k ON k.node_id = n.id"
        f" WHERE k.tag IN ({marks}) AND +n.type = 'observation' AND n.superseded_by IS NULL"
        " AND CASE WHEN ? IS NULL"
        f"  THEN NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id AND {_PROJECTS})"
        "  ELSE EXISTS (SELECT 1 FROM tags WHERE node_id = n.id AND tag = ?) END"
        " ORDER BY n.created_at DESC, n.id DESC LIMIT ?",
        (*(f"kind:{kind}" for kind in kinds), project, project, most),
    )
    return [ObservationRow._make(row) for row in rows]


def learnings(connection: Connection, project: str | None, *, everywhere: bool) -> list[NodeId]:
    """All learnings, or those of a project and those of no project."""
    rows = connection.execute(
        "SELECT DISTINCT node_id FROM tags AS k WHERE tag >= 'learning:' AND tag < 'learning;'"
        " AND (?1 OR coalesce((SELECT min(CASE WHEN tag <> ?2 THEN 1 ELSE 0 END) FROM tags"
        f"  WHERE node_id = k.node_id AND {_PROJECTS}), 0) = 0)",
        (everywhere, project or ""),
    )
    return [row[0] for row in rows]


def hidden(
    connection: Connection, project: str | None, most: int, *, everywhere: bool
) -> list[NodeId]:
    """The newest nodes that no context has: those of all projects, or of one and of none."""
    rows = connection.execute(
        "SELECT t.node_id FROM tags AS t JOIN nodes AS n ON n.id = t.node_id"
        " WHERE t.tag = 'tier:off-context' AND n.superseded_by IS NULL"
        " AND (?1 OR coalesce((SELECT min(CASE WHEN tag <> ?2 THEN 1 ELSE 0 END) FROM tags"
        f"  WHERE node_id = t.node_id AND {_PROJECTS}), 0) = 0) ORDER BY t.node_id DESC LIMIT ?3",
        (everywhere, project or "", most),
    )
    return [row[0] for row in rows]


class ImportRow(NamedTuple):
    """A node with the text of an import, and the author of that import, such as `import:jsonl`."""

    id: NodeId
    author: str


def imported(connection: Connection, project: str | None, *, everywhere: bool) -> list[ImportRow]:
    """Nodes that still have the text of an import and are not the user's.

    Those of all projects, or of one and of none. Left out are hidden and superseded nodes, exports
    of ctx itself, and the history of sessions, of which there may be very much.
    """
    rows = connection.execute(
        "SELECT r.subject, min(r.author) FROM records AS r JOIN nodes AS n ON n.id = r.subject"
        " WHERE r.author > 'import:' AND r.author < 'import;' AND r.author <> 'import:ctx'"
        " AND r.kind = 'node.put' AND json_extract(r.body, '$.content') = n.content"
        " AND n.superseded_by IS NULL"
        " AND coalesce(json_extract(n.metadata, '$.source'), '') <> 'user'"
        " AND NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id"
        "  AND (tag = 'tier:off-context' OR tag >= 'session:' AND tag < 'session;'))"
        " AND (?1 OR coalesce((SELECT min(CASE WHEN tag <> ?2 THEN 1 ELSE 0 END) FROM tags"
        f"  WHERE node_id = n.id AND {_PROJECTS}), 0) = 0) GROUP BY r.subject",
        (everywhere, project or ""),
    )
    return [ImportRow._make(row) for row in rows]


def settled_in_files(connection: Connection, paths: Sequence[str], most: int) -> list[NodeId]:
    """The newest nodes about a bug fix or a decision in one of these files."""
    # Many files match by type, one by path: the unary plus disables the type index.
    rows = connection.execute(
        "SELECT e.from_id FROM nodes AS f JOIN edges AS e ON e.to_id = f.id AND e.type = 'MENTIONS'"
        " JOIN tags AS t ON t.node_id = e.from_id AND t.tag IN ('kind:bugfix', 'kind:decision')"
        f" WHERE json_extract(f.metadata, '$.path') IN ({', '.join('?' * len(paths))})"
        " AND +f.type = 'file' ORDER BY e.from_id DESC LIMIT ?",
        (*paths, most),
    )
    return [row[0] for row in rows]


def of_session(connection: Connection, session: str) -> list[NodeStatement]:
    """The nodes that synthesis wrote about a session, newest first.

    A node that was replaced by one with the same key is left out.
    """
    # Many nodes match by type, few by session: the unary plus disables the type index.
    rows = connection.execute(
        f"SELECT {_STATEMENT} FROM tags AS t JOIN nodes AS n ON n.id = t.node_id"
        " WHERE t.tag = ? AND +n.type IN ('observation', 'summary')"
        " AND json_extract(n.metadata, '$.key') IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM nodes AS r"
        "  WHERE r.id = n.superseded_by"
        "  AND json_extract(r.metadata, '$.key') = json_extract(n.metadata, '$.key'))"
        " ORDER BY n.id DESC",
        (f"session:{session}",),
    )
    return [NodeStatement._make(row) for row in rows]


def with_keys(connection: Connection, tag: str, keys: Sequence[str]) -> list[NodeStatement]:
    """Current observations with one of these keys and a tag; an empty tag matches all."""
    rows = connection.execute(
        f"SELECT {_STATEMENT} FROM nodes AS n WHERE n.superseded_by IS NULL"
        f" AND n.type = 'observation' AND {_tag_condition(tag)}"
        f" AND json_extract(n.metadata, '$.key') IN ({', '.join('?' * len(keys))})",
        (tag, *keys),
    )
    return [NodeStatement._make(row) for row in rows]


def newest_statements(connection: Connection, tag: str, most: int) -> list[NodeStatement]:
    """The newest current observations, decisions and facts, with a tag unless it is empty."""
    # Scans from the newest on and stops early: the unary plus disables the type index.
    rows = connection.execute(
        f"SELECT {_STATEMENT} FROM nodes AS n WHERE n.superseded_by IS NULL"
        f" AND +n.type IN ('observation', 'decision', 'fact') AND {_tag_condition(tag)}"
        " ORDER BY n.id DESC LIMIT ?",
        (tag, most),
    )
    return [NodeStatement._make(row) for row in rows]


def changed_at(connection: Connection) -> dict[str, str]:
    """When each node was last changed."""
    return dict(connection.execute("SELECT id, updated_at FROM nodes"))


def state(connection: Connection) -> tuple[str, str, str, str]:
    """What differs if any node has changed: the file, its last record, and the number of nodes."""
    path = connection.execute("SELECT file FROM pragma_database_list WHERE seq = 0").fetchone()[0]
    sql = "SELECT rowid, id FROM records ORDER BY rowid DESC LIMIT 1"
    row, record = connection.execute(sql).fetchone() or ("", "")
    number = connection.execute("SELECT count(*) FROM nodes").fetchone()[0]
    return path, str(row), record, str(number)


def changed_last(connection: Connection, most: int) -> list[NodeId]:
    sql = "SELECT id FROM nodes ORDER BY updated_at DESC, id DESC LIMIT ?"
    return [row[0] for row in connection.execute(sql, (most,))]


def newest_documents(connection: Connection, most: int) -> list[NodeId]:
    sql = "SELECT id FROM nodes WHERE type IN ('task', 'decision') ORDER BY id DESC LIMIT ?"
    return [row[0] for row in connection.execute(sql, (most,))]


def texts(connection: Connection, node_ids: Iterable[str], longest: int) -> list[tuple[str, str]]:
    """The beginning of each node's text, the summary first."""
    wanted = list(node_ids)
    return connection.execute(
        "SELECT id, substr(CASE WHEN summary IS NULL THEN content"
        " ELSE summary || char(10) || content END, 1, ?)"
        f" FROM nodes WHERE id IN ({', '.join('?' * len(wanted))})",
        (longest, *wanted),
    ).fetchall()


def _tag_condition(tag: str) -> str:
    return "n.id IN (SELECT node_id FROM tags WHERE tag = ?)" if tag else "? = ''"
