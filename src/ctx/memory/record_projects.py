"""The projects that records are about: those of the `project:` tags of their nodes."""

from collections.abc import Iterable, Iterator
from functools import cache
from sqlite3 import Connection

from ctx.memory import records, replay
from ctx.memory.written_records import parts

PREFIX = "project:"
_NODES = ("node.", "tag.", "edge.")


def projects_of(
    connection: Connection, record_ids: Iterable[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """The projects of some records. Those of a deleted node count as before; a record about
    something else than a node has none."""

    @cache
    def of_node(node_id: str) -> frozenset[str]:
        tags = replay.tags(records.records_about(connection, node_id, "tag."))
        return frozenset(tag.removeprefix(PREFIX) for tag in tags if tag.startswith(PREFIX))

    for part in parts(dict.fromkeys(record_ids)):
        for record in records.records_with_ids(connection, part):
            is_about_node = record.kind.startswith(_NODES)
            yield record.id, of_node(record.subject) if is_about_node else frozenset()
