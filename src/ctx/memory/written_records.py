"""Records that were just written, as far as they are all that is known about something.

A large change mostly makes new nodes. What their records say need not be read back one statement at
a time: a few statements for the whole batch find out which subjects and keys have older records.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import NamedTuple, TypeVar

from ctx.memory import records
from ctx.memory.records import Record
from ctx.redaction import texts_without_secrets

_SHORT_TEXT = 4096
"""Of longer texts, each is searched for secrets by itself."""
_Value = TypeVar("_Value")
_PART = 250

Key = tuple[str, str]
"""A subject and a key: one tag, one edge, or a node itself, whose key is empty."""


class BatchLookup(NamedTuple):
    """What a store has about the items of a batch. What is not in these sets has to be looked up.

    An import of many items would otherwise look up each node, tag and edge by itself, and search
    each text for secrets.
    """

    new_nodes: set[str]
    """Ids that no record is about."""
    nodes: set[str]
    """Nodes that exist."""
    new_edges: set[Key]
    """Edges that no record is about, by source node and key."""
    free_edge_ids: set[str]
    """Ids that no edge has."""
    clean_texts: set[str]
    """Texts without secrets."""


class NewSubjects(NamedTuple):
    """What had no record before a change."""

    subjects: set[str]
    keys: set[Key]


class WrittenRecords:
    """The records about a subject or a key, from memory if the database has no others.

    `written` are records of the database; none of them may have been removed from it. `new` is what
    is known to have no other records.
    """

    def __init__(
        self,
        connection: Connection,
        written: Sequence[Record] = (),
        new: NewSubjects | None = None,
    ) -> None:
        self._connection = connection
        self._by_key: dict[Key, list[Record]] = {}
        self._by_subject: dict[str, list[Record]] = {}
        for record in written:
            self._by_key.setdefault((record.subject, record.key), []).append(record)
            self._by_subject.setdefault(record.subject, []).append(record)
        subjects, keys = new or NewSubjects(set(), set())
        self._complete_subjects = {name for name in self._by_subject if name in subjects}
        self._complete = {key for key in self._by_key if key[0] in subjects or key in keys}
        rest = [key for key in self._by_key if key not in self._complete]
        # A single key is read as quickly as it is counted.
        if len(rest) > 1:
            self._complete.update(self._complete_keys(rest))

    def about_key(self, subject: str, kinds: str, key: str) -> list[Record]:
        """The records about one tag or edge of a node; with an empty key, about the node."""
        if (subject, key) in self._complete:
            return [each for each in self._by_key[subject, key] if each.kind.startswith(kinds)]
        return records.about_key(self._connection, subject, kinds, key)

    def about(self, subject: str, kinds: str) -> list[Record]:
        if subject in self._complete_subjects:
            return [each for each in self._by_subject[subject] if each.kind.startswith(kinds)]
        return records.records_about(self._connection, subject, kinds)

    def is_new(self, subject: str, key: str) -> bool:
        """Whether no older record is about it."""
        return (subject, key) in self._complete

    def complete(self, subjects: Iterable[str]) -> None:
        """Find out which of these subjects have no older records."""
        for part in parts(name for name in subjects if name not in self._complete_subjects):
            rows = self._connection.execute(
                "SELECT subject, count(*) FROM records"
                f" WHERE subject IN ({', '.join('?' * len(part))}) GROUP BY subject",
                part,
            )
            self._complete_subjects.update(
                subject
                for subject, count in rows
                if count == len(self._by_subject.get(subject, ()))
            )

    def _complete_keys(self, keys: Iterable[Key]) -> Iterator[Key]:
        for part in parts(keys):
            rows = self._connection.execute(
                f"WITH written (subject, key) AS (VALUES {', '.join(['(?, ?)'] * len(part))})"
                " SELECT subject, key, (SELECT count(*) FROM records WHERE"
                " records.subject = written.subject AND records.key = written.key) FROM written",
                [word for key in part for word in key],
            )
            for subject, key, count in rows:
                if count == len(self._by_key[subject, key]):
                    yield subject, key


def parts(values: Iterable[_Value]) -> Iterator[list[_Value]]:
    """Lists that are short enough for the parameters of one statement."""
    rest = iter(values)
    while part := list(islice(rest, _PART)):
        yield part


def nothing_looked_up() -> BatchLookup:
    return BatchLookup(set(), set(), set(), set(), set())


def look_up(
    connection: Connection,
    new_ids: Iterable[str],
    ends: Iterable[str],
    edges: Iterable[Key],
    edge_ids: Iterable[str],
    texts: Iterable[str],
) -> BatchLookup:
    short = [text for text in texts if len(text) < _SHORT_TEXT]
    clean = texts_without_secrets(short) if short else set()
    found = BatchLookup(set(new_ids), set(), set(edges), set(edge_ids), clean)
    for part in parts(sorted(found.new_nodes)):
        sql = f"SELECT DISTINCT subject FROM records WHERE subject IN ({_places(part)})"
        found.new_nodes.difference_update(row[0] for row in connection.execute(sql, part))
    for part in parts(sorted(set(ends))):
        sql = f"SELECT id FROM nodes WHERE id IN ({_places(part)})"
        found.nodes.update(row[0] for row in connection.execute(sql, part))
    for keys in parts(sorted(found.new_edges)):
        sql = (
            f"WITH wanted (subject, key) AS (VALUES {', '.join(['(?, ?)'] * len(keys))})"
            " SELECT subject, key FROM wanted WHERE EXISTS (SELECT 1 FROM records WHERE"
            " records.subject = wanted.subject AND records.key = wanted.key)"
        )
        rows = connection.execute(sql, [word for key in keys for word in key])
        found.new_edges.difference_update((row[0], row[1]) for row in rows)
    for part in parts(sorted(found.free_edge_ids)):
        sql = f"SELECT id FROM edges WHERE id IN ({_places(part)})"
        found.free_edge_ids.difference_update(row[0] for row in connection.execute(sql, part))
    return found


def _places(values: list[str]) -> str:
    return ", ".join("?" * len(values))
