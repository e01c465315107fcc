"""Reads a graph: nodes by id, their edges, tags and records, and views."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import Literal, NamedTuple

from ctx import ids
from ctx.errors import AmbiguousId, NodeNotFound, UsageError, ViewNotFound
from ctx.ids import NodeId
from ctx.memory import records, short_ids, sources
from ctx.memory.model import Edge, Node, View, from_json
from ctx.memory.records import Record

USER, PROJECT = "user", "project"
"""The scopes of stores."""

Direction = Literal["in", "out", "both"]
DIRECTIONS: tuple[Direction, ...] = ("in", "out", "both")

_BATCH = 500
_CANDIDATES_SHOWN = 5
_OF_PROJECTS = "tag >= 'project:' AND tag < 'project;'"
# Tagged with other projects and not with this one.
_ELSEWHERE = (
    "coalesce((SELECT min(CASE WHEN tag <> ? THEN 1 ELSE 0 END) FROM tags"
    f" WHERE node_id = nodes.id AND {_OF_PROJECTS}), 0) = 1"
)
_EDGE_COLUMNS = "id, from_id, to_id, type, created_at, metadata"


class TagCount(NamedTuple):
    tag: str
    nodes: int


class NodeDeletion(NamedTuple):
    """The last deletion of a node in a graph. Of two graphs, the greater one says where it was."""

    is_final: bool
    """Whether the node was deleted, rather than moved to another graph."""
    order: tuple[int, str]
    """The stamp and the id of the record."""
    node_id: NodeId


class Graph:
    """The graph in one database. It only reads; `changes.changing` writes."""

    def __init__(self, connection: Connection, scope: str = USER) -> None:
        self.connection = connection
        self.scope = scope
        self.write_records: Callable[[Sequence[Record]], None] | None = None
        """Writes the records of a change and updates the tables, if that is done elsewhere than in
        a database of this machine."""

    def find(self, text: str) -> NodeId:
        """The node whose id has this prefix, or whose document has this number."""
        if "_" in text or "/" in text:
            from ctx.memory import documents_by_number

            # Ids never contain these characters.
            return documents_by_number.find(self.connection, text)
        prefix = _prefix(text)
        node_ids = self._nodes_with_prefix(prefix, _CANDIDATES_SHOWN + 1)
        if not node_ids:
            gone = self._deleted_with_prefix(prefix, 1)
            if gone:
                raise NodeNotFound(
                    f"The node {ids.short(gone[0])} was deleted.",
                    hint=f"`ctx restore {ids.short(gone[0])}` restores it.",
                )
            raise NodeNotFound(f"No node has an id that begins with {text[:40]!r}.")
        if len(node_ids) > 1:
            nodes = self.nodes(node_ids[:_CANDIDATES_SHOWN])
            lines = [f"  {node.id}  {node.type}  {_first_line(node.content)}" for node in nodes]
            if len(node_ids) > _CANDIDATES_SHOWN:
                lines.append("  …")
            raise AmbiguousId(
                f"Several nodes have an id that begins with {prefix}.", detail="\n".join(lines)
            )
        return node_ids[0]

    def with_proposals(self) -> list[NodeId]:
        """The nodes that an agent proposes to change, oldest first."""
        rows = self.connection.execute(
            # The condition of `idx_nodes_proposed`, so that few nodes are read.
            "SELECT id FROM nodes WHERE json_extract(metadata, '$.proposed') IS NOT NULL"
            " ORDER BY id"
        )
        return [row[0] for row in rows]

    def tagged(self, tag: str) -> list[NodeId]:
        """The nodes that have a tag, oldest first."""
        rows = self.connection.execute(
            "SELECT node_id FROM tags WHERE tag = ? ORDER BY node_id", (tag,)
        )
        return [row[0] for row in rows]

    def find_deleted(self, text: str) -> NodeId:
        """The deleted node whose id has this prefix."""
        prefix = _prefix(text)
        node_ids = self._deleted_with_prefix(prefix, _CANDIDATES_SHOWN + 1)
        if not node_ids:
            if self._nodes_with_prefix(prefix, 1):
                raise UsageError(f"The node {prefix} is not deleted.", hint=f"ctx show {prefix}")
            raise NodeNotFound(
                f"No deleted node has an id that begins with {text[:40]!r}.",
                hint="`ctx list --deleted` lists deleted nodes.",
            )
        if len(node_ids) > 1:
            detail = "\n".join(f"  {node_id}" for node_id in node_ids)
            raise AmbiguousId(f"Several deleted nodes begin with {prefix}.", detail=detail)
        return node_ids[0]

    def _deleted_with_prefix(self, prefix: str, limit: int) -> list[NodeId]:
        rows = self.connection.execute(
            "SELECT DISTINCT subject FROM records WHERE kind = 'node.delete'"
            " AND subject >= ? AND subject < ?"
            " AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = subject) LIMIT ?",
            (prefix, prefix + "~", limit),
        )
        return [row[0] for row in rows]

    def was_deleted(self, node_id: NodeId) -> bool:
        row = self.connection.execute(
            "SELECT 1 FROM records WHERE subject = ? AND kind = 'node.delete'", (node_id,)
        ).fetchone()
        return row is not None and not self.has(node_id)

    def deletions(self, node_id: NodeId | None = None) -> list[NodeDeletion]:
        """The last deletion of each deleted node whose text is stored, or of one, newest first."""
        rows = self.connection.execute(
            "SELECT subject, action, stamp, id FROM records AS gone WHERE kind = 'node.delete'"
            " AND (?1 IS NULL OR subject = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = subject)"
            " AND EXISTS (SELECT 1 FROM records WHERE subject = gone.subject"
            " AND kind = 'node.put' AND json_extract(body, '$.content') IS NOT NULL)"
            " ORDER BY stamp DESC, id DESC",
            (node_id,),
        )
        found: dict[NodeId, NodeDeletion] = {}
        for subject, action, *order in rows:
            deletion = NodeDeletion(action != records.MOVE, (order[0], order[1]), subject)
            found.setdefault(subject, deletion)
        return list(found.values())

    def deleted_node(self, node_id: NodeId) -> Node | None:
        """A deleted node as it was; None if its text is not stored."""
        from ctx import tokens
        from ctx.memory import replay

        about = records.records_about(self.connection, node_id)
        state = replay.node(about)
        if state is None:
            return None
        tags = tuple(sorted(replay.tags(about)))
        shape = state.type, state.content, state.summary, tags
        size = tokens.estimate(state.content)
        times = state.created_at, state.updated_at
        node = Node(node_id, *shape, size, None, *times, state.metadata, self.scope)
        authors = [each.author for each in about if "content" in each.body]
        author = authors[-1] if authors else ""
        return node._replace(source=sources.source_of(node.type, node.metadata, author))

    def _nodes_with_prefix(self, prefix: str, limit: int) -> list[NodeId]:
        rows = self.connection.execute(
            "SELECT id FROM nodes WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (prefix, prefix + "~", limit),
        )
        return [row[0] for row in rows]

    def newest_with_prefix(self, prefix: str, limit: int) -> list[NodeId]:
        """The newest nodes whose id begins so."""
        rows = self.connection.execute(
            "SELECT id FROM nodes WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
            (prefix, prefix + "~", limit),
        )
        return [row[0] for row in rows]

    def shown(self, node_ids: Iterable[NodeId]) -> dict[NodeId, str]:
        """Short ids that are long enough to be unambiguous in this graph."""
        return short_ids.short_ids((self.connection,), node_ids)

    def node(self, node_id: NodeId) -> Node:
        for node in self.nodes([node_id]):
            return node
        raise NodeNotFound(f"There is no node {node_id}.")

    def newest(
        self,
        node_types: Sequence[str],
        tags: Sequence[str],
        since: str | None,
        limit: int | None,
        *,
        include_superseded: bool = False,
        except_types: Sequence[str] = (),
        project: str | None = None,
    ) -> tuple[list[NodeId], int]:
        """The newest nodes with one of the types and all of the tags, and their total number;
        with a project, those of it and of none."""
        where: list[str] = []
        values: list[str] = []
        if not include_superseded:
            where.append("nodes.superseded_by IS NULL")
        if node_types:
            where.append(f"type IN ({', '.join('?' * len(node_types))})")
            values += node_types
        if except_types:
            # Not the types that are left: SQLite would read all of these before it sorts.
            where.append(f"type NOT IN ({', '.join('?' * len(except_types))})")
            values += except_types
        if since is not None:
            where.append("created_at >= ?")
            values.append(since)
        for tag in tags:
            where.append("id IN (SELECT node_id FROM tags WHERE tag = ?)")
            values.append(tag)
        here = [] if project is None else [f"NOT {_ELSEWHERE}"]
        own = [] if project is None else [f"project:{project}"]
        condition = " AND ".join([*where, *here]) or "TRUE"
        rows = self.connection.execute(
            f"SELECT id FROM nodes WHERE {condition} ORDER BY id DESC"
            + ("" if limit is None else " LIMIT ?"),
            [*values, *own] if limit is None else (*values, *own, limit),
        ).fetchall()
        total = len(rows)
        if limit is not None and total == limit:
            if project is not None and (node_types or tags or since):
                total = self._number([*where, *here], [*values, *own])
            else:
                total = self._count(where, values)
                total -= self._count_elsewhere(where, values, own[0]) if own else 0
        return [row[0] for row in rows], total

    def _count_elsewhere(self, where: list[str], values: list[str], tag: str) -> int:
        """How many of nearly all nodes are tagged with other projects.

        The tags of projects have an index of their own, and few nodes have to be subtracted.
        """
        every, mine = self.connection.execute(
            "SELECT (SELECT count(*) FROM (SELECT DISTINCT node_id FROM tags INDEXED BY"
            f" idx_tags_project WHERE {_OF_PROJECTS}) AS tagged),"
            " (SELECT count(*) FROM tags WHERE tag = ?)",
            (tag,),
        ).fetchone()
        left_out = " OR ".join(
            part.replace("IS NULL", "IS NOT NULL").replace("NOT IN", "IN") for part in where
        )
        others = self._number([f"({left_out})", _ELSEWHERE], [*values, tag]) if where else 0
        return int(every - mine - others)

    def _count(self, where: list[str], values: list[str]) -> int:
        """The number of nodes.

        Few are superseded, and few have an excluded type. These are counted and subtracted, because
        SQLite counts all nodes without reading them.
        """
        others = [part for part in where if part != "nodes.superseded_by IS NULL"]
        total = self._number(others, values)
        if len(others) < len(where):
            total -= self._number([*others, "nodes.superseded_by IS NOT NULL"], values)
        return total

    def _number(self, where: list[str], values: list[str]) -> int:
        if len(where) == 1 and where[0].startswith("type NOT IN"):
            return self._number([], []) - self._number([where[0].replace("NOT IN", "IN")], values)
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        count = f"SELECT count(*) FROM nodes{condition}"
        number: int = self.connection.execute(count, values).fetchone()[0]
        return number

    def has(self, node_id: str) -> bool:
        row = self.connection.execute("SELECT 1 FROM nodes WHERE id = ?", (node_id,)).fetchone()
        return row is not None

    def nodes(self, node_ids: Iterable[NodeId]) -> Iterator[Node]:
        """The nodes in the order of their ids as passed, read in batches. Skips missing nodes."""
        for part in _parts(node_ids):
            places = ", ".join("?" * len(part))
            tags = self._tags(part)
            staged = self._staged_nodes(part) if self.scope == PROJECT else {}
            rows = self.connection.execute(
                "SELECT id, type, content, summary, token_estimate, superseded_by, created_at,"
                f" updated_at, metadata FROM nodes WHERE id IN ({places})",
                part,
            )
            by_id = {row[0]: (*row[:8], from_json(row[8])) for row in rows}
            stated = sources.of_nodes(
                [self.connection], {row[0]: (row[1], row[2], row[8]) for row in by_id.values()}
            )
            for node_id in part:
                if row := by_id.get(node_id):
                    node_tags = tuple(tags.get(node_id, ()))
                    where = self.scope, staged.get(node_id), stated[node_id]
                    yield Node._make((*row[:4], node_tags, *row[4:], *where))

    def _tags(self, part: Sequence[NodeId]) -> Mapping[NodeId, list[str]]:
        places = ", ".join("?" * len(part))
        by_node: dict[NodeId, list[str]] = {}
        for node_id, tag in self.connection.execute(
            f"SELECT node_id, tag FROM tags WHERE node_id IN ({places}) ORDER BY node_id, tag",
            part,
        ):
            by_node.setdefault(node_id, []).append(tag)
        return by_node

    def _staged_nodes(self, part: Sequence[NodeId]) -> Mapping[NodeId, str]:
        """The nodes that have staged records, with the session."""
        places = ", ".join("?" * len(part))
        return dict(
            self.connection.execute(
                "SELECT r.subject, max(b.session) FROM batches AS b"
                " JOIN records AS r ON r.batch = b.number WHERE b.session IS NOT NULL"
                f" AND r.subject IN ({places}) GROUP BY r.subject",
                part,
            )
        )

    def tags_of(self, node_id: NodeId) -> tuple[str, ...]:
        return tuple(self._tags([node_id]).get(node_id, ()))

    def of_type(self, node_type: str) -> list[NodeId]:
        """The nodes of a type, newest first, superseded nodes last."""
        rows = self.connection.execute(
            "SELECT id FROM nodes WHERE type = ? ORDER BY superseded_by IS NOT NULL, id DESC",
            (node_type,),
        )
        return [row[0] for row in rows]

    def tag_counts(self, prefix: str = "") -> list[TagCount]:
        """The number of nodes of every tag, sorted by tag."""
        rows = self.connection.execute(
            "SELECT tag, count(*) FROM tags WHERE tag >= ? AND tag < ? GROUP BY tag ORDER BY tag",
            (prefix, prefix + "\U0010ffff"),
        )
        return [TagCount(*row) for row in rows]

    def edges(
        self, node_id: NodeId, direction: Direction = "both", edge_type: str | None = None
    ) -> list[Edge]:
        """The edges of a node: outgoing first, then incoming, each by age."""
        edges: list[Edge] = []
        for side, column in (("out", "from_id"), ("in", "to_id")):
            if direction in (side, "both"):
                rows = self.connection.execute(
                    f"SELECT {_EDGE_COLUMNS} FROM edges WHERE {column} = ?1"
                    " AND (?2 IS NULL OR type = ?2)"
                    f" UNION ALL SELECT {_EDGE_COLUMNS} FROM outside WHERE {column} = ?1"
                    " AND (?2 IS NULL OR type = ?2) ORDER BY created_at, id",
                    (node_id, edge_type),
                )
                edges += [_edge(row) for row in rows]
        # An edge from a node to itself would be listed twice.
        return list({edge.id: edge for edge in edges}.values())

    def every_edge(self) -> Iterator[Edge]:
        for row in self.connection.execute(f"SELECT {_EDGE_COLUMNS} FROM edges"):
            yield _edge(row)

    def edge(self, from_id: NodeId, to_id: NodeId, edge_type: str) -> Edge | None:
        row = self.connection.execute(
            f"SELECT {_EDGE_COLUMNS} FROM edges WHERE from_id = ?1 AND to_id = ?2 AND type = ?3"
            f" UNION ALL SELECT {_EDGE_COLUMNS} FROM outside"
            " WHERE from_id = ?1 AND to_id = ?2 AND type = ?3",
            (from_id, to_id, edge_type),
        ).fetchone()
        return _edge(row) if row else None

    def is_outside(self, edge: Edge) -> bool:
        """Whether the edge points to a node of another store."""
        row = self.connection.execute(
            "SELECT 1 FROM outside WHERE from_id = ? AND to_id = ? AND type = ?",
            (edge.from_id, edge.to_id, edge.type),
        ).fetchone()
        return row is not None

    def source_of(self, path: str) -> Node | None:
        """The newest node with the content of a file."""
        row = self.connection.execute(
            "SELECT id FROM nodes WHERE type = 'source' AND superseded_by IS NULL"
            " AND json_extract(metadata, '$.path') = ?"
            " AND json_extract(metadata, '$.hash') IS NOT NULL ORDER BY id DESC LIMIT 1",
            (path,),
        ).fetchone()
        return self.node(row[0]) if row else None

    def views(self) -> list[View]:
        rows = self.connection.execute(
            "SELECT name, query, budget, created_at, updated_at FROM views ORDER BY name"
        )
        return [View(*row) for row in rows]

    def view(self, name: str) -> View:
        if view := self.find_view(name):
            return view
        raise ViewNotFound(f"There is no view {name!r}.")

    def find_view(self, name: str) -> View | None:
        row = self.connection.execute(
            "SELECT name, query, budget, created_at, updated_at FROM views WHERE name = ?", (name,)
        ).fetchone()
        return View(*row) if row else None

    def history(self, node_id: NodeId) -> list[Record]:
        """All records about a node, oldest first."""
        by_id = {record.id: record for record in records.records_about(self.connection, node_id)}
        by_id.update(
            (record.id, record) for record in records.records_of_edges_to(self.connection, node_id)
        )
        return sorted(by_id.values(), key=lambda record: record.order)


def _edge(row: tuple[str, str, str, str, str, str]) -> Edge:
    edge_id, from_id, to_id, edge_type, created_at, metadata = row
    return Edge(
        ids.Ulid(edge_id),
        NodeId(ids.Ulid(from_id)),
        NodeId(ids.Ulid(to_id)),
        edge_type,
        created_at,
        from_json(metadata),
    )


def _prefix(text: str) -> str:
    prefix = text.strip().upper()
    if len(prefix) < ids.SHORTEST_PREFIX or not prefix.isascii() or not prefix.isalnum():
        raise NodeNotFound(
            f"{text[:40]!r} is not the id of a node or its beginning.",
            hint=f"Give at least {ids.SHORTEST_PREFIX} characters, as `ctx list` shows them.",
        )
    return prefix


def _parts(node_ids: Iterable[NodeId]) -> Iterator[list[NodeId]]:
    part: list[NodeId] = []
    # The first batch is small, so that a stream has output at once.
    limit = 50
    for node_id in node_ids:
        part.append(node_id)
        if len(part) == limit:
            yield part
            part, limit = [], _BATCH
    if part:
        yield part


def _first_line(text: str) -> str:
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else f"{line[:59]}…"
