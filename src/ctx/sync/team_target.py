"""Batches as rows of a team's PostgreSQL server, which also has the graph that follows from them.

The server decides who may read and write what (`team_schema.py`). The connection is encrypted, but
batches are not: the server has to read them.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ctx.errors import CtxError, SyncFailure
from ctx.sync import batch_files, team_connection, team_graph, team_schema
from ctx.sync.batch_files import BatchFile, UnreadableFile
from ctx.sync.batch_target import TargetListing
from ctx.sync.sync_batch import DecodedBatch
from ctx.sync.team_connection import ServerWait
from ctx.sync.team_graph import Space

if TYPE_CHECKING:
    from psycopg import Connection

_EVERYBODY = Space("", "")


class TeamTarget:
    def __init__(self, url: str, wait: ServerWait = team_connection.DEFAULT_WAIT) -> None:
        self._url = url
        self._wait = wait
        self._connection: Connection[Any] | None = None
        self._user = ""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def projects(self) -> "TeamProjects":
        connection = self.connection()
        with team_connection.explain_errors():
            row = connection.execute(
                "SELECT ctx.projects_of(current_user, '{owner,writer}')"
            ).fetchone()
        return TeamProjects(self, frozenset(row[0]) if row else frozenset())

    def roles(self) -> list[tuple[Any, ...]]:
        """The projects of the user: the name, the role, and the number of members."""
        connection = self.connection()
        with team_connection.explain_errors():
            rows = connection.execute(
                "SELECT project, max(role) FILTER (WHERE member = current_user), count(*)"
                " FROM ctx.members GROUP BY project HAVING bool_or(member = current_user)"
                " ORDER BY project"
            )
            return rows.fetchall()

    def places(self, node_ids: Collection[str]) -> dict[str, str | None]:
        connection = self.connection()
        every = [*node_ids]
        with team_connection.explain_errors():
            row = connection.execute("SELECT ctx.existing(%s::text[])", (every,)).fetchone()
            found: dict[str, str | None] = dict.fromkeys(row[0] if row else ())
            rows = connection.execute(
                "SELECT id, project FROM ctx.subjects WHERE id IN (SELECT unnest(%s::text[]))",
                (every,),
            )
            found.update((row[0], row[1]) for row in rows)
        return found

    def admitted(self, batch: DecodedBatch) -> DecodedBatch:
        space = self._space(batch)
        connection = self.connection()
        with team_connection.explain_errors():
            # A lookup for each id. Otherwise every batch reads all records of the space: a server
            # that has no statistics about new rows expects few of them.
            rows = connection.execute(
                "SELECT r.id, r.subject, r.kind FROM unnest(%s::text[]) AS wanted (id),"
                " LATERAL (SELECT * FROM ctx.records WHERE id = wanted.id OFFSET 0) AS r"
                " WHERE r.project = %s AND r.owner = %s",
                ([each.record.id for each in batch.records], *space),
            )
            known = {tuple(row) for row in rows}
        kept = tuple(
            each
            for each in batch.records
            if (each.record.id, each.record.subject, each.record.kind) in known
        )
        return batch._replace(records=kept)

    def listing(self) -> TargetListing:
        connection = self.connection()
        with team_connection.explain_errors():
            names = [row[0] for row in connection.execute("SELECT name FROM ctx.batches")]
        batches = frozenset(name for name in names if batch_files.is_batch_name(name))
        return TargetListing(batches, tuple(sorted({*names} - batches)))

    def read(self, name: str) -> bytes:
        connection = self.connection()
        with team_connection.explain_errors():
            rows = connection.execute(
                "SELECT project, owner, data FROM ctx.batches WHERE name = %s", (name,)
            ).fetchall()
        # A member can store anything under the name of a batch elsewhere, and must not hide it.
        others: list[bytes] = []
        for *space, data in rows:
            batch = _decoded(name, bytes(data))
            if batch and self._space(batch) == Space(*space):
                return bytes(data)
            if batch is None:
                others.append(bytes(data))
        if others:
            return others[0]
        # Otherwise a reader could send records to everybody.
        reason = "it is stored for other people than it was written for"
        raise UnreadableFile(reason if rows else "it does not exist")

    def publish(self, added: Sequence[BatchFile], removed: Collection[str] = ()) -> None:
        connection = self.connection()
        decoded = [(file, _decoded(*file)) for file in added]
        spaces = {file.name: self._space(batch) for file, batch in decoded}
        with team_connection.explain_errors(), connection.transaction():
            team_connection.limit_waiting(connection)
            # Locks are always taken in the same order.
            for space in sorted(set(spaces.values()) - {_EVERYBODY}):
                team_graph.lock(connection, space)
            for file, batch in decoded:
                machine = batch.replica.machine if batch else ""
                team_graph.add_batch(connection, spaces[file.name], machine, file)
                if batch and batch.records:
                    team_graph.add_records(
                        connection, spaces[file.name], machine, batch.records, moving=not removed
                    )
            if removed:
                connection.execute("DELETE FROM ctx.batches WHERE name = ANY (%s)", ([*removed],))

    def purge(self) -> None:
        """There are no local copies."""

    def _space(self, batch: DecodedBatch | None) -> Space:
        """Who may read a batch. What cannot be decoded is personal."""
        if batch and not batch.contents.records:
            return _EVERYBODY
        if batch and batch.batch.project:
            return Space(batch.batch.project, "")
        return Space("", self._user)

    def connection(self) -> "Connection[Any]":
        """The connection; a new one if there is none, or if it was cut."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = team_connection.connect(self._url, self._wait)
        try:
            with team_connection.explain_errors():
                team_schema.prepare(connection)
                row = connection.execute("SELECT current_user::text").fetchone()
            if row is None:
                raise SyncFailure("The server does not answer.")
        except BaseException:
            connection.close()
            raise
        self._connection, self._user = connection, row[0]
        return connection


class TeamProjects:
    def __init__(self, target: TeamTarget, writable: frozenset[str]) -> None:
        self.writable = writable
        self.places = target.places
        self.admitted = target.admitted


def _decoded(name: str, data: bytes) -> DecodedBatch | None:
    with suppress(CtxError):
        return batch_files.unseal(name, data, {})
    return None
