"""What a store has about the items of a batch, read in a few statements.

An import of many items would otherwise look up each node, tag and edge by itself, and search each
text for secrets.
"""

from collections.abc import Iterable
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory.written_records import Key, parts
from ctx.redaction import texts_without_secrets

_SHORT_TEXT = 4096
"""Of longer texts, each is searched for secrets by itself."""


class BatchLookup(NamedTuple):
    """Answers for a batch. What is not in these sets has to be looked up."""

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
