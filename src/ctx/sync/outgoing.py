"""Decides to which project of a shared target a record is sent."""

from collections.abc import Sequence
from sqlite3 import Connection

from ctx.memory import records, replay
from ctx.memory.records import Record
from ctx.sync.batch_target import SharedProjects


def by_project(
    connection: Connection, unsent: Sequence[str], shared: SharedProjects
) -> list[tuple[str, list[str]]]:
    """Records by the project that they are sent to; empty for what only the user may read.

    A node belongs to the first of its projects that the user may write to. It stays where the
    target has it until this machine changes its project: then all records about it are sent again.
    """
    by_node: dict[str, list[Record]] = {}
    going: dict[str, dict[str, None]] = {}
    for record in records.records_with_ids(connection, unsent):
        if replay.is_about_node(record):
            by_node.setdefault(record.subject, []).append(record)
        else:
            going.setdefault("", {})[record.id] = None
    places = shared.places(by_node)
    for node_id, about in by_node.items():
        ids: list[str] = [record.id for record in about]
        projects = replay.projects_of(connection, node_id)
        allowed = sorted(shared.writable & projects)
        wanted = allowed[0] if allowed else None if projects else ""
        if node_id in places:
            place = places[node_id]
            is_moving = any(map(replay.changes_project, about))
            if wanted is None or place is None or place not in {"", *shared.writable}:
                wanted = None
            elif wanted != place and is_moving:
                ids = replay.records_about_node(connection, node_id)
            else:
                wanted = place
        if wanted is not None:
            going.setdefault(wanted, {}).update(dict.fromkeys(ids))
    return sorted((project, list(ids)) for project, ids in going.items())
