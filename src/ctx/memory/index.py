"""The index of a project: the graph that its records make, as tables.

It is derived. Its tables are those of the user store's graph, and a few more that say what it was
made of: every record names its batch, every batch the commit or the session that holds it. So a
batch can be put in and taken out, and an index of one set of heads becomes that of another in
proportion to the difference.

There is one index for each set of heads, cached under a key of them. What is staged lies in the
same file: it comes with a step, and goes with a commit, an abort, or another branch. What documents
say lies there too, as records that no clock can overtake.

Whether an index is what the project is at is told by the names of files alone: a command that only
reads loads nothing of the object store.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, disk
from ctx.ids import ObjectId, SessionId
from ctx.layout import Project
from ctx.memory import history, records
from ctx.memory.present import APPLICATION_ID, FILE, VERSION, State, holds, is_index, path_for
from ctx.memory.records import Record
from ctx.sqlite.connection import connect, execute_script, transaction
from ctx.sqlite.truth import connect_for_reading

if TYPE_CHECKING:
    from ctx.objects.repository import Repository

MEMORY = ":memory:"

_BUSY_MS = 30_000
_PERSONAL = ("pending", "receipts", "events", "commands", "contexts")
_SCHEMA = """
CREATE TABLE present (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (
    id TEXT PRIMARY KEY,
    parents TEXT NOT NULL,
    timestamp_unix INTEGER NOT NULL,
    amends TEXT,
    author TEXT NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    batches TEXT NOT NULL
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
-- A batch is in a commit, staged in a session, or what a document says.
CREATE TABLE batches (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    commit_id TEXT,
    session TEXT
);
-- A record that several batches hold, beside the one that its row names.
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
    node_id TEXT
) WITHOUT ROWID;
ALTER TABLE records ADD COLUMN batch INTEGER;
CREATE INDEX idx_records_batch ON records(batch);
CREATE INDEX idx_records_file ON records(json_extract(body, '$.metadata.file'))
    WHERE kind = 'node.put' AND json_extract(body, '$.metadata.file') IS NOT NULL;
"""


class Fingerprint(NamedTuple):
    """What tells that a document is what it was, without reading it."""

    mtime_ns: int
    size: int
    inode: int


class Document(NamedTuple):
    """What a document says, for the graph."""

    fingerprint: Fingerprint
    records: Sequence[Record]
    node_id: str | None = None
    """The node that it belongs to, as the records say."""


class Batch(NamedTuple):
    """Who holds a batch."""

    commit: str | None
    session: str | None


def read_current(
    project: Project, now: State, documents: Mapping[str, Fingerprint]
) -> Connection | None:
    """The index, if there is one and it is what the project is at."""
    path = path_for(project, now)
    if not os.path.exists(path):
        return None
    connection = None
    try:
        connection = connect_for_reading(path)
        is_current = is_index(connection) and holds(connection, project, now)
        if is_current and _known(connection) == documents:
            return connection
    except sqlite3.DatabaseError:
        pass
    if connection is not None:
        connection.close()
    return None


def _known(connection: Connection) -> dict[str, Fingerprint]:
    rows = connection.execute("SELECT path, mtime_ns, size, inode FROM documents")
    return {row[0]: Fingerprint(*row[1:]) for row in rows}


# Making an index


class Index:
    """The index of what a project is at, open for writing."""

    def __init__(self, connection: Connection, repository: "Repository", path: str) -> None:
        self.connection = connection
        self._repository = repository
        self.path = path

    def changed_documents(self, seen: Mapping[str, Fingerprint]) -> set[str]:
        """The documents that are not what the index has of them; also those that are gone."""
        known = _known(self.connection)
        return {path for path in {**known, **seen} if known.get(path) != seen.get(path)}

    def bring(self, now: State) -> bool:
        """Make it what the project is at; whether anything was to do. Inside a transaction."""
        if holds(self.connection, self._repository.project, now):
            return False
        _Bringing(self.connection, self._repository, now).run()
        return True

    def owners(self) -> dict[str, str | None]:
        """The documents, and the nodes that they belonged to when they were put in."""
        return dict(self.connection.execute("SELECT path, node_id FROM documents").fetchall())

    def put_document(self, path: str, document: Document | None) -> None:
        """What a document says now; None where there is none any more. Inside a transaction."""
        name = f"narrative {path}"
        self.connection.execute("DELETE FROM documents WHERE path = ?", (path,))
        if document is not None:
            self.connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
                (path, *document.fingerprint, document.node_id),
            )
        after = document.records if document else ()
        if not _is_said(self.connection, name, after):
            gone = _take_out(self.connection, [name])
            told = [(record, records.as_json(record.body)) for record in after]
            came = _put_in(self.connection, name, Batch(None, None), told) if told else []
            _materialise(self.connection, [*gone, *came])

    def staged(self, batch_id: ObjectId, said: Sequence[Record], session: SessionId) -> None:
        """Note that records which were applied already are those of a batch. In a transaction."""
        number = _number(self.connection, batch_id, Batch(None, session))
        self.connection.executemany(
            "UPDATE records SET batch = ? WHERE id = ?", [(number, record.id) for record in said]
        )

    def settle(self, now: State) -> None:
        """Note that everything up to here is in the index. Inside a transaction."""
        _put(self.connection, "state", now.told)
        known = dict(self.connection.execute("SELECT session, parked FROM chains"))
        self.connection.execute("DELETE FROM chains")
        self.connection.executemany(
            "INSERT INTO chains VALUES (?, ?, ?)",
            [(session, tip, known.get(session, 0)) for session, tip in now.chains],
        )

    def last_snapshots(self) -> list[tuple[str, str]]:
        """The documents that history has, and the newest blob of each last.

        Of commits of one second, the one that builds on the other is the newer.
        """
        newest_first = enumerate(history.commits(self.connection))
        ages = {commit: age for age, commit in newest_first}
        rows = self.connection.execute("SELECT path, blob_id, commit_id FROM snapshots").fetchall()
        rows.sort(key=lambda row: ages[row[2]], reverse=True)
        return [(path, blob) for path, blob, _ in rows]


def commits_of(connection: Connection, subject: str) -> dict[str, str]:
    """The commits in which what was recorded about a node, or to it, lies; by record."""
    rows = connection.execute(
        "SELECT r.id, b.commit_id FROM records AS r JOIN batches AS b ON b.number = r.batch"
        " WHERE (r.subject = ?1 OR r.target = ?1) AND b.commit_id IS NOT NULL",
        (subject,),
    )
    return dict(rows.fetchall())


def open_index(repository: "Repository", now: State) -> Index:
    """The index of some heads, open for writing; what it lacks is for `bring` to put in."""
    path = path_for(repository.project, now)
    for _ in range(3):
        with disk.explained("opening the index"):
            if not os.path.exists(path):
                _make(repository, now, path)
            connection = _connected(path)
        if connection is not None:
            return Index(connection, repository, path)
        # It is damaged, or another version made it.
        discard(path)
    raise disk.failure("opening the index", OSError("it cannot be made"))


def _connected(path: str) -> Connection | None:
    connection = None
    try:
        connection = connect(path, "mode=rw", _BUSY_MS)
        if is_index(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            return connection
    except sqlite3.DatabaseError:
        pass
    if connection is not None:
        connection.close()
    return None


def in_memory(repository: "Repository", now: State) -> Index:
    """The same where nothing can be written: it is not kept."""
    connection = sqlite3.connect(MEMORY, isolation_level=None)
    _fill(connection, repository, now, None)
    connection.execute("PRAGMA foreign_keys = ON")
    return Index(connection, repository, MEMORY)


def discard(path: str) -> None:
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def rename(project: Project, before: Sequence[ObjectId], after: Sequence[ObjectId]) -> None:
    """Let the index of some heads be that of others; it is brought to them when it is opened."""
    from ctx.objects.index import path_for as history_of

    old, new = project.index_of(before), project.index_of(after)
    if old != new:
        with suppress(OSError):
            # What lies beside it is for those heads alone.
            disk.discard(history_of(project, before))
            # Whoever has it open goes on with it: a folder's name is not in its files.
            os.rename(old, new)


def rebuild(repository: "Repository", now: State, tick: clock.Tick) -> str:
    """Make the index of some heads anew, from the objects alone, and nothing else; its file.

    The same heads give the same bytes. What documents say comes in when it is opened next.
    """
    path = path_for(repository.project, now)
    with disk.explained("rebuilding the index"):
        shutil.rmtree(repository.project.indexes, ignore_errors=True)
        _make(repository, now, path, tick)
    return path


def _make(
    repository: "Repository", now: State, path: str, tick: clock.Tick = clock.no_tick
) -> None:
    """Build an index under another name, and put it in place whole."""
    from ctx.objects.index import make_room

    folder = os.path.dirname(path)
    make_room(repository.project)
    _sweep(repository.project)
    building = f"{folder}.{os.urandom(6).hex()}{disk.TEMPORARY_SUFFIX}"
    try:
        disk.make_folder(building)
        file = os.path.join(building, FILE)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE))
        with closing(connect(file, "mode=rw")) as connection:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            _fill(connection, repository, now, _nearest(repository, now), tick)
        fd = os.open(file, os.O_RDONLY)
        try:
            disk.sync(fd)
        finally:
            os.close(fd)
        if os.path.isdir(folder) and not os.path.exists(path):
            # Another index of these heads is there.
            os.replace(file, path)
        else:
            # Where somebody else was faster, theirs is as good.
            with suppress(OSError):
                os.rename(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _sweep(project: Project) -> None:
    """Remove what a killed process left of an index an hour ago."""
    for name in disk.names(project.indexes):
        folder = os.path.join(project.indexes, name)
        if name.endswith(disk.TEMPORARY_SUFFIX):
            with suppress(OSError):
                if os.path.getmtime(folder) < clock.now_s() - 3600:
                    shutil.rmtree(folder, ignore_errors=True)


def _fill(
    connection: Connection,
    repository: "Repository",
    now: State,
    source: str | None,
    tick: clock.Tick = clock.no_tick,
) -> None:
    if source is not None:
        with suppress(sqlite3.DatabaseError), closing(connect_for_reading(source)) as known:
            known.backup(connection)
    with suppress(sqlite3.DatabaseError):
        if is_index(connection):
            connection.execute("PRAGMA foreign_keys = ON")
            with transaction(connection):
                _Bringing(connection, repository, now).run()
            return
    with transaction(connection):
        _create(connection)
        _Bringing(connection, repository, now, tick).run()


def _create(connection: Connection) -> None:
    from ctx.memory.migrations import MIGRATIONS

    for migrate in MIGRATIONS:
        migrate(connection)
    for table in _PERSONAL:
        connection.execute(f"DROP TABLE {table}")
    # A project has the view `default` only if somebody gave it one.
    connection.execute("DELETE FROM records")
    connection.execute("DELETE FROM views")
    execute_script(connection, _SCHEMA)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
    connection.execute(f"PRAGMA user_version = {VERSION:d}")


def _nearest(repository: "Repository", now: State) -> str | None:
    """The cached index from which the way to these heads is shortest."""
    project = repository.project
    found: dict[str, dict[str, list[str]]] = {}
    for name in disk.names(project.indexes):
        path = os.path.join(project.indexes, name, FILE)
        if os.path.exists(path):
            with suppress(sqlite3.DatabaseError), closing(connect_for_reading(path)) as known:
                if is_index(known):
                    found[path] = _parents(known)
    if not found:
        return None
    every = {commit: parents for known in found.values() for commit, parents in known.items()}
    wanted = _History(repository, every).walk(now.heads)
    return min(found, key=lambda path: len(found[path].keys() ^ wanted))


def _parents(connection: Connection) -> dict[str, list[str]]:
    return {row[0]: row[1].split() for row in connection.execute("SELECT id, parents FROM commits")}


class _History:
    """The commits that heads reach. Those that an index knows are not read again."""

    def __init__(self, repository: "Repository", known: Mapping[str, list[str]]) -> None:
        self._objects = repository.objects
        self._known = known
        self.missing: list[str] = []

    def walk(self, heads: Iterable[str]) -> set[str]:
        from ctx.errors import ObjectNotFound
        from ctx.objects.model import Commit
        from ctx.objects.store import read_typed

        reached = set(heads)
        waiting: list[str] = list(reached)
        found: set[str] = set()
        while waiting:
            each = ObjectId(waiting.pop())
            if each in self._known and each in self._objects:
                parents: Sequence[str] = self._known[each]
            else:
                try:
                    parents = read_typed(self._objects, each, Commit).parents
                except ObjectNotFound:
                    self.missing.append(each)
                    continue
            found.add(each)
            waiting += [parent for parent in parents if parent not in reached]
            reached.update(parents)
        return found


class _Bringing:
    """From whatever an index holds to what a project is at."""

    def __init__(
        self,
        connection: Connection,
        repository: "Repository",
        now: State,
        tick: clock.Tick = clock.no_tick,
    ) -> None:
        self._connection = connection
        self._repository = repository
        self._now = now
        self._tick = tick

    def run(self) -> None:
        missing = self._follow_history()
        wanted = self._committed()
        wanted.update(self._staged(wanted))
        missing += self._exchange(wanted)
        _put(self._connection, "state", self._now.told)
        _put(self._connection, "missing", "\n".join(sorted(missing)))

    def _follow_history(self) -> list[str]:
        """Let `commits` be those that the heads reach; what should be there and is not."""
        from ctx.objects.model import Commit
        from ctx.objects.store import read_typed

        known = _parents(self._connection)
        history = _History(self._repository, known)
        reached = history.walk(self._now.heads)
        for gone in known.keys() - reached:
            self._connection.execute("DELETE FROM commits WHERE id = ?", (gone,))
            self._connection.execute("DELETE FROM snapshots WHERE commit_id = ?", (gone,))
        for new in sorted(reached - known.keys()):
            commit = read_typed(self._repository.objects, ObjectId(new), Commit)
            self._connection.execute(
                "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    new,
                    " ".join(commit.parents),
                    commit.timestamp_unix,
                    commit.amends,
                    commit.author,
                    commit.session_id,
                    commit.message,
                    " ".join(commit.record_batches),
                ),
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
                [(ref.path, new, ref.blob_id) for ref in commit.narrative_refs],
            )
        return history.missing

    def _committed(self) -> dict[str, Batch]:
        """The batches of history. One that several commits name came with the oldest."""
        rows = self._connection.execute(
            "SELECT id, batches FROM commits WHERE batches <> '' ORDER BY timestamp_unix DESC, id"
        )
        return {batch: Batch(commit, None) for commit, named in rows for batch in named.split()}

    def _staged(self, committed: Mapping[str, Batch]) -> dict[str, Batch]:
        """The batches of sessions that began in this history; the others are parked."""
        from ctx.errors import CtxError
        from ctx.objects import work

        found: dict[str, Batch] = {}
        self._connection.execute("DELETE FROM chains")
        rows = self._connection.execute("SELECT id, amends FROM commits").fetchall()
        here = {row[0] for row in rows} | {row[1] for row in rows}
        for session, tip in self._now.chains:
            try:
                steps = work.chain(self._repository.everything, tip)
            except CtxError:
                # A chain that is damaged is for `ctx stage recover`; it must not hide the rest.
                steps = []
            parked = not steps or not here.issuperset(steps[0].work.bases)
            self._connection.execute(
                "INSERT INTO chains VALUES (?, ?, ?)", (session, tip, int(parked))
            )
            for step in steps if not parked else ():
                for each in step.work.payload:
                    if each not in committed:
                        found[each] = Batch(None, session)
        return found

    def _exchange(self, wanted: Mapping[str, Batch]) -> list[str]:
        """Take out what is not wanted and put in what is missing; what could not be read."""
        if _present(self._connection, "disputed"):
            _empty(self._connection)
        missing: list[str] = []
        if self._put_and_take(wanted, missing):
            # Somebody gave two records one id. Which of them counts must not depend on the way
            # that was gone, so it is gone from the beginning, as long as both are there.
            _empty(self._connection)
            missing.clear()
            self._put_and_take(wanted, missing)
        return missing

    def _put_and_take(self, wanted: Mapping[str, Batch], missing: list[str]) -> bool:
        """Whether records were in dispute that were not known to be."""
        rows = self._connection.execute("SELECT id, commit_id, session FROM batches").fetchall()
        known = {row[0]: Batch(*row[1:]) for row in rows if not row[0].startswith("narrative ")}
        said_before = self._connection.execute("SELECT 1 FROM records WHERE stamp > 0 LIMIT 1")
        is_new = said_before.fetchone() is None
        came: list[Record] = []
        is_disputed = False
        for done, batch_id in enumerate(_in_order(wanted)):
            self._tick(done, len(wanted))
            if batch_id not in known:
                said = self._read(batch_id, missing)
                new = _put_in(self._connection, batch_id, wanted[batch_id], said) if said else []
                is_disputed = is_disputed or _contradicts(self._connection, said, new)
                came += new
            elif known[batch_id] != wanted[batch_id]:
                self._connection.execute(
                    "UPDATE batches SET commit_id = ?, session = ? WHERE id = ?",
                    (*wanted[batch_id], batch_id),
                )
        if is_disputed and not is_new:
            return True
        _put(self._connection, "disputed", "yes" if is_disputed else "")
        went = _take_out(self._connection, [each for each in known if each not in wanted])
        if is_new and not went:
            from ctx.memory.materialise import materialise_all

            materialise_all(self._connection, self._tick, came)
        else:
            _materialise(self._connection, [*came, *went])
        return False

    def _read(self, batch_id: str, missing: list[str]) -> list[tuple[Record, str]]:
        """What a batch says. A step's payload has other objects too: they say nothing here."""
        from ctx.errors import DeserializationFailed, ObjectNotFound
        from ctx.memory import batches
        from ctx.objects.model import RecordBatch
        from ctx.objects.store import decode

        try:
            found = self._repository.everything.read(ObjectId(batch_id))
            value = decode(found)
            return batches.said(value) if isinstance(value, RecordBatch) else []
        except ObjectNotFound:
            missing.append(batch_id)
        except DeserializationFailed:
            # `ctx debug verify` names it. What else is there must not be out of reach for it.
            pass
        return []


def _in_order(wanted: Mapping[str, Batch]) -> Iterator[str]:
    """The same order for the same batches, whatever order they were found in."""
    return iter(sorted(wanted))


def _put_in(
    connection: Connection, batch_id: str, held: Batch, said: Sequence[tuple[Record, str]]
) -> list[Record]:
    """Insert the records of a batch, with their bodies as text; those that were not there."""
    number = _number(connection, batch_id, held)
    new = records.insert_batch(connection, said, number)
    if len(new) < len(said):
        there = {record.id for record, _ in said} - {record.id for record in new}
        connection.executemany(
            "INSERT INTO repeated VALUES (?, ?)", [(record, number) for record in sorted(there)]
        )
    return new


def _is_said(connection: Connection, batch_id: str, said: Sequence[Record]) -> bool:
    """Whether a batch is there and says just this; one that says nothing need not be there."""
    row = connection.execute("SELECT number FROM batches WHERE id = ?", (batch_id,)).fetchone()
    there = records.of_batch(connection, row[0]) if row else []
    return sorted(there, key=_id) == sorted(said, key=_id)


def _id(record: Record) -> str:
    return record.id


def _contradicts(
    connection: Connection, said: Sequence[tuple[Record, str]], new: Sequence[Record]
) -> bool:
    """Whether a record that was there already says something else under the same id."""
    if len(new) == len(said):
        return False
    came = {record.id for record in new}
    others = (record for record, _ in said if record.id not in came)
    return any(not records.has(connection, record) for record in others)


def _empty(connection: Connection) -> None:
    """Forget everything but the history."""
    for table in ("edges", "outside", "tags", "nodes", "views", "repeated", "batches", "documents"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM records WHERE stamp > 0")


def _number(connection: Connection, batch_id: str, held: Batch) -> int:
    row = connection.execute(
        "INSERT INTO batches (id, commit_id, session) VALUES (?, ?, ?) RETURNING number",
        (batch_id, *held),
    ).fetchone()
    return int(row[0])


def _take_out(connection: Connection, batch_ids: Iterable[str]) -> list[Record]:
    """Remove batches; the records that no other batch holds, which are gone then."""
    gone: list[Record] = []
    for batch_id in batch_ids:
        row = connection.execute("SELECT number FROM batches WHERE id = ?", (batch_id,)).fetchone()
        if row is None:
            continue
        connection.execute("DELETE FROM repeated WHERE batch = ?", row)
        for record in records.of_batch(connection, row[0]):
            other = connection.execute(
                "SELECT min(batch) FROM repeated WHERE record = ?", (record.id,)
            ).fetchone()[0]
            if other is None:
                connection.execute("DELETE FROM records WHERE id = ?", (record.id,))
                gone.append(record)
            else:
                connection.execute("UPDATE records SET batch = ? WHERE id = ?", (other, record.id))
                connection.execute(
                    "DELETE FROM repeated WHERE record = ? AND batch = ?", (record.id, other)
                )
        connection.execute("DELETE FROM batches WHERE number = ?", row)
    return gone


def _materialise(connection: Connection, touched: list[Record]) -> None:
    if touched:
        from ctx.memory.materialise import materialise

        materialise(connection, touched)


def _present(connection: Connection, name: str) -> str:
    row = connection.execute("SELECT value FROM present WHERE name = ?", (name,)).fetchone()
    return row[0] if row else ""


def _put(connection: Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO present VALUES (?, ?)", (name, value))
