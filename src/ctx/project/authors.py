"""Finds the authors of nodes in a project's store that were not written here.

Staged records are the reader's own, and so are commits made here. Other commits belong to the
author they name; anybody can write any name. The text of a document belongs to the commit that
contains it, or to an unknown author if none does. After a clone, an agent sees text of strangers,
so it is told who wrote it.

Hooks load this module, so it reads the tables directly and imports nothing else.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from ctx.ids import NodeId

UNKNOWN = "somebody"

_PART = 500
_LONGEST = 60
# Characters that could end the place where a name is shown, or start markup there.
_NOT_IN_NAMES = "()[]<>`"


def strangers(projects: Sequence[Connection], node_ids: Sequence[NodeId]) -> dict[NodeId, str]:
    """The names of the authors of nodes that were not written here."""
    by_node: dict[NodeId, str] = {}
    for connection in projects:
        for start in range(0, len(node_ids), _PART):
            batch = _authors(connection, node_ids[start : start + _PART])
            for node_id, authors in batch.items():
                names = dict.fromkeys(name(author) for author in authors if author is not None)
                if names:
                    by_node[node_id] = " and ".join(names)
    return by_node


def name(author: str | None) -> str:
    """The name in `Name <mail>`, without characters that could break out of its place."""
    name, mark, _ = (author or "").rpartition("<")
    text = name if mark else author or ""
    kept = (c if c.isprintable() and c not in _NOT_IN_NAMES else " " for c in text)
    return " ".join("".join(kept).split())[:_LONGEST].rstrip() or UNKNOWN


def _authors(
    connection: Connection, node_ids: Sequence[NodeId]
) -> dict[NodeId, tuple[str | None, ...]]:
    """The last authors of each node's content and rationale; None is the reader."""
    places = ", ".join("?" * len(node_ids))
    rows = connection.execute(
        "SELECT r.subject, json_type(r.body, '$.content') IS NOT NULL,"
        " json_type(r.body, '$.metadata.rationale') IS NOT NULL,"
        " CASE WHEN b.session IS NULL AND NOT coalesce(c.mine, 0) THEN coalesce(c.author, '') END,"
        " CASE WHEN b.session IS NULL AND b.commit_id IS NULL THEN r.author END,"
        " b.session IS NOT NULL, json_extract(r.body, '$.over'), json_extract(r.body, '$.digest')"
        " FROM records AS r JOIN batches AS b ON b.number = r.batch"
        " LEFT JOIN commits AS c ON c.id = b.commit_id"
        f" WHERE r.kind = 'node.put' AND r.subject IN ({places}) ORDER BY r.stamp, r.id",
        node_ids,
    ).fetchall()
    kept = _keepers(connection, [row[4] for row in rows if row[4]])
    by_node: dict[NodeId, str | None] = {}
    reasoned: dict[NodeId, str | None] = {}
    instead_of: dict[NodeId, str] = {}
    staged: set[NodeId] = set()
    for node_id, is_said, is_reasoned, author, document, is_staged, over, digest in rows:
        who = author
        if document:
            if digest and digest == instead_of.get(node_id):
                # An edit overrides this version of the document.
                continue
            who = kept.get(document, None if node_id in staged else UNKNOWN)
        if is_said:
            by_node[node_id] = who
            instead_of[node_id] = over
            if is_staged:
                staged.add(node_id)
        if is_reasoned:
            reasoned[node_id] = who
    return {
        node_id: (who, reasoned[node_id]) if node_id in reasoned else (who,)
        for node_id, who in by_node.items()
    }


def _keepers(connection: Connection, documents: Iterable[str]) -> dict[str, str | None]:
    """Who first committed the documents as they are; None is the reader."""
    paths = [document.removeprefix("narrative/") for document in documents]
    places = ", ".join("?" * len(paths))
    rows = connection.execute(
        "SELECT 'narrative/' || d.path, CASE WHEN NOT c.mine THEN c.author END"
        " FROM documents AS d JOIN snapshots AS s ON s.path = d.path AND s.blob_id = d.blob_id"
        f" JOIN commits AS c ON c.id = s.commit_id WHERE d.path IN ({places})"
        " ORDER BY c.timestamp_unix DESC, c.mine DESC, c.id",
        paths,
    )
    return dict(rows.fetchall())
