"""The statements that hooks run on the tables of other packages.

A hook cannot afford to load the packages that own these tables, so their statements for hooks are
here. `tests/test_tables.py` checks that no other module that hooks load has any. Each function runs
one statement, on one connection or on all of them; what the rows mean is up to the caller.

Hooks load this module, so it imports nothing slow.
"""

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ctx.ids import NodeId

MOST_SESSIONS = 40
"""How many of the latest sessions of a project are considered."""

IMPORTED = "source:claude-mem"
"""The tag of nodes about sessions that another program captured (`exchange/foreign`)."""

_MOST_MESSAGES = 600
_MOST_IDS = 200
"""How many ids one statement takes."""

# A node `n` of the project ?1, or of none.
_IS_OWN = (
    "(SELECT min(tag <> 'project:' || ?1) FROM tags"
    " WHERE node_id = n.id AND tag >= 'project:' AND tag < 'project;') IS NOT 1"
)
_IS_CURRENT = (
    f" n.superseded_by IS NULL AND {_IS_OWN}"
    " AND NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id AND tag"
)
# A node `n` that is neither superseded nor off-context nor of another project than ?1.
_CAN_MATCH = f"{_IS_CURRENT} = 'tier:off-context')"
# One that may be given without a prompt.
_IS_VALID = f"{_IS_CURRENT} IN ('tier:off-context', 'verdict:useless'))"
# Whether ctx has its own summary of the session in the tag `s`.
_IS_CAPTURED = "EXISTS (SELECT 1 FROM sessions WHERE 'session:' || id = s.tag AND summary NOTNULL)"
_COLUMNS = "n.id, n.type, n.content, n.metadata, n.created_at, n.updated_at"
_MESSAGE = "(SELECT sum(length(text)) FROM excerpts WHERE session = e.session AND step = e.step)"
_PASSAGE = f"e.id, e.session, e.at, e.kind, e.source, e.text, e.terms, e.step, {_MESSAGE}"
# In the order of `chooser.Passage`.


# The state of a store


def last_stamp(connection: Connection) -> int:
    """The stamp of the last change of memory."""
    last: int | None = connection.execute("SELECT max(stamp) FROM records").fetchone()[0]
    return last or 0


def schema_version(connection: Connection) -> int | None:
    sql = "SELECT max(version) FROM schema_version"
    version: int | None = connection.execute(sql).fetchone()[0]
    return version


def default_view(connection: Connection) -> "tuple[str | None] | None":
    """The compiled statements of the view `default`; None if the store has no such view."""
    sql = "SELECT compiled FROM views WHERE name = 'default'"
    row: tuple[str | None] | None = connection.execute(sql).fetchone()
    return row


# Sessions


def sessions(
    connection: Connection, project: str | None, without: str = "", most: int = MOST_SESSIONS
) -> "list[Any]":
    """The latest sessions with a summary, newest first: id, time in seconds, summary.

    Teammates belong to the session of their lead.
    """
    sql = (
        "SELECT id, CAST(strftime('%s', last_at) AS INTEGER), summary FROM (SELECT * FROM sessions"
        " WHERE project IS ?1 AND id <> ?2"
        " AND id NOT IN (SELECT session FROM session_teams WHERE lead IN (SELECT id FROM sessions))"
        " ORDER BY last_at DESC, id LIMIT ?3) WHERE summary IS NOT NULL"
    )
    return connection.execute(sql, (project, without, most)).fetchall()


def latest_sessions(connection: Connection, project: str | None, without: str = "") -> list[str]:
    """The latest sessions, with or without a summary, newest first."""
    sql = "SELECT id FROM sessions WHERE project IS ?1 AND id <> ?2 ORDER BY last_at DESC LIMIT ?3"
    return [row[0] for row in connection.execute(sql, (project, without, MOST_SESSIONS))]


def unanswered_message(
    connection: Connection, project: str | None, without: str = ""
) -> "tuple[str, str, str] | None":
    """The user's message with which the latest session ended: session, time, text.

    An interrupt leaves a message without an answer too.
    """
    sql = (
        "WITH steps AS NOT MATERIALIZED (SELECT session, id, json_extract(body, '$.kind') AS kind,"
        " coalesce(json_extract(body, '$.author'), 'person') AS author, body FROM events"
        " WHERE status = 'step' AND session = (SELECT id FROM sessions WHERE project IS ?1"
        " AND id <> ?2 AND id NOT IN (SELECT session FROM session_teams)"
        " ORDER BY last_at DESC, id LIMIT 1)),"
        " last AS (SELECT kind FROM steps WHERE kind NOT IN ('mark', 'title', 'name')"
        " OR json_extract(body, '$.text') = 'interrupted' ORDER BY id DESC LIMIT 1),"
        " asked AS (SELECT * FROM steps WHERE kind = 'prompt' ORDER BY id DESC LIMIT 1)"
        " SELECT x.session, x.at, x.text FROM asked AS a JOIN excerpts AS x"
        " ON x.session = a.session AND x.step = a.id WHERE a.author = 'person'"
        " AND (SELECT kind FROM last) IN ('prompt', 'mark')"
        " ORDER BY x.source <> 'user', x.part LIMIT 1"
    )
    row: tuple[str, str, str] | None = connection.execute(sql, (project, without)).fetchone()
    return row


def messages_of_user(
    connection: Connection, session_ids: "Sequence[str]", longest: int
) -> "list[Any]":
    """The passages of what the user said in messages that are not longer, newest first."""
    sql = (
        f"SELECT {_PASSAGE} FROM excerpts AS e WHERE source = 'user' AND kind <> 'pasted'"
        f" AND {_MESSAGE} <= {longest:d} AND session IN"
    )
    rows = _rows_of_nodes([connection], sql, session_ids)
    return sorted(rows, key=lambda row: (row[2], -row[0]), reverse=True)[:_MOST_MESSAGES]


def said_before(connection: Connection, session: str, step: str) -> str:
    """The end of the agent's last message before a step."""
    sql = (
        "SELECT text FROM excerpts WHERE session = ? AND step < ? AND source = 'agent'"
        " AND kind IN ('final', 'report', 'remark') ORDER BY step DESC, part DESC LIMIT 1"
    )
    row = connection.execute(sql, (session, step)).fetchone()
    return row[0] if row else ""


def session_commands(connection: Connection, project: str | None, without: str = "") -> "list[Any]":
    """The commands that the latest sessions ran, newest session first."""
    sql = (
        "SELECT c.session, command, purpose, runs, passes, failures, c.last_at, last, problem,"
        " replaced_by FROM (SELECT id, last_at FROM sessions WHERE project IS ?1 AND id <> ?2"
        " ORDER BY last_at DESC, id LIMIT ?3) AS s JOIN session_commands AS c ON c.session = s.id"
        " ORDER BY s.last_at DESC, s.id, command"
    )
    return connection.execute(sql, (project, without, MOST_SESSIONS)).fetchall()


def removed_commands(connection: Connection, project: str | None) -> "set[str]":
    """The commands that the user removed in a project; outside of projects, in any."""
    sql = (
        "SELECT content FROM tags AS t JOIN nodes AS n ON n.id = t.node_id"
        " WHERE t.tag = 'command:removed' AND (?1 IS NULL OR EXISTS"
        " (SELECT 1 FROM tags WHERE node_id = n.id AND tag = 'project:' || ?1))"
    )
    return {row[0] for row in connection.execute(sql, (project,))}


def last_steps(connection: Connection, session: str, most: int, largest: int) -> Iterator[str]:
    """The bodies of the last steps of a session, oldest first, without the largest."""
    sql = (
        "SELECT body FROM (SELECT id, body FROM events WHERE session = ? AND status = 'step'"
        " ORDER BY id DESC LIMIT ?) WHERE length(body) < ? ORDER BY id"
    )
    return (row[0] for row in connection.execute(sql, (session, most, largest)))


# Nodes of the context's first layer, and of agents


def nodes(connections: Sequence[Connection], node_ids: Sequence[NodeId]) -> "list[Any]":
    return _rows_of_nodes(
        connections,
        "SELECT id, type, content, summary, token_estimate, superseded_by, created_at, updated_at,"
        " metadata FROM nodes WHERE id IN",
        node_ids,
    )


def types(connections: Sequence[Connection], node_ids: Sequence[NodeId]) -> "dict[NodeId, str]":
    # This index has the type, so the nodes themselves are not read.
    sql = "SELECT id, type FROM nodes INDEXED BY idx_nodes_row WHERE id IN"
    return dict(_rows_of_nodes(connections, sql, node_ids))


def tags(connections: Sequence[Connection], node_ids: Sequence[NodeId]) -> "list[Any]":
    """Each tag with its node."""
    sql = "SELECT node_id, tag FROM tags WHERE node_id IN"
    return _rows_of_nodes(connections, sql, node_ids, "ORDER BY node_id, tag")


def dependencies(connections: Sequence[Connection], node_ids: Sequence[NodeId]) -> "list[Any]":
    """What the nodes depend on, and what they were derived from: source, target, type of edge."""
    return _rows_of_nodes(
        connections,
        # Few edges match by node, many by type: the `+` keeps SQLite from using the type's index.
        "SELECT from_id, to_id, type FROM edges WHERE +type IN ('DEPENDS_ON', 'DERIVED_FROM')"
        " AND from_id IN",
        node_ids,
        "ORDER BY from_id, to_id",
    )


def type_and_validity(connections: Sequence[Connection], node_id: str) -> "list[tuple[str, int]]":
    """The type of a node, and whether it is neither superseded nor off-context."""
    sql = (
        "SELECT type, superseded_by IS NULL AND NOT EXISTS (SELECT 1 FROM tags"
        " WHERE node_id = id AND tag = 'tier:off-context') FROM nodes WHERE id = ?"
    )
    return [row for each in connections for row in each.execute(sql, (node_id,))]


def nodes_in_work(
    connection: Connection, project: str | None, task: str | None, session: str, most: int
) -> "list[tuple[int, NodeId]]":
    """The task, working nodes, open questions, and what a session wrote.

    Tasks first, then newest first. Each with whether it is no task.
    """
    sql = (
        "SELECT type <> 'task', id FROM nodes AS n WHERE superseded_by IS NULL AND id IN ("
        "  SELECT * FROM (SELECT node_id FROM tags WHERE tag = 'tier:working'"
        "   ORDER BY node_id DESC LIMIT ?5)"
        "  UNION SELECT * FROM (SELECT id FROM nodes WHERE type = 'open-question'"
        "   ORDER BY id DESC LIMIT ?5)"
        "  UNION SELECT * FROM (SELECT subject FROM records WHERE session = ?1 AND session <> ''"
        "   AND kind = 'node.put' ORDER BY subject DESC LIMIT ?5))"
        # Anchors have no text of their own, and the agent knows what a summary contains.
        " AND type NOT IN ('file', 'item', 'package', 'summary')"
        " AND NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id AND tag = 'tier:off-context')"
        " AND (SELECT min(tag <> 'project:' || ?2) FROM tags WHERE node_id = n.id"
        "  AND tag >= 'project:' AND tag < 'project;') IS NOT 1"
        " AND (?3 IS NULL OR (SELECT min(tag <> 'task:' || ?3) FROM tags WHERE node_id = n.id"
        "  AND tag >= 'task:' AND tag < 'task;') IS NOT 1)"
        " ORDER BY type <> 'task', id DESC LIMIT ?4"
    )
    return connection.execute(sql, (session, project or "", task, most, most * 50)).fetchall()


# Nodes about past sessions: id, type, content, metadata, times of creation and update


def valid_nodes(
    connections: Sequence[Connection], node_ids: Sequence[str], project: str | None
) -> "list[Any]":
    """The valid nodes, in the order of `node_ids`."""
    rows: dict[str, Any] = {}
    for part in _in_parts(node_ids):
        sql = f"SELECT {_COLUMNS} FROM nodes AS n WHERE {_IS_VALID} AND n.id IN ({_places(part)})"
        for connection in connections:
            rows.update((row[0], row) for row in connection.execute(sql, (project or "", *part)))
    return [rows[each] for each in node_ids if each in rows]


def summaries_of_sessions(
    connections: Sequence[Connection], project: str | None, without: str, most: int
) -> "list[Any]":
    """The newest valid summaries, also those of other people."""
    sql = (
        f"SELECT {_COLUMNS} FROM nodes AS n WHERE n.type = 'summary' AND {_IS_VALID} AND EXISTS"
        " (SELECT 1 FROM tags WHERE node_id = n.id AND tag >= 'session:' AND tag < 'session;'"
        " AND tag <> 'session:' || ?2) ORDER BY n.created_at DESC, n.id DESC LIMIT ?3"
    )
    values = (project or "", without, most)
    return [row for each in connections for row in each.execute(sql, values)]


def imported_summaries(
    connection: Connection, project: str | None, without: str, most: int
) -> "list[Any]":
    """The newest valid summaries of sessions that only another program captured.

    Each has the tag of its session.
    """
    sql = (
        f"SELECT {_COLUMNS}, s.tag FROM tags AS t JOIN nodes AS n ON n.id = t.node_id"
        " JOIN tags AS s ON s.node_id = n.id AND s.tag >= 'session:' AND s.tag < 'session;'"
        f" WHERE t.tag = '{IMPORTED}' AND +n.type = 'summary' AND s.tag <> 'session:' || ?2"
        f" AND {_IS_VALID} AND NOT {_IS_CAPTURED} ORDER BY t.node_id DESC LIMIT ?3"
    )
    return connection.execute(sql, (project or "", without, most)).fetchall()


def captured_imports(connection: Connection, node_ids: Sequence[str]) -> "set[str]":
    """Those of the nodes that another program made of a session that ctx has captured too."""
    sql = (
        "SELECT t.node_id FROM tags AS t JOIN tags AS s ON s.node_id = t.node_id"
        f" WHERE t.tag = '{IMPORTED}' AND s.tag >= 'session:' AND s.tag < 'session;'"
        f" AND {_IS_CAPTURED} AND t.node_id IN"
    )
    return {row[0] for row in _rows_of_nodes([connection], sql, node_ids)}


def stated_learnings(
    connections: Sequence[Connection], project: str | None, most: int
) -> "list[Any]":
    """The newest valid learnings that a person stated or confirmed, each with its tag."""
    sql = (
        f"SELECT {_COLUMNS}, t.tag FROM tags AS t JOIN nodes AS n ON n.id = t.node_id"
        f" WHERE t.tag >= 'learning:' AND t.tag < 'learning;' AND {_IS_VALID}"
        " AND json_extract(n.metadata, '$.origin') IS NOT 'inferred'"
        " AND json_extract(n.metadata, '$.rejected') IS NULL ORDER BY t.node_id DESC LIMIT ?2"
    )
    return [row for each in connections for row in each.execute(sql, (project or "", most))]


def nodes_with_tag(
    connections: Sequence[Connection], project: str | None, tag: str, most: int
) -> "list[Any]":
    """The newest valid nodes with a tag."""
    sql = (
        f"SELECT {_COLUMNS} FROM tags AS t JOIN nodes AS n ON n.id = t.node_id WHERE t.tag = ?2"
        f" AND {_IS_VALID} ORDER BY t.node_id DESC LIMIT ?3"
    )
    return [row for each in connections for row in each.execute(sql, (project or "", tag, most))]


def newest_of_type(
    connections: Sequence[Connection], project: str | None, node_type: str, most: int
) -> "list[Any]":
    """The newest valid nodes of a type."""
    sql = (
        f"SELECT {_COLUMNS} FROM nodes AS n WHERE n.type = ?2 AND {_IS_VALID}"
        " ORDER BY n.id DESC LIMIT ?3"
    )
    rows = (each.execute(sql, (project or "", node_type, most)) for each in connections)
    return [row for found in rows for row in found]


def mentioned_anchors(
    connections: Sequence[Connection], node_ids: Sequence[str]
) -> "list[tuple[str, str, str]]":
    """The type, the id and the name of each file and item that the nodes mention."""
    sql = (
        "SELECT DISTINCT f.type, f.id, f.content FROM edges AS e JOIN nodes AS f ON f.id = e.to_id"
        " WHERE +e.type = 'MENTIONS' AND f.type IN ('file', 'item') AND e.from_id IN"
    )
    return _rows_of_nodes(connections, sql, node_ids)


def nodes_that_mention(
    connections: Sequence[Connection],
    project: str | None,
    path: str,
    item_ids: Sequence[str],
    most: int,
) -> "list[Any]":
    """The newest valid nodes that mention a file or these items, each with the item's name."""
    sql = (
        f"SELECT {_COLUMNS}, iif(f.type = 'item', f.content, '') FROM edges AS e"
        " JOIN nodes AS f ON f.id = e.to_id JOIN nodes AS n ON n.id = e.from_id"
        f" WHERE +e.type = 'MENTIONS' AND {_IS_VALID} AND e.to_id IN (SELECT id FROM nodes"
        "  WHERE json_extract(metadata, '$.path') = ?2"
        f"  UNION SELECT id FROM nodes WHERE id IN ({_places(item_ids)}))"
        f" ORDER BY n.id DESC LIMIT {most}"
    )
    values = (project or "", path, *item_ids)
    return [row for each in connections for row in each.execute(sql, values)]


# Excerpts of what was said


def matching_excerpts(
    connection: Connection, query: str, project: str | None, without: str, most: int
) -> "list[Any]":
    """The passages that match a full-text query, best first."""
    sql = (
        f"SELECT {_PASSAGE} FROM excerpts_fts JOIN excerpts AS e ON e.id = excerpts_fts.rowid"
        " WHERE excerpts_fts MATCH ? AND e.project IS ? AND e.session <> ? AND e.kind <> 'pasted'"
        " ORDER BY bm25(excerpts_fts) LIMIT ?"
    )
    return connection.execute(sql, (query, project, without, most)).fetchall()


def matching_statements(
    connections: Sequence[Connection], query: str, project: str | None, most: int, known: str
) -> "list[Any]":
    """The nodes that match a full-text query, best first.

    Of sessions that have excerpts, only what no excerpt says: fixes and failures. `known` is the
    JSON of their tags.
    """
    sql = (
        f"SELECT {_COLUMNS} FROM nodes_fts JOIN nodes AS n ON n.rowid = nodes_fts.rowid"
        f" WHERE nodes_fts MATCH ?2 AND {_CAN_MATCH} AND n.type IN ('fact', 'decision',"
        " 'pattern', 'observation', 'hypothesis', 'open-question', 'task')"
        " AND (NOT EXISTS (SELECT 1 FROM tags AS s WHERE s.node_id = n.id"
        "  AND s.tag IN (SELECT value FROM json_each(?4))) OR EXISTS (SELECT 1 FROM tags AS k"
        "  WHERE k.node_id = n.id AND k.tag IN ('kind:bugfix', 'kind:failure')))"
        " ORDER BY bm25(nodes_fts) LIMIT ?3"
    )
    values = (project or "", f"terms : ({query})", most, known)
    return [row for each in connections for row in each.execute(sql, values)]


def withdrawn(connections: Sequence[Connection], session_ids: Sequence[str]) -> "list[str | None]":
    """The metadata of each observation that has been deleted, superseded, edited or excluded."""
    sql = (
        "SELECT json_extract(r.body, '$.metadata') FROM records AS r"
        " LEFT JOIN nodes AS n ON n.id = r.subject WHERE r.author = 'synthesis'"
        " AND r.kind = 'node.put' AND (n.superseded_by IS NOT NULL OR EXISTS (SELECT 1 FROM tags"
        "  WHERE node_id = r.subject AND tag = 'tier:off-context') OR EXISTS (SELECT 1"
        "  FROM records AS o WHERE o.subject = r.subject AND o.author <> r.author"
        "  AND (o.kind = 'node.delete' AND n.id IS NULL OR o.kind = 'node.put'"
        "   AND json_extract(o.body, '$.content') IS NOT NULL)))"
        " AND r.session <> '' AND r.session IN"
    )
    return [row[0] for row in _rows_of_nodes(connections, sql, session_ids)]


def judged(connections: Sequence[Connection], project: str | None) -> "list[tuple[bool, str, str]]":
    """What the user called wrong or useless: whether it is useless, the node and its text."""
    sql = (
        "SELECT t.tag = 'verdict:useless', n.id, n.content FROM tags AS t"
        " JOIN nodes AS n ON n.id = t.node_id"
        f" WHERE t.tag IN ('verdict:useless', 'verdict:wrong') AND {_IS_OWN}"
    )
    return [row for each in connections for row in each.execute(sql, (project or "",))]


def excerpts_with(connection: Connection, term: str, most: int) -> int:
    """How many excerpts have a term, as far as counted."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM excerpts_fts WHERE excerpts_fts MATCH ? LIMIT ?)"
    return int(connection.execute(sql, (f'"{term}"', most)).fetchone()[0])


def last_excerpt(connection: Connection) -> int:
    """The number of the newest excerpt."""
    last: int | None = connection.execute("SELECT max(id) FROM excerpts").fetchone()[0]
    return last or 0


def count_excerpts(connection: Connection, project: str | None) -> int:
    sql = "SELECT count(*) FROM excerpts WHERE project IS ?"
    return int(connection.execute(sql, (project,)).fetchone()[0])


def sessions_with_excerpts(connection: Connection, project: str | None) -> list[str]:
    """Newest first."""
    sql = "SELECT session FROM excerpts WHERE project IS ? GROUP BY session ORDER BY max(at) DESC"
    return [row[0] for row in connection.execute(sql, (project,))]


def branches(connection: Connection, session_ids: "Sequence[str]") -> "dict[str, str]":
    """The branch of each session that ran on one."""
    sql = "SELECT id, branch FROM sessions WHERE branch > '' AND id IN"
    return dict(_rows_of_nodes([connection], sql, session_ids))


# Commands of agents, and what waits for a session


def commands_since(connection: Connection, session: str, at: str) -> "list[bool]":
    """For each command that was processed since then, whether there was a problem."""
    sql = "SELECT problem IS NOT NULL FROM commands WHERE session = ? AND at >= ?"
    return [bool(row[0]) for row in connection.execute(sql, (session, at))]


def pending(connection: Connection, key: str) -> "str | None":
    row = connection.execute("SELECT value FROM pending WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def is_anything_pending(connection: Connection) -> bool:
    """Whether something waits for some session."""
    sql = "SELECT 1 FROM pending WHERE key NOT LIKE 'current\\_task%' ESCAPE '\\' LIMIT 1"
    return connection.execute(sql).fetchone() is not None


def are_nodes_expanded(connection: Connection) -> bool:
    """Whether some session asked for what a summary was made from."""
    sql = "SELECT 1 FROM pending WHERE key LIKE 'expand\\_nodes:%' ESCAPE '\\' LIMIT 1"
    return connection.execute(sql).fetchone() is not None


def is_pending(connection: Connection, keys: Sequence[str], oldest: str, newest: str) -> bool:
    """Whether something waits under one of these keys that came in between."""
    sql = f"SELECT 1 FROM pending WHERE {_created_between(keys)}"
    return connection.execute(sql, (*keys, oldest, newest)).fetchone() is not None


def take_pending(
    connection: Connection, keys: Sequence[str], oldest: str, newest: str
) -> "list[tuple[str, str]]":
    """The same keys and values, which are deleted."""
    sql = f"DELETE FROM pending WHERE {_created_between(keys)} RETURNING key, value"
    return connection.execute(sql, (*keys, oldest, newest)).fetchall()


def _created_between(keys: Sequence[str]) -> str:
    return f"key IN ({_places(keys)}) AND created_at BETWEEN ? AND ?"


def _rows_of_nodes(
    connections: Sequence[Connection], sql: str, node_ids: Sequence[str], order: str = ""
) -> "list[Any]":
    rows: list[Any] = []
    for part in _in_parts(node_ids):
        statement = f"{sql} ({_places(part)}) {order}"
        for each in connections:
            rows += each.execute(statement, part)
    return rows


def _in_parts(node_ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (node_ids[at : at + _MOST_IDS] for at in range(0, len(node_ids), _MOST_IDS))


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
