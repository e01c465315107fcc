"""Brings a project index up to date by adding and removing batches.

Batches that no longer count are removed, missing ones are added, and the rows that their records
are about are recomputed. A commit, an abort, a checkout and a merge differ only in the batches.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.errors import CtxError, ObjectNotFound
from ctx.ids import ObjectId
from ctx.memory import materialise as making
from ctx.memory import records
from ctx.memory.materialise import materialise_all
from ctx.memory.records import Record
from ctx.objects import codec, commits
from ctx.objects.object_store import DAMAGE, decode
from ctx.objects.object_types import Commit, RecordBatch
from ctx.project import project_index_state
from ctx.project.commit_history import CommitHistory, parents_of
from ctx.project.project_index_state import ProjectState
from ctx.project.project_repository import without_text

if TYPE_CHECKING:
    from ctx.project.project_repository import ProjectRepository


# What is kept in memory until it is written; a store may be larger than the memory.
_WRITTEN_AT_ONCE = 10_000
_KEPT_RECORDS = 100_000
_KEPT_BYTES = 16 * 1024 * 1024


class BatchOwner(NamedTuple):
    """The commit or session that a batch belongs to."""

    commit: str | None
    session: str | None
    heads: str = ""
    """If it is staged: the heads at that time."""


class IndexSync:
    """Brings an index from any state to the project's current state."""

    def __init__(
        self,
        connection: Connection,
        repository: "ProjectRepository",
        now: ProjectState,
        tick: clock.Tick = clock.no_tick,
    ) -> None:
        self._connection = connection
        self._repository = repository
        self._now = now
        self._tick = tick
        self._missing: set[str] = set()
        self._damaged: set[str] = set()

    def run(self) -> None:
        if project_index_state.scrubbed_digest_of(self._connection) != self._now.replaced:
            # Something was scrubbed: the index may hold the original text.
            self._connection.execute("DELETE FROM commits")
            self._connection.execute("DELETE FROM snapshots")
            self._connection.execute("DELETE FROM withheld")
            _delete_rows(self._connection)
        self._take_given_commits()
        self._follow_history()
        wanted = self._committed_batches()
        wanted.update(self._staged_batches(wanted))
        self._exchange(wanted)
        project = self._repository.project
        damaged = [project_index_state.damage_line(project, id) for id in sorted(self._damaged)]
        note(self._connection, "state", self._now.as_text)
        note(self._connection, "replaced", self._now.replaced)
        note(self._connection, "missing", "\n".join(sorted(self._missing)))
        note(self._connection, "damaged", "\n".join(damaged))

    def _take_given_commits(self) -> None:
        """Forget the commits that were withheld and are given now, so that they are read again."""
        rows = self._connection.execute("SELECT id FROM withheld").fetchall()
        for commit_id in self._repository.given.objects([row[0] for row in rows]):
            self._delete_commit(commit_id)

    def _delete_commit(self, commit_id: str) -> None:
        self._connection.execute("DELETE FROM commits WHERE id = ?", (commit_id,))
        self._connection.execute("DELETE FROM snapshots WHERE commit_id = ?", (commit_id,))
        self._connection.execute("DELETE FROM withheld WHERE id = ?", (commit_id,))

    def _follow_history(self) -> None:
        """Update the table `commits` to the commits that the heads reach."""
        gone = parents_of(self._connection)
        walked = CommitHistory(self._repository, dict(gone), self._tick)
        amended = commits.AmendedCommits(self._repository.objects)
        came: dict[ObjectId, Commit] = {}
        size = 0
        for commit_id, commit in walked.walk(self._now.heads):
            gone.pop(commit_id, None)
            if commit:
                came[commit_id] = commit
                size += len(codec.encode(commit))
                if size > _KEPT_BYTES or len(came) == _WRITTEN_AT_ONCE:
                    self._insert_commits(came, amended)
                    came, size = {}, 0
        self._insert_commits(came, amended)
        for old in gone:
            self._delete_commit(old)
        self._missing.update(walked.missing)
        self._damaged.update(walked.damaged)

    def _insert_commits(
        self, came: Mapping[ObjectId, Commit], amended: commits.AmendedCommits
    ) -> None:
        given = self._repository.given.objects(came)
        own = self._repository.own() if came else set()
        new = [
            (commit_id, commit if commit_id in given else without_text(commit))
            for commit_id, commit in sorted(came.items())
        ]
        self._connection.executemany(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    commit_id,
                    " ".join(commit.parents),
                    commit.timestamp_unix,
                    " ".join(amended.by(commit)),
                    commit.author,
                    commit.session_id,
                    commit.message,
                    " ".join(came[commit_id].record_batches),
                    int(self._repository.is_as_made_here(commit_id, commit, own)),
                )
                for commit_id, commit in new
            ),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO withheld VALUES (?, ?, '')",
            ((commit_id, commit_id) for commit_id in came if commit_id not in given),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
            (
                (ref.path, commit_id, ref.blob_id)
                for commit_id, commit in new
                for ref in commit.narrative_refs
            ),
        )

    def _committed_batches(self) -> dict[str, BatchOwner]:
        """The given batches of history. A batch that several commits name belongs to the oldest."""
        rows = self._connection.execute(
            "SELECT c.id, batches, w.id IS NULL FROM commits AS c LEFT JOIN withheld AS w"
            " ON w.id = c.id WHERE batches <> '' ORDER BY timestamp_unix DESC, c.id"
        ).fetchall()
        owners = {
            batch: BatchOwner(commit, None) for commit, named, _ in rows for batch in named.split()
        }
        # What is in the tables is given, and so is what a given commit names.
        given = {row[0] for row in self._connection.execute("SELECT id FROM batches")}
        given.update(batch for _, named, is_given in rows if is_given for batch in named.split())
        given -= self._repository.given.replaced(given)
        given |= self._repository.given.objects(owners.keys() - given)
        self._connection.execute("DELETE FROM withheld WHERE id <> commit_id")
        self._connection.executemany(
            "INSERT INTO withheld VALUES (?, ?, ?)",
            (
                (batch, owners.pop(batch).commit, "\n".join(sorted(self._items(batch))))
                for batch in sorted(owners.keys() - given)
            ),
        )
        return owners

    def _items(self, batch: str) -> set[str]:
        """The nodes that a batch is about; their documents, where they have some."""
        items: dict[str, str] = {}
        for record, _ in self._read_batch(batch)[0]:
            file = record.body.get("metadata", {}).get("file")
            items.setdefault(record.subject, record.subject)
            if isinstance(file, str):
                items[record.subject] = file
        return set(items.values())

    def _staged_batches(self, committed: Mapping[str, BatchOwner]) -> dict[str, BatchOwner]:
        """The batches of sessions that began in this history; other sessions are parked."""
        owners: dict[str, BatchOwner] = {}
        self._connection.execute("DELETE FROM chains")
        here = self._reached_commits()
        for session, tip in self._now.chains:
            try:
                steps = commits.work_chain(self._repository.everything, tip)
            except CtxError:
                # `ctx stage recover` handles a damaged chain; it must not hide the rest.
                steps = []
            parked = not steps or not here.issuperset(steps[0].work.bases)
            self._connection.execute(
                "INSERT INTO chains VALUES (?, ?, ?)", (session, tip, int(parked))
            )
            for step in steps if not parked else ():
                heads = heads_text(step.work.heads or step.work.bases)
                for batch_id in step.work.payload:
                    if batch_id not in committed:
                        owners[batch_id] = BatchOwner(None, session, heads)
        return owners

    def _reached_commits(self) -> set[str]:
        """The commits in this history, like `commits.contain`: including unreadable and replaced
        ones."""
        reached: set[str] = set(self._now.heads)
        for row in self._connection.execute("SELECT id, parents, replaced FROM commits"):
            reached.update(" ".join(row).split())
        return reached

    def _exchange(self, wanted: Mapping[str, BatchOwner]) -> None:
        """Remove batches that are not wanted and add missing ones."""
        if _present_value(self._connection, "torn"):
            _delete_rows(self._connection)
        if self._put_and_take(wanted):
            # Two records have the same id. Which of them wins must not depend on the order of
            # updates, so the index is rebuilt as long as both exist.
            _delete_rows(self._connection)
            self._put_and_take(wanted)

    def _put_and_take(self, wanted: Mapping[str, BatchOwner]) -> bool:
        """Whether two records with the same id were found that were not known before."""
        rows = self._connection.execute(
            "SELECT id, commit_id, session, heads FROM batches"
        ).fetchall()
        known = {
            row[0]: BatchOwner(*row[1:]) for row in rows if not row[0].startswith("narrative ")
        }
        said_before = self._connection.execute("SELECT 1 FROM records WHERE stamp > 0 LIMIT 1")
        is_new = said_before.fetchone() is None
        came: list[Record] = []
        size, is_large, is_torn = 0, False, False
        writer = BatchWriter(self._connection) if is_new else None
        # Sorted, so that the result does not depend on the order of discovery.
        for done, batch_id in enumerate(sorted(wanted)):
            self._tick(done, len(wanted))
            if batch_id not in known:
                batch, unread = self._read_batch(batch_id)
                owner = wanted[batch_id]
                size += sum(len(body) for _, body in batch)
                if size > _KEPT_BYTES or len(came) > _KEPT_RECORDS:
                    if not is_new:
                        materialise(self._connection, came)
                    came, size, is_large = [], 0, is_new
                if writer and batch and writer.add(batch_id, owner, batch, " ".join(unread)):
                    came += [record for record, _ in batch]
                    continue
                new = (
                    insert_batch_records(self._connection, batch_id, owner, batch) if batch else []
                )
                if unread:
                    self._connection.execute(
                        "UPDATE batches SET unread = ? WHERE id = ?", (" ".join(unread), batch_id)
                    )
                is_torn = is_torn or _contradicts(self._connection, batch, new)
                came += new
            elif known[batch_id] != wanted[batch_id]:
                self._connection.execute(
                    "UPDATE batches SET commit_id = ?, session = ?, heads = ? WHERE id = ?",
                    (*wanted[batch_id], batch_id),
                )
        if writer:
            writer.flush()
        if is_torn and not is_new:
            return True
        note(self._connection, "torn", "yes" if is_torn else "")
        if is_new:
            materialise_all(self._connection, self._tick, () if is_large else came)
        for batch_id in known.keys() - wanted.keys():
            came += remove_batches(self._connection, [batch_id])
            if len(came) > _KEPT_RECORDS:
                materialise(self._connection, came)
                came = []
        if not is_new:
            materialise(self._connection, came)
        return False

    def _read_batch(self, batch_id: str) -> tuple[list[tuple[Record, str]], tuple[str, ...]]:
        """The records of a batch, and the ids of records that its author had not read.

        Other objects in a step's payload have no records.
        """
        from ctx.project import batches

        try:
            stored = self._repository.everything.read(ObjectId(batch_id))
            value = decode(stored)
            if isinstance(value, RecordBatch):
                if self._repository.limit:
                    self._repository.limit.count_records(len(value.records), len(stored.payload))
                return batches.decode_batch(value), value.unread
        except ObjectNotFound:
            self._missing.add(batch_id)
        except DAMAGE:
            # `ctx debug verify` reports it. The other batches must stay readable.
            self._damaged.add(batch_id)
        return [], ()


def heads_text(heads: Iterable[str]) -> str:
    """Heads as canonical text."""
    return " ".join(sorted(heads))


class BatchWriter:
    """Inserts the batches of an index without records, many with one statement."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ids: set[str] = set()
        self._batches: list[tuple[object, ...]] = []
        self._records: list[tuple[object, ...]] = []
        self._size = 0
        self._number = 0

    def add(
        self, batch_id: str, by: BatchOwner, said: Sequence[tuple[Record, str]], unread: str
    ) -> bool:
        """Add a batch; False if another batch may have one of its records. Then all others are in
        the tables, and this one has to be compared with them."""
        new = {record.id for record, _ in said}
        if len(self._ids) > _KEPT_RECORDS or not self._ids.isdisjoint(new):
            self.flush()
            return False
        self._ids |= new
        if not self._batches:
            self._number = self._last_number()
        self._number += 1
        self._batches.append((self._number, batch_id, *by, unread))
        self._records += (records.row_of(record, body, self._number) for record, body in said)
        self._size += sum(len(body) for _, body in said)
        if len(self._records) >= _WRITTEN_AT_ONCE or self._size > _KEPT_BYTES:
            self.flush()
        return True

    def _last_number(self) -> int:
        last: int | None = self._connection.execute("SELECT max(number) FROM batches").fetchone()[0]
        return last or 0

    def flush(self) -> None:
        self._connection.executemany(
            "INSERT INTO batches (number, id, commit_id, session, heads, unread)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            self._batches,
        )
        records.insert_rows(self._connection, self._records)
        self._batches.clear()
        self._records.clear()
        self._size = 0


def _contradicts(
    connection: Connection, batch: Sequence[tuple[Record, str]], new: Sequence[Record]
) -> bool:
    """Whether an existing record has the same id but different values."""
    if len(new) == len(batch):
        return False
    came = {record.id for record in new}
    others = (record for record, _ in batch if record.id not in came)
    return any(not records.has(connection, record) for record in others)


def _delete_rows(connection: Connection) -> None:
    """Delete everything except the history."""
    for table in ("edges", "outside", "tags", "nodes", "views", "repeated", "batches", "documents"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM records WHERE stamp > 0")


def _present_value(connection: Connection, name: str) -> str:
    row = connection.execute("SELECT value FROM present WHERE name = ?", (name,)).fetchone()
    return row[0] if row else ""


def note(connection: Connection, name: str, value: str) -> None:
    """Store a value about the index itself."""
    connection.execute("INSERT OR REPLACE INTO present VALUES (?, ?)", (name, value))


def insert_batch_records(
    connection: Connection, batch_id: str, by: BatchOwner, said: Sequence[tuple[Record, str]]
) -> list[Record]:
    """Insert the records of a batch, with their bodies as text; returns the new ones."""
    number = add_batch(connection, batch_id, by)
    new = records.insert_batch(connection, said, number)
    if len(new) < len(said):
        there = {record.id for record, _ in said} - {record.id for record in new}
        connection.executemany(
            "INSERT INTO repeated VALUES (?, ?)", [(record, number) for record in sorted(there)]
        )
    return new


def holds_exactly(connection: Connection, batch_id: str, said: Sequence[Record]) -> bool:
    """Whether a batch has exactly these records; an empty batch need not exist."""
    row = connection.execute("SELECT number FROM batches WHERE id = ?", (batch_id,)).fetchone()
    there = records.of_batch(connection, row[0]) if row else []
    by_id = attrgetter("id")
    return sorted(there, key=by_id) == sorted(said, key=by_id)


def add_batch(connection: Connection, batch_id: str, by: BatchOwner) -> int:
    row = connection.execute(
        "INSERT INTO batches (id, commit_id, session, heads) VALUES (?, ?, ?, ?) RETURNING number",
        (batch_id, *by),
    ).fetchone()
    return int(row[0])


def remove_batches(connection: Connection, batch_ids: Iterable[str]) -> list[Record]:
    """Remove batches; returns the records that no other batch holds, without their bodies.

    A record that is in several batches stays until the last of them is removed.
    """
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
                gone.append(record._replace(body={}))
            else:
                connection.execute("UPDATE records SET batch = ? WHERE id = ?", (other, record.id))
                connection.execute(
                    "DELETE FROM repeated WHERE record = ? AND batch = ?", (record.id, other)
                )
        connection.execute("DELETE FROM batches WHERE number = ?", row)
    return gone


def materialise(connection: Connection, touched: list[Record]) -> None:
    if touched:
        making.materialise(connection, touched)
