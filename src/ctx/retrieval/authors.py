"""Who wrote what a project's store says, where it was not the person who reads it.

What is staged here is the reader's own. What came with a commit is its author's, and so is what a
document said when a commit kept it. Whoever clones a repository is given the words of strangers,
and an agent is told whose they are.

Hooks load this module: it asks the tables itself, and nobody but them.
"""

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection

from ctx.ids import NodeId

UNKNOWN = "somebody"

_PART = 500
_LONGEST = 60
# What could end the place where a name stands, or begin something else there.
_NOT_IN_NAMES = "()[]<>`"


def strangers(
    connections: Sequence[Connection], node_ids: Sequence[NodeId], reader: str
) -> dict[NodeId, str]:
    """The names of those who wrote the nodes, where that was not the reader.

    The last of the stores is the reader's own, so that nothing in it is a stranger's.
    """
    found: dict[NodeId, str] = {}
    for connection in connections[:-1]:
        for start in range(0, len(node_ids), _PART):
            said = _authors(connection, node_ids[start : start + _PART])
            for node_id, authors in said.items():
                names = dict.fromkeys(name(each) for each in authors if each not in (None, reader))
                if names:
                    found[node_id] = " and ".join(names)
    return found


def name(author: str | None) -> str:
    """Of `Name <mail>` the name, so that it stays in its place whatever it says."""
    name, mark, _ = (author or "").rpartition("<")
    said = name if mark else author or ""
    kept = (c if c.isprintable() and c not in _NOT_IN_NAMES else " " for c in said)
    return " ".join("".join(kept).split())[:_LONGEST].rstrip() or UNKNOWN


def _authors(
    connection: Connection, node_ids: Sequence[NodeId]
) -> dict[NodeId, tuple[str | None, ...]]:
    """Who said last what a node says, and why it does; None stands for the reader."""
    places = ", ".join("?" * len(node_ids))
    rows = connection.execute(
        "SELECT r.subject, json_type(r.body, '$.content') IS NOT NULL,"
        " json_type(r.body, '$.metadata.rationale') IS NOT NULL, c.author,"
        " CASE WHEN b.session IS NULL AND b.commit_id IS NULL THEN r.author END"
        " FROM records AS r JOIN batches AS b ON b.number = r.batch"
        " LEFT JOIN commits AS c ON c.id = b.commit_id"
        f" WHERE r.kind = 'node.put' AND r.subject IN ({places}) ORDER BY r.stamp, r.id",
        node_ids,
    ).fetchall()
    kept = _keepers(connection, [row[4] for row in rows if row[4]])
    said: dict[NodeId, str | None] = {}
    reasoned: dict[NodeId, str | None] = {}
    for node_id, is_said, is_reasoned, author, document in rows:
        who = kept.get(document) if document else author
        if is_said:
            said[node_id] = who
        if is_reasoned:
            reasoned[node_id] = who
    return {
        node_id: (who, reasoned[node_id]) if node_id in reasoned else (who,)
        for node_id, who in said.items()
    }


def _keepers(connection: Connection, documents: Iterable[str]) -> Mapping[str, str]:
    """Who committed documents last. One that was never committed is the reader's."""
    paths = [each.removeprefix("narrative/") for each in documents]
    places = ", ".join("?" * len(paths))
    rows = connection.execute(
        "SELECT 'narrative/' || s.path, c.author FROM snapshots AS s"
        f" JOIN commits AS c ON c.id = s.commit_id WHERE s.path IN ({places})"
        " ORDER BY c.timestamp_unix, c.id",
        paths,
    )
    return dict(rows.fetchall())
