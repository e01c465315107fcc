"""What is staged in a project and must not become part of a commit, as the index has it.

What was said about a node before it was taken to somebody's own store is theirs. It may be spread
over the chains of several sessions, so that it is looked for in all of them, whichever of them is
committed.
"""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory import inverse_changes, records

# What takes a node to another store says so, or takes back what had brought it here.
_AWAY = (records.MOVE, inverse_changes.ACTION)


def from_others(connection: Connection, session: str) -> set[str]:
    """The records of what is staged that nobody else is to see when a session is committed.

    A node of which no commit has a word, and that is gone again, was never there for others:
    nothing is said about it, nor about edges to it. Of one that was committed before, and that was
    taken to somebody's own store here, others learn that it is gone, and none of its last words.
    """
    found: set[str] = set()
    for node_id in _gone(connection):
        words = list(_words(connection, node_id))
        lives = [word for word in words if word.kind in ("node.delete", "node.restore")]
        last = lives[-1] if lives else None
        is_known = any(word.is_committed for word in words if word.kind == "node.put")
        if is_known and not (last and last.takes_away):
            continue
        # Where another session has made it, that it is gone must be said until that is committed.
        is_elsewhere = any(word.is_staged_beside(session) for word in words)
        tombstone = last if is_known or is_elsewhere else None
        found.update(word.id for word in words if not word.is_committed and word != tombstone)
    _add_what_takes_back_nothing(connection, session, found)
    return found


class _Word(NamedTuple):
    """A record about a node, or about an edge to it."""

    id: str
    kind: str
    action: str
    session: str | None
    """Where it is staged."""
    is_committed: bool
    is_own: bool
    """Whether it is staged, or in a commit that was made here."""

    @property
    def takes_away(self) -> bool:
        return self.kind == "node.delete" and self.action in _AWAY and self.is_own

    def is_staged_beside(self, session: str) -> bool:
        return self.kind == "node.put" and self.session not in (None, session)


def _gone(connection: Connection) -> list[str]:
    """The nodes that something staged speaks of, and that are not there.

    A document that is there belongs to its node, also to one that was deleted: without the records
    it would be a node of its own. What it says is in the folder for all to see.
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
    return [row[0] for row in rows]


def _words(connection: Connection, node_id: str) -> Iterator[_Word]:
    """What was recorded about a node, in order. What documents say is nobody's secret."""
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
        yield _Word(id, kind, action, session, bool(is_committed), bool(is_own))


def _add_what_takes_back_nothing(connection: Connection, session: str, withheld: set[str]) -> None:
    """Also that a change was taken back is not said, where nothing is left of the change."""
    rows = connection.execute(
        "SELECT r.id, r.subject FROM batches AS b JOIN records AS r ON r.batch = b.number"
        " WHERE b.session = ? AND r.kind = ? ORDER BY r.stamp, r.id",
        (session, inverse_changes.ACTION),
    ).fetchall()
    for record, change in rows:
        said = connection.execute(
            "SELECT r.id, b.session FROM records AS r JOIN batches AS b ON b.number = r.batch"
            " WHERE r.change = ?",
            (change,),
        )
        if all(each in withheld and holder == session for each, holder in said):
            withheld.add(record)
