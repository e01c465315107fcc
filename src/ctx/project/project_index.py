"""The project index: the graph of a project as tables.

It is derived. It has the tables of the user store's graph and a few more: every record has its
batch, and every batch its commit or session. So batches can be added and removed, and the cost of
moving an index to other heads is proportional to the difference.

There is one index for each set of heads, cached under a key of them. The same file contains staged
records, from a step until a commit, an abort or a checkout, and the records of documents, whose
stamps are later than those of any clock.

File names alone show whether an index is up to date, so a command that only reads does not load
the object store.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, disk
from ctx.ids import ObjectId, SessionId
from ctx.layout import INDEX_KEY, Project
from ctx.memory import history, records
from ctx.memory.migrations import MIGRATIONS
from ctx.memory.records import Record
from ctx.project import index_sync
from ctx.project.commit_history import CommitHistory, parents_of
from ctx.project.index_sync import IndexSync, heads_text, note
from ctx.project.project_index_state import (
    APPLICATION_ID,
    FILE,
    VERSION,
    Fingerprint,
    ProjectState,
    Withheld,
    documents_of,
    holds,
    if_fit,
    is_index,
    path_for,
    scrubbed_digest_of,
    state,
    withheld_by,
)
from ctx.sqlite.connection import connect, execute_script, mark, transaction
from ctx.sqlite.truth import connect_for_reading

if TYPE_CHECKING:
    from ctx.project.project_repository import ProjectRepository

MEMORY = ":memory:"

_BUSY_MS = 30_000
_PERSONAL = (
    *("pending", "receipts", "events", "commands", "contexts"),
    *("sessions", "symbol_changes", "event_log", "model_answers"),
    *("excerpts", "session_commands", "session_teams"),
)
_SCHEMA = """
CREATE TABLE present (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (
    id TEXT PRIMARY KEY,
    parents TEXT NOT NULL,
    timestamp_unix INTEGER NOT NULL,
    replaced TEXT NOT NULL,
    author TEXT NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    batches TEXT NOT NULL,
    -- Whether the commit was made here.
    mine INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE snapshots (
    path TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    blob_id TEXT NOT NULL,
    PRIMARY KEY (path, commit_id)
) WITHOUT ROWID;
CREATE TABLE chains (
    session TEXT PRIMARY KEY,
    tip TEXT NOT NULL,
    parked INTEGER NOT NULL
) WITHOUT ROWID;
-- A batch belongs to a commit, to a session that staged it, or to a document.
CREATE TABLE batches (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    commit_id TEXT,
    session TEXT,
    -- For a staged batch: the heads at that time.
    heads TEXT NOT NULL,
    -- Earlier records in the history that its author had not read.
    unread TEXT NOT NULL DEFAULT ''
);
-- Further batches that contain a record, besides the one in its row.
CREATE TABLE repeated (
    record TEXT NOT NULL,
    batch INTEGER NOT NULL,
    PRIMARY KEY (record, batch)
) WITHOUT ROWID;
CREATE INDEX idx_repeated_batch ON repeated(batch);
CREATE TABLE documents (
    path TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    node_id TEXT,
    -- The blob that a commit would store.
    blob_id TEXT NOT NULL,
    withheld INTEGER NOT NULL
) WITHOUT ROWID;
-- Commits and batches of the history that agents are not given: nothing of their text is here.
CREATE TABLE withheld (
    id TEXT PRIMARY KEY,
    commit_id TEXT NOT NULL,
    -- The nodes that a batch is about; their documents, where they have some.
    items TEXT NOT NULL
) WITHOUT ROWID;
ALTER TABLE records ADD COLUMN batch INTEGER;
CREATE INDEX idx_records_batch ON records(batch);
CREATE INDEX idx_records_file ON records(json_extract(body, '$.metadata.file'))
    WHERE kind = 'node.put' AND json_extract(body, '$.metadata.file') IS NOT NULL;
"""


class IndexedDocument(NamedTuple):
    """The records of a document."""

    fingerprint: Fingerprint
    records: Sequence[Record]
    node_id: str | None = None
    """The node that it belongs to, according to the records."""
    blob_id: str = ""
    """The blob that a commit would store."""
    withheld: bool = False
    """Whether agents are not given it; then it has no records."""


class Index:
    """A project index that is open for writing."""

    def __init__(self, connection: Connection, repository: "ProjectRepository", path: str) -> None:
        self.connection = connection
        self._repository = repository
        self.path = path

    def changed_documents(self, fingerprints: Mapping[str, Fingerprint]) -> set[str]:
        """The documents that differ from the index, including deleted ones."""
        known = documents_of(self.connection)
        return {
            path for path in {**known, **fingerprints} if known.get(path) != fingerprints.get(path)
        }

    def bring(self, now: ProjectState, tick: clock.Tick = clock.no_tick) -> bool:
        """Bring it up to date, inside a transaction; whether anything changed."""
        is_held = holds(self.connection, self._repository.project, now)
        if is_held and not self._repository.given.has_more(withheld_by(self.connection)):
            return False
        IndexSync(self.connection, self._repository, now, tick).run()
        return True

    def owners(self) -> dict[str, str | None]:
        """The documents and the nodes that they belonged to when they were added."""
        return dict(self.connection.execute("SELECT path, node_id FROM documents").fetchall())

    def put_document(self, path: str, document: IndexedDocument | None) -> None:
        """Update a document, inside a transaction; None if it was deleted."""
        name = f"narrative {path}"
        self.connection.execute("DELETE FROM documents WHERE path = ?", (path,))
        if document is not None:
            self.connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    *(path, *document.fingerprint),
                    *(document.node_id, document.blob_id, document.withheld),
                ),
            )
        after = document.records if document else ()
        if not index_sync.holds_exactly(self.connection, name, after):
            gone = index_sync.remove_batches(self.connection, [name])
            rows = [(record, records.as_json(record.body)) for record in after]
            came = (
                index_sync.insert_batch_records(
                    self.connection, name, index_sync.BatchOwner(None, None), rows
                )
                if rows
                else []
            )
            index_sync.materialise(self.connection, [*gone, *came])

    def staged(
        self, batch_id: ObjectId, staged_records: Sequence[Record], session: SessionId
    ) -> None:
        """Assign records that were applied already to a batch, inside a transaction."""
        heads = heads_text(self._repository.tips())
        number = index_sync.add_batch(
            self.connection, batch_id, index_sync.BatchOwner(None, session, heads)
        )
        self.connection.executemany(
            "UPDATE records SET batch = ? WHERE id = ?",
            [(number, record.id) for record in staged_records],
        )

    def note_withheld(self, before: Withheld) -> None:
        """Note how much is withheld now. If it is less than before, contexts become outdated."""
        now = withheld_by(self.connection)
        branches = "" if now.is_nothing else self._repository.given.branches_stamp
        count = self._count_withheld(now)
        if now._replace(items=count, branches=branches) == before:
            return
        note(self.connection, "withheld", str(count))
        note(self.connection, "branches", branches)
        project = self._repository.project
        is_less = before.objects - now.objects or before.documents - now.documents
        if self.path != MEMORY and (is_less or count < before.items):
            with disk.explain_errors("noting what is given"):
                disk.replace(project.given, os.urandom(8).hex().encode())
            note(self.connection, "state", state(project).as_text)

    def _count_withheld(self, withheld: Withheld) -> int:
        """How many nodes and documents are withheld, without rejected ones."""
        given = self._repository.given
        rows = self.connection.execute("SELECT commit_id, items FROM withheld").fetchall()
        shown = {row[0] for row in rows} - given.rejected({row[0] for row in rows})
        items = {item for commit, held in rows if commit in shown for item in held.splitlines()}
        ids = given.ids_of_documents(withheld.documents)
        rejected = given.rejected(ids.values())
        return len(items | {path for path, id in ids.items() if id not in rejected})

    def settle(self, now: ProjectState) -> None:
        """Mark the index as up to date, inside a transaction."""
        note(self.connection, "state", now.as_text)
        known = dict(self.connection.execute("SELECT session, parked FROM chains"))
        self.connection.execute("DELETE FROM chains")
        self.connection.executemany(
            "INSERT INTO chains VALUES (?, ?, ?)",
            [(session, tip, known.get(session, 0)) for session, tip in now.chains],
        )

    def last_snapshots(self) -> list[tuple[str, str]]:
        """The documents in history with their blobs, the newest blob of each last.

        Of two commits in the same second, the descendant is newer.
        """
        newest_first = enumerate(history.commits(self.connection))
        ages = {commit: age for age, commit in newest_first}
        rows = self.connection.execute("SELECT path, blob_id, commit_id FROM snapshots").fetchall()
        rows.sort(key=lambda row: ages[row[2]], reverse=True)
        return [(path, blob) for path, blob, _ in rows]


def open_index(
    repository: "ProjectRepository", now: ProjectState, tick: clock.Tick = clock.no_tick
) -> Index:
    """Open the index of some heads for writing; `bring` then brings it up to date."""
    path = path_for(repository.project, now)
    for _ in range(3):
        with disk.explain_errors("opening the index"):
            if not os.path.exists(path):
                _make(repository, now, path, tick)
            connection = _connect_index(path, now)
        if connection is not None:
            return Index(connection, repository, path)
        # It is damaged, of another version, or holds scrubbed text.
        discard(path)
    raise disk.failure("opening the index", OSError("it cannot be created"))


def _connect_index(path: str, now: ProjectState) -> Connection | None:
    connection = if_fit(
        lambda: connect(path, "mode=rw", _BUSY_MS),
        lambda index: scrubbed_digest_of(index) == now.replaced,
    )
    if connection is not None:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    return connection


def in_memory(
    repository: "ProjectRepository", now: ProjectState, tick: clock.Tick = clock.no_tick
) -> Index:
    """An index in memory, for a place where nothing can be written."""
    connection = sqlite3.connect(MEMORY, isolation_level=None)
    _fill(connection, repository, now, tick)
    connection.execute("PRAGMA foreign_keys = ON")
    return Index(connection, repository, MEMORY)


def discard(path: str) -> None:
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def rename(project: Project, before: Sequence[ObjectId], after: Sequence[ObjectId]) -> None:
    """Reuse the index of some heads for others. It is brought up to date when it is opened."""
    from ctx.objects.object_index import path_for as history_of

    old, new = project.index_of(before), project.index_of(after)
    if old != new:
        with suppress(OSError):
            # The history file beside it is only valid for the old heads.
            disk.discard(history_of(project, before))
            # A process that has it open is not disturbed by the rename.
            os.rename(old, new)


def rebuild(repository: "ProjectRepository", now: ProjectState, tick: clock.Tick) -> str:
    """Build the index of some heads from the objects alone, and return its path.

    The same heads give the same bytes. Documents are added when the index is opened next.
    """
    path = path_for(repository.project, now)
    with disk.explain_errors("rebuilding the index"):
        indexes = repository.project.indexes
        for name in disk.names(indexes):
            # Beside them is the code index, which another process may be writing.
            if len(name) == INDEX_KEY:
                shutil.rmtree(os.path.join(indexes, name), ignore_errors=True)
        _make(repository, now, path, tick)
    return path


def _make(repository: "ProjectRepository", now: ProjectState, path: str, tick: clock.Tick) -> None:
    """Build an index under a temporary name, and rename it when it is complete."""
    from ctx.objects.object_index import make_room

    folder = os.path.dirname(path)
    make_room(repository.project)
    _sweep(repository.project)
    building = f"{folder}.{os.urandom(6).hex()}{disk.TEMPORARY_SUFFIX}"
    try:
        disk.make_folder(building)
        file = os.path.join(building, FILE)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE))
        source = _nearest(repository, now)
        if source is None or not _copy(source, file, repository, now, tick):
            with open(file, "wb"), closing(_unsafe(file)) as connection:
                _fill(connection, repository, now, tick)
        fd = os.open(file, os.O_RDONLY)
        try:
            disk.sync(fd)
        finally:
            os.close(fd)
        if os.path.isdir(folder) and not os.path.exists(path):
            # Another index of these heads exists.
            os.replace(file, path)
        else:
            # If another process was faster, its index is just as good.
            with suppress(OSError):
                os.rename(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _sweep(project: Project) -> None:
    """Remove incomplete indexes that killed processes left, once they are an hour old."""
    for name in disk.names(project.indexes):
        folder = os.path.join(project.indexes, name)
        if name.endswith(disk.TEMPORARY_SUFFIX):
            with suppress(OSError):
                if os.path.getmtime(folder) < clock.wall_s() - 3600:
                    shutil.rmtree(folder, ignore_errors=True)


def _unsafe(path: str) -> Connection:
    """A connection to a private file that may be lost in a crash."""
    connection = connect(path, "mode=rw")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -32000")
    return connection


def _copy(
    source: str,
    path: str,
    repository: "ProjectRepository",
    now: ProjectState,
    tick: clock.Tick,
) -> bool:
    """Make an index from a copy of another one; False if that one is damaged."""
    try:
        with closing(_unsafe(path)) as connection:
            with closing(connect_for_reading(source)) as known:
                known.backup(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            with transaction(connection):
                IndexSync(connection, repository, now, tick).run()
            connection.execute("PRAGMA journal_mode = WAL")
        return True
    except sqlite3.DatabaseError:
        return False


def _fill(
    connection: Connection,
    repository: "ProjectRepository",
    now: ProjectState,
    tick: clock.Tick,
) -> None:
    """Build an index from objects alone."""
    with transaction(connection):
        _create(connection)
        with _indexed_afterwards(connection):
            IndexSync(connection, repository, now, tick).run()
    # With WAL, readers and writers do not wait for each other.
    connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def _indexed_afterwards(connection: Connection) -> Iterator[None]:
    """Create most indexes after the rows: sorting once is faster than inserting every row at random
    places. Those that are read in between stay: by batch, and of edges."""
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        " AND tbl_name IN ('records', 'nodes', 'tags') AND name <> 'idx_records_batch'"
        " ORDER BY name"
    ).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    yield
    for _, sql in indexes:
        connection.execute(sql)


def _create(connection: Connection) -> None:
    for migrate in MIGRATIONS:
        migrate(connection)
    for table in _PERSONAL:
        connection.execute(f"DROP TABLE {table}")
    # A project has a view `default` only if a record creates it.
    connection.execute("DELETE FROM records")
    connection.execute("DELETE FROM views")
    execute_script(connection, _SCHEMA)
    mark(connection, APPLICATION_ID, VERSION)


def _nearest(repository: "ProjectRepository", now: ProjectState) -> str | None:
    """The cached index that differs least from these heads."""
    project = repository.project
    by_path: dict[str, set[str]] = {}
    every: dict[str, list[str]] = {}
    for name in disk.names(project.indexes):
        path = os.path.join(project.indexes, name, FILE)
        if os.path.exists(path):
            with suppress(sqlite3.DatabaseError), closing(connect_for_reading(path)) as known:
                if is_index(known) and scrubbed_digest_of(known) == now.replaced:
                    parents = parents_of(known)
                    by_path[path] = set(parents)
                    every.update(parents)
    if not by_path:
        return None
    wanted = {id for id, _ in CommitHistory(repository, every).walk(now.heads)}
    return min(by_path, key=lambda path: len(by_path[path] ^ wanted))
