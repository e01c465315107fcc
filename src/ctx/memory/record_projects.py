"""The projects that nodes belong to: those of their `project:` tags."""

from sqlite3 import Connection

from ctx.memory import records, replay
from ctx.memory.records import Record

PREFIX = "project:"
NODE_KINDS = ("node.", "tag.", "edge.")


def is_about_node(record: Record) -> bool:
    return record.kind.startswith(NODE_KINDS)


def changes_project(record: Record) -> bool:
    return record.kind.startswith("tag.") and record.key.startswith(PREFIX)


def projects_of(connection: Connection, node_id: str) -> frozenset[str]:
    """The projects of a node. Those of a deleted node count as before."""
    tags = replay.tags(records.records_about(connection, node_id, "tag."))
    return frozenset(tag.removeprefix(PREFIX) for tag in tags if tag.startswith(PREFIX))


def records_about_node(connection: Connection, node_id: str) -> list[str]:
    """The ids of all records about a node."""
    about = records.records_about(connection, node_id)
    return [record.id for record in about if is_about_node(record)]
