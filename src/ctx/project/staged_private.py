"""Finds staged records that must not be committed.

The records about a node that was moved to the user store are private. Several sessions may have
staged them, so all chains are searched, whichever session is committed.
"""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory import inverse_changes, records

# A node is moved to another store by a move, or by the undo of a move.
_REMOVING_ACTIONS = (records.MOVE, inverse_changes.ACTION)


def records_to_withhold(connection: Connection, session: str) -> set[str]:
    """The staged records to leave out when a session is committed.

    If a node was never committed and is deleted, all records about it and its edges are left out.
    If a committed node was moved to the user store here, only its deletion is committed, and none
    of its last edits.
    """
    withheld: set[str] = set()
    for node in _missing_nodes(connection):
        if node.is_known and not (node.last and node.last.takes_away):
            continue
        # If another session has created it, the deletion is needed until that is committed.
        is_elsewhere = any(word.is_staged_beside(session) for word in node.words)
        tombstone = node.last if node.is_known or is_elsewhere else None
        withheld.update(
            word.id for word in node.words if not word.is_committed and word != tombstone
        )
    _withhold_empty_undos(connection, session, withheld)
    return withheld


def unpublished_deletions(connection: Connection) -> dict[str, set[str]]:
    """The deleted nodes that were never committed, and the sessions that have staged them.

    Nothing of them is left after the sessions are committed. Nodes that were moved to the user
    store are not included, because they exist there.
    """
    found: dict[str, set[str]] = {}
    for node in _missing_nodes(connection):
        sessions = {word.session for word in node.puts if word.session is not None}
        if sessions and node.last and not node.is_known and not node.is_moved:
            found[node.id] = sessions
    return found


class _StagedRecord(NamedTuple):
    """A record about a node, or about an edge to it."""

    id: str
    kind: str
    action: str
    session: str | None
    """The session that staged it."""
    is_committed: bool
    is_own: bool
    """Whether it is staged, or in a commit that was made here."""

    @property
    def takes_away(self) -> bool:
        return self.kind == "node.delete" and self.action in _REMOVING_ACTIONS and self.is_own

    def is_staged_beside(self, session: str) -> bool:
        return self.kind == "node.put" and self.session not in (None, session)


class _MissingNode(NamedTuple):
    """A node that does not exist, and the records about it and its edges, in order."""

    id: str
    words: list[_StagedRecord]

    @property
    def puts(self) -> list[_StagedRecord]:
        return [word for word in self.words if word.kind == "node.put"]

    @property
    def is_known(self) -> bool:
        """Whether it was committed."""
        return any(put.is_committed for put in self.puts)

    @property
    def last(self) -> _StagedRecord | None:
        """The last record that deletes or restores it."""
        lives = [word for word in self.words if word.kind in ("node.delete", "node.restore")]
        return lives[-1] if lives else None

    @property
    def is_moved(self) -> bool:
        """Whether a move, or the undo of one, has deleted it here."""
        action = self.last.action if self.last else ""
        if action == inverse_changes.ACTION:
            return any(put.action == records.MOVE for put in self.puts)
        return action == records.MOVE


def _missing_nodes(connection: Connection) -> list[_MissingNode]:
    """The nodes that staged records are about and that do not exist.

    Nodes with a document are excluded: without their records, the document would become another
    node. The content of a document is public anyway.
    """
    rows = connection.execute(
        "WITH spoken AS (SELECT r.subject, r.target, r.kind FROM batches AS b"
        " JOIN records AS r ON r.batch = b.number WHERE b.session IS NOT NULL)"
        " SELECT node FROM (SELECT subject AS node FROM spoken WHERE kind GLOB 'node.*'"
        " OR kind GLOB 'tag.*' OR kind GLOB 'edge.*'"
        " UNION SELECT target FROM spoken WHERE kind GLOB 'edge.*')"
        " WHERE node NOT IN (SELECT id FROM nodes)"
        " AND node NOT IN (SELECT node_id FROM documents WHERE node_id IS NOT NULL) ORDER BY node"
    )
    return [_MissingNode(row[0], list(_words(connection, row[0]))) for row in rows.fetchall()]


def _words(connection: Connection, node_id: str) -> Iterator[_StagedRecord]:
    """The records about a node in order, without those of documents, which are public."""
    rows = connection.execute(
        "SELECT r.id, r.kind, r.action, b.session, b.commit_id IS NOT NULL OR EXISTS ("
        " SELECT 1 FROM repeated AS m JOIN batches AS o ON o.number = m.batch"
        " WHERE m.record = r.id AND o.commit_id IS NOT NULL), b.session IS NOT NULL OR c.mine"
        " FROM records AS r JOIN batches AS b ON b.number = r.batch"
        " LEFT JOIN commits AS c ON c.id = b.commit_id"
        " WHERE (r.subject = ?1 OR r.target = ?1 AND r.kind GLOB 'edge.*') AND r.stamp < ?2"
        " ORDER BY r.stamp, r.id",
        (node_id, records.BEYOND),
    )
    for id, kind, action, session, is_committed, is_own in rows:
        yield _StagedRecord(id, kind, action, session, bool(is_committed), bool(is_own))


def _withhold_empty_undos(connection: Connection, session: str, withheld: set[str]) -> None:
    """Also leave out the undo of a change if all records of the change are left out."""
    rows = connection.execute(
        "SELECT r.id, r.subject FROM batches AS b JOIN records AS r ON r.batch = b.number"
        " WHERE b.session = ? AND r.kind = ? ORDER BY r.stamp, r.id",
        (session, inverse_changes.ACTION),
    ).fetchall()
    for record, change in rows:
        other_rows = connection.execute(
            "SELECT r.id, b.session FROM records AS r JOIN batches AS b ON b.number = r.batch"
            " WHERE r.change = ?",
            (change,),
        )
        if all(id in withheld and holder == session for id, holder in other_rows):
            withheld.add(record)
