"""A project's memory in one working tree: committed, staged and from documents.

Reading brings the index up to date if needed and then queries it. Writing holds the project's lock:
a change becomes records, the records a batch, and the batch a step of the session. The step is
durable before the index has it; after a crash the index catches up.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from sqlite3 import Connection
from typing import TYPE_CHECKING

from ctx import clock
from ctx.errors import CtxError, DiskFailure, IndexCorrupt, StagingConflict
from ctx.ids import ObjectId, SessionId, Ulid
from ctx.layout import Project
from ctx.memory.graph import PROJECT, Graph
from ctx.narrative import narrative_scan
from ctx.narrative.narrative_scan import GivenNarrative
from ctx.objects import untracked_commits
from ctx.project import project_index_state
from ctx.project.project_index_state import Fingerprint
from ctx.sqlite.connection import explain_errors, integrity_problems, transaction

if TYPE_CHECKING:
    from ctx.config.resolve import Config
    from ctx.memory.changes import Change, ChangeAuthor
    from ctx.project import compaction
    from ctx.project.given import GivenObjects
    from ctx.project.project_index import Index
    from ctx.project.project_repository import ProjectRepository

Progress = Callable[[str], AbstractContextManager[clock.Tick]]
"""Shows what takes long."""

_ATTEMPTS = 20


class ProjectMemory:
    """Reads and changes a project's nodes."""

    def __init__(
        self,
        project: Project,
        settings: "Callable[[], Config]",
        given: "GivenObjects",
        *,
        keeps_index: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self.project = project
        self.given = given
        """Which objects and documents agents are given."""
        self._keeps_index = keeps_index
        self._progress = progress or (lambda _: nullcontext(clock.no_tick))
        self._settings = settings
        self._connection: Connection | None = None
        self._index: Index | None = None
        self.stepped: set[SessionId] = set()
        """The sessions that took a step through this value."""

    @cached_property
    def config(self) -> "Config":
        return self._settings()

    @cached_property
    def repository(self) -> "ProjectRepository":
        from ctx.objects.read_limits import WorkLimit
        from ctx.project.project_repository import ProjectRepository

        return ProjectRepository(
            self.project,
            self.given,
            compression_level=self.config.integer("storage.compression_level"),
            limit=None if self._keeps_index else WorkLimit(),
        )

    @property
    def graph(self) -> Graph:
        """The current graph. Reading it does not change the working tree."""
        if self._connection is None and self._keeps_index:
            if untracked_commits.are_places_stale(self.project):
                from ctx.objects import untracked_survey

                untracked_survey.refresh(self.repository)
            fingerprints = self._documents()
            now = project_index_state.state(self.project)
            known = project_index_state.read_current(self.project, now, fingerprints)
            if known and self.given.has_more(project_index_state.withheld_by(known)):
                known.close()
                known = None
            self._connection = known
        if self._connection is None:
            self._connection = self._up_to_date().connection
        return Graph(self._connection, PROJECT)

    @property
    def damaged(self) -> list[str]:
        """The objects that are unreadable and missing from the graph, if it was opened."""
        try:
            return project_index_state.damaged_objects(self._connection) if self._connection else []
        except sqlite3.DatabaseError:
            # The index itself is damaged, and is rebuilt.
            return []

    @property
    def narrative(self) -> GivenNarrative:
        return GivenNarrative(self.project.narrative, self.given.documents)

    def _documents(self) -> dict[str, Fingerprint]:
        """The existing documents and their fingerprints."""
        files = narrative_scan.documents(self.project.narrative)
        return {file.path: Fingerprint(file.mtime_ns, file.size, file.inode) for file in files}

    def _up_to_date(self) -> "Index":
        """The index, brought up to date."""
        # Imported here, because reading an index that is up to date does not need it.
        from ctx.project import project_index

        for _ in range(_ATTEMPTS):
            try:
                with self._progress("Reading the project's memory") as tick:
                    opened = self._synced_index(tick)
                if opened is not None:
                    return opened
                self.close()
            except IndexCorrupt:
                self.discard()
            except DiskFailure:
                self.close()
                # Nothing can be written here, so the index is built in memory.
                self._use(
                    project_index.in_memory(
                        self.repository, project_index_state.state(self.project)
                    )
                )
        raise StagingConflict(
            "The project's heads and refs keep changing.", hint="Run the command again."
        )

    def _synced_index(self, tick: clock.Tick) -> "Index | None":
        """The updated index; None if the heads have moved, so that another index is needed."""
        from ctx.project import project_index

        is_fresh = self._index is None
        if is_fresh:
            self.close()
            now = project_index_state.state(self.project)
            with explain_errors(project_index_state.path_for(self.project, now), IndexCorrupt):
                make = project_index.open_index if self._keeps_index else project_index.in_memory
                self._use(make(self.repository, now, tick))
        opened = self._index
        assert opened is not None
        with explain_errors(opened.path, IndexCorrupt), transaction(opened.connection):
            # The index is locked now; refs and heads may have moved before that.
            now = project_index_state.state(self.project)
            is_same = project_index_state.path_for(self.project, now) == opened.path
            if not is_same and opened.path != project_index.MEMORY:
                return None
            before = project_index_state.withheld_by(opened.connection)
            changed = opened.bring(now, tick)
            fingerprints = self._documents()
            self._take_documents(opened, fingerprints, before.documents if changed else ())
            # A new index may be a copy of one with other records.
            if changed or is_fresh:
                self._give_documents_back(opened, fingerprints)
            opened.note_withheld(before)
        return opened

    def _use(self, opened: "Index") -> None:
        self._index, self._connection = opened, opened.connection

    def _give_documents_back(
        self, opened: "Index", fingerprints: Mapping[str, Fingerprint]
    ) -> None:
        """Reread documents that belong to another node now that the records have changed."""
        from ctx.project import document_nodes

        withheld = project_index_state.withheld_by(opened.connection).documents
        moved = [
            path
            for path, node_id in opened.owners().items()
            if path in fingerprints
            and path not in withheld
            and document_nodes.owner(opened.connection, path) != node_id
        ]
        self._put_documents(opened, moved, fingerprints)

    def _take_documents(
        self, opened: "Index", fingerprints: Mapping[str, Fingerprint], again: Collection[str] = ()
    ) -> None:
        """Update the records of changed documents, and of those to read `again`."""
        changed = sorted(opened.changed_documents(fingerprints).union(again))
        if self.repository.limit:
            sizes = [fingerprints[path].size for path in changed if path in fingerprints]
            self.repository.limit.count_records(len(sizes), sum(sizes))
        self._put_documents(opened, changed, fingerprints)

    def _put_documents(
        self, opened: "Index", paths: Sequence[str], fingerprints: Mapping[str, Fingerprint]
    ) -> None:
        from ctx.project import document_nodes
        from ctx.project.project_index import IndexedDocument

        folder = self.project.narrative
        read = {path: narrative_scan.read(folder, path) for path in paths if path in fingerprints}
        found = {path: data for path, data in read.items() if data is not None}
        given = self.given.documents(found)
        for path in paths:
            document = None
            if path in given:
                document = document_nodes.current(
                    self.project, opened.connection, path, found[path], fingerprints[path]
                )
            elif path in found:
                seen = document_nodes.lasting(fingerprints[path])
                document = IndexedDocument(seen, (), withheld=True)
            opened.put_document(path, document)

    def note_written(self, path: str, text: str) -> None:
        """Remember that a document was written here, so that agents are given it."""
        self.given.add_documents({path: text.encode("utf-8", "surrogateescape")})

    @contextmanager
    def changing(
        self, action: str, who: "ChangeAuthor", change_id: Ulid | None = None
    ) -> Iterator["Change"]:
        """Make a change as one step of the session, all of it or nothing."""
        from ctx.memory.changes import Change
        from ctx.project import staging

        session = SessionId(who.session)
        with self.repository.locked(f"ctx {action}"):
            staging.settle(self.repository, session, self.repository.tips())
            opened = self._up_to_date()
            is_staged = False
            try:
                with explain_errors(opened.path, IndexCorrupt), transaction(opened.connection):
                    change = Change(self.graph, action, who, change_id)
                    yield change
                    change.write()
                    if change.written or change.versions:
                        self._stage(opened, change, session)
                        is_staged = True
                        opened.settle(project_index_state.state(self.project))
                        self._take_documents(opened, self._documents())
            except (sqlite3.DatabaseError, CtxError, OSError):
                if not is_staged:
                    raise
                # The step is durable; the index is rebuilt.
                self.discard()

    def _stage(self, opened: "Index", change: "Change", session: SessionId) -> None:
        """Write a change as a step. It is durable when this returns."""
        from ctx.objects.object_store import Kind, parts_of, refuse_too_large
        from ctx.objects.object_types import StepKind
        from ctx.project import batches, staging

        kind = change.kind or (StepKind.COMMAND_RUN if change.objects else StepKind.NOTE)
        objects = [*change.objects, *change.versions]
        payload = [version.id for version in change.versions if version.kind is not Kind.BLOB]
        batch = None
        if change.written:
            batch = batches.encode_batch(change.written, [object_.id for object_ in change.objects])
            refuse_too_large(parts_of(batch, "records", "blobs"))
            objects.append(batch)
            payload.insert(0, batch.id)
        change.step = staging.append(self.repository, session, kind, objects, payload)
        self.stepped.add(session)
        if batch:
            opened.staged(batch.id, change.written, session)

    def reconsider(self) -> None:
        """Bring the index up to date after the user decided what agents are given."""
        self.close()
        opened = self._up_to_date()
        with explain_errors(opened.path, IndexCorrupt), transaction(opened.connection):
            opened.note_withheld(project_index_state.withheld_by(opened.connection))

    def commit(self, wish: "compaction.CompactionOptions") -> "compaction.CompactionResult | None":
        """Turn a session's chain into a commit."""
        from ctx.objects import untracked_survey
        from ctx.project import compaction, project_index, staged_sessions

        with self.repository.locked("ctx commit"):
            known = self.snapshots()
            before = self.repository.named_heads()
            connection = self.graph.connection
            of_others = {
                *staged_sessions.documents_of_others(connection, wish.session),
                *project_index_state.withheld_by(connection).documents,
            }
            wish = wish._replace(active=self._active_tasks(), of_others=of_others)
            untracked_survey.prune(self.repository)
            made = compaction.commit(self.repository, wish, self.graph, known)
            self.close()
            if made is not None and self._keeps_index:
                project_index.rename(self.project, before, self.repository.named_heads())
        return made

    def unpublished_deletions(self) -> dict[str, set[str]]:
        """The deleted nodes that were never committed, and the sessions that have staged them."""
        from ctx.project import staged_private

        return staged_private.unpublished_deletions(self.graph.connection)

    def snapshots(self) -> dict[str, ObjectId]:
        """The newest snapshot in history of each document."""
        return {path: ObjectId(blob) for path, blob in self._up_to_date().last_snapshots()}

    def _active_tasks(self) -> list[str]:
        """The documents of active tasks."""
        rows = self.graph.connection.execute(
            "SELECT json_extract(metadata, '$.file') FROM nodes WHERE type = 'task'"
            " AND json_extract(metadata, '$.status') = 'active'"
        )
        return [row[0] for row in rows if isinstance(row[0], str)]

    def is_damaged(self) -> bool:
        """Whether the index is a damaged database."""
        try:
            return self._connection is not None and bool(integrity_problems(self._connection))
        except sqlite3.DatabaseError:
            return True

    def discard(self) -> None:
        """Delete the index. It is rebuilt when it is needed."""
        from ctx.project import project_index

        self.close()
        if self._keeps_index:
            project_index.discard(
                project_index_state.path_for(self.project, project_index_state.state(self.project))
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._index = None
