"""Writes the records of a change to a team's server, as `ctx sync` does for a replica.

Replicas receive the records as batches. The rows of nodes, tags and edges are made in the same
transaction. A batch names no replica that anybody has to wait for: this one has left when the
process ends.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from ctx import clock
from ctx.errors import SyncFailure
from ctx.ids import derived_ulid, short
from ctx.memory import replay
from ctx.memory.record_versions import ORIGINAL, RecordVersion, VersionedRecord
from ctx.memory.records import Record
from ctx.memory.replicas import LOCAL_KINDS, Replica
from ctx.sync import batch_files, sync_batch, team_connection, team_graph
from ctx.sync.team_graph import Space

if TYPE_CHECKING:
    from psycopg import Connection

_MOST_ATTEMPTS = 5


class _Roles(NamedTuple):
    """The projects that a user may read, and those that they may write to."""

    readable: frozenset[str]
    writable: frozenset[str]

    def require_writable(self, projects: Iterable[str]) -> None:
        for project in sorted(set(projects) - self.writable):
            raise SyncFailure(
                f"You may read the project {project} on the server, and not write to it.",
                hint="Ask an owner of the project to make you a writer.",
            )


def write(server: "Connection[Any]", user: str, written: Sequence[Record]) -> None:
    """Write records inside the open transaction of a connection."""
    if not written:
        return
    with team_connection.explain_errors():
        nodes = list(dict.fromkeys(r.subject for r in written if replay.is_about_node(r)))
        for _ in range(_MOST_ATTEMPTS):
            places = _places(server, nodes)
            _refuse_hidden(server, [node_id for node_id in nodes if node_id not in places])
            sent = _by_space(server, user, written, places)
            for space, _records in sent:
                team_graph.lock(server, space)
            # From here on nobody moves these nodes to another project.
            if _places(server, places, locked=True) == places:
                for space, records in sent:
                    _write_to(server, space, records)
                return
    raise SyncFailure(
        "Other machines move these nodes to another project at the same time.",
        hint="Nothing was changed. Run the command again.",
    )


def _write_to(server: "Connection[Any]", space: Space, sent: Sequence[VersionedRecord]) -> None:
    machine = os.uname().nodename
    # The current task belongs to a folder of one machine, so replicas do not receive it.
    exchanged = [each for each in sent if each.record.kind not in LOCAL_KINDS]
    if exchanged:
        replica_id = derived_ulid(0, f"direct {space.project} {space.owner} {machine}")
        replica = Replica(replica_id, machine, clock.iso(clock.now_ms()), has_left=True)
        batch = sync_batch.new_batch(replica, exchanged, project=space.project)
        team_graph.add_batch(server, space, machine, batch_files.seal(batch, {}))
    team_graph.add_records(server, space, machine, sent, moving=True)


def _by_space(
    server: "Connection[Any]",
    user: str,
    written: Sequence[Record],
    places: Mapping[str, Space],
) -> list[tuple[Space, list[VersionedRecord]]]:
    """Records by the members who may read them, in the order in which spaces are locked.

    A node belongs to the first of its projects that the user may write to. Without any it is
    personal. It stays where it is until a change of its project moves it: then all records about it
    are sent again, for those who did not have it.
    """
    original = RecordVersion(ORIGINAL)
    going: dict[Space, list[VersionedRecord]] = {}
    about_nodes: dict[str, list[Record]] = {}
    for record in written:
        if replay.is_about_node(record):
            about_nodes.setdefault(record.subject, []).append(record)
        else:
            personal = going.setdefault(Space("", user), [])
            personal.append(VersionedRecord(record, original))
    roles = _roles(server)
    stored = _records_about(
        server,
        [
            node_id
            for node_id, records in about_nodes.items()
            if node_id in places and any(map(replay.changes_project, records))
        ],
    )
    for node_id, records in about_nodes.items():
        place = places.get(node_id)
        if place is not None and place.project:
            roles.require_writable([place.project])
        before = stored.get(node_id, [])
        if place is None or node_id in stored:
            wanted = _wanted_space(roles, user, [*(each.record for each in before), *records])
        else:
            wanted = place
        target = going.setdefault(wanted, [])
        if wanted != place:
            target += before
        target += [VersionedRecord(record, original) for record in records]
    return sorted(going.items())


def _wanted_space(roles: _Roles, user: str, about: Iterable[Record]) -> Space:
    tags = replay.tags(record for record in about if record.kind.startswith("tag."))
    projects = {tag.removeprefix(replay.PREFIX) for tag in tags if tag.startswith(replay.PREFIX)}
    if allowed := sorted(roles.writable & projects):
        return Space(allowed[0], "")
    roles.require_writable(roles.readable & projects)
    return Space("", user)


def _roles(server: "Connection[Any]") -> _Roles:
    row = server.execute(
        "SELECT ctx.projects_of(current_user, '{owner,writer,reader}'),"
        " ctx.projects_of(current_user, '{owner,writer}')"
    ).fetchone()
    return _Roles(frozenset(row[0]), frozenset(row[1])) if row else _Roles(frozenset(), frozenset())


def _places(
    server: "Connection[Any]", node_ids: Iterable[str], *, locked: bool = False
) -> dict[str, Space]:
    """Where the server has nodes already; with `locked`, they stay there until the transaction
    ends."""
    sql: LiteralString = "SELECT id, project, owner FROM ctx.subjects WHERE id = ANY (%s)"
    rows = server.execute(f"{sql} ORDER BY id FOR SHARE" if locked else sql, ([*node_ids],))
    return {row[0]: Space(row[1], row[2]) for row in rows}


def _refuse_hidden(server: "Connection[Any]", node_ids: Sequence[str]) -> None:
    """Refuse to write about nodes of others. An import may contain them."""
    row = server.execute("SELECT ctx.existing(%s::text[])", ([*node_ids],)).fetchone()
    if row and row[0]:
        raise SyncFailure(
            f"The server has the node {short(row[0][0])} where you may not see it.",
            hint="It belongs to another member, or to a project of which you are not a member.",
        )


def _records_about(
    server: "Connection[Any]", node_ids: Sequence[str]
) -> dict[str, list[VersionedRecord]]:
    """The records about some nodes, in the order of their stamps."""
    rows = server.execute(
        "SELECT id, stamp, change, action, kind, subject, key, target, body, session, author,"
        " version, replaces FROM ctx.records WHERE node = ANY (%s) ORDER BY stamp, id",
        ([*node_ids],),
    )
    found: dict[str, list[VersionedRecord]] = {}
    for *values, version, replaces in rows:
        each = VersionedRecord(Record(*values), RecordVersion(version, tuple(replaces.split())))
        found.setdefault(each.record.subject, []).append(each)
    return found
