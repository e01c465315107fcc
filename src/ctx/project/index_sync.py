"""From whatever an index holds to what a project is at: an exchange of batches.

What no longer counts is taken out, what is missing is put in, and what these records speak of is
made anew. A commit, an abort, another branch and a merge are the same exchange with other sets.
"""

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import TYPE_CHECKING

from ctx import clock
from ctx.ids import ObjectId
from ctx.memory import records
from ctx.memory.records import Record
from ctx.project import index_batches, project_index_state
from ctx.project.index_batches import BatchOwner
from ctx.project.project_index_state import ProjectState

if TYPE_CHECKING:
    from ctx.objects.repository import Repository


class IndexSync:
    """From whatever an index holds to what a project is at."""

    def __init__(
        self,
        connection: Connection,
        repository: "Repository",
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
        if project_index_state.replaced_in(self._connection) != self._now.replaced:
            # Something was scrubbed. What was put in may be what is gone now.
            self._connection.execute("DELETE FROM commits")
            self._connection.execute("DELETE FROM snapshots")
            _empty(self._connection)
        self._follow_history()
        wanted = self._committed()
        wanted.update(self._staged(wanted))
        self._exchange(wanted)
        project = self._repository.project
        damaged = [project_index_state.damage_line(project, each) for each in sorted(self._damaged)]
        note(self._connection, "state", self._now.as_text)
        note(self._connection, "replaced", self._now.replaced)
        note(self._connection, "missing", "\n".join(sorted(self._missing)))
        note(self._connection, "damaged", "\n".join(damaged))

    def _follow_history(self) -> None:
        """Let `commits` be those that the heads reach."""
        from ctx.objects import commits
        from ctx.objects.model import Commit
        from ctx.objects.store import read_typed

        known = parents_of(self._connection)
        walked = CommitHistory(self._repository, known)
        reached = walked.walk(self._now.heads)
        for gone in known.keys() - reached:
            self._connection.execute("DELETE FROM commits WHERE id = ?", (gone,))
            self._connection.execute("DELETE FROM snapshots WHERE commit_id = ?", (gone,))
        came = sorted(reached - known.keys())
        own = self._repository.own() if came else set()
        amended = commits.Amended(self._repository.objects)
        for new in came:
            commit = read_typed(self._repository.objects, ObjectId(new), Commit)
            self._connection.execute(
                "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    new,
                    " ".join(commit.parents),
                    commit.timestamp_unix,
                    " ".join(amended.by(commit)),
                    commit.author,
                    commit.session_id,
                    commit.message,
                    " ".join(commit.record_batches),
                    int(self._repository.is_as_made_here(ObjectId(new), commit, own)),
                ),
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
                [(ref.path, new, ref.blob_id) for ref in commit.narrative_refs],
            )
        self._missing.update(walked.missing)
        self._damaged.update(walked.damaged)

    def _committed(self) -> dict[str, BatchOwner]:
        """The batches of history. One that several commits name came with the oldest."""
        rows = self._connection.execute(
            "SELECT id, batches FROM commits WHERE batches <> '' ORDER BY timestamp_unix DESC, id"
        )
        return {
            batch: BatchOwner(commit, None) for commit, named in rows for batch in named.split()
        }

    def _staged(self, committed: Mapping[str, BatchOwner]) -> dict[str, BatchOwner]:
        """The batches of sessions that began in this history; the others are parked."""
        from ctx.errors import CtxError
        from ctx.objects import work

        found: dict[str, BatchOwner] = {}
        self._connection.execute("DELETE FROM chains")
        here = self._reached()
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
                heads = heads_text(step.work.heads or step.work.bases)
                for each in step.work.payload:
                    if each not in committed:
                        found[each] = BatchOwner(None, session, heads)
        return found

    def _reached(self) -> set[str]:
        """The commits that are here, as `commits.contain` has it: also where they cannot be read,
        or others took their place."""
        found: set[str] = set(self._now.heads)
        for row in self._connection.execute("SELECT id, parents, replaced FROM commits"):
            found.update(" ".join(row).split())
        return found

    def _exchange(self, wanted: Mapping[str, BatchOwner]) -> None:
        """Take out what is not wanted and put in what is missing."""
        if _noted(self._connection, "torn"):
            _empty(self._connection)
        if self._put_and_take(wanted):
            # Somebody gave two records one id. Which of them counts must not depend on the way
            # that was gone, so it is gone from the beginning, as long as both are there.
            _empty(self._connection)
            self._put_and_take(wanted)

    def _put_and_take(self, wanted: Mapping[str, BatchOwner]) -> bool:
        """Whether there are two records of one id, which was not known."""
        rows = self._connection.execute(
            "SELECT id, commit_id, session, heads FROM batches"
        ).fetchall()
        known = {
            row[0]: BatchOwner(*row[1:]) for row in rows if not row[0].startswith("narrative ")
        }
        said_before = self._connection.execute("SELECT 1 FROM records WHERE stamp > 0 LIMIT 1")
        is_new = said_before.fetchone() is None
        came: list[Record] = []
        is_torn = False
        # The same order for the same batches, whatever order they were found in.
        for done, batch_id in enumerate(sorted(wanted)):
            self._tick(done, len(wanted))
            if batch_id not in known:
                said, unread = self._read(batch_id)
                new = (
                    index_batches.put_in(self._connection, batch_id, wanted[batch_id], said)
                    if said
                    else []
                )
                if unread:
                    self._connection.execute(
                        "UPDATE batches SET unread = ? WHERE id = ?", (" ".join(unread), batch_id)
                    )
                is_torn = is_torn or _contradicts(self._connection, said, new)
                came += new
            elif known[batch_id] != wanted[batch_id]:
                self._connection.execute(
                    "UPDATE batches SET commit_id = ?, session = ?, heads = ? WHERE id = ?",
                    (*wanted[batch_id], batch_id),
                )
        if is_torn and not is_new:
            return True
        note(self._connection, "torn", "yes" if is_torn else "")
        went = index_batches.take_out(
            self._connection, [each for each in known if each not in wanted]
        )
        if is_new and not went:
            from ctx.memory.materialise import materialise_all

            materialise_all(self._connection, self._tick, came)
        else:
            index_batches.materialise(self._connection, [*came, *went])
        return False

    def _read(self, batch_id: str) -> tuple[list[tuple[Record, str]], tuple[str, ...]]:
        """What a batch says, and what its writer had not read.

        A step's payload has other objects too: they say nothing here.
        """
        from ctx.errors import ObjectNotFound
        from ctx.objects.model import RecordBatch
        from ctx.objects.store import DAMAGE, decode
        from ctx.project import batches

        try:
            found = self._repository.everything.read(ObjectId(batch_id))
            value = decode(found)
            if isinstance(value, RecordBatch):
                if self._repository.limit:
                    self._repository.limit.count_records(len(value.records), len(found.payload))
                return batches.decode_batch(value), value.unread
        except ObjectNotFound:
            self._missing.add(batch_id)
        except DAMAGE:
            # `ctx debug verify` names it. What else is there must not be out of reach for it.
            self._damaged.add(batch_id)
        return [], ()


def heads_text(heads: Iterable[str]) -> str:
    """Heads as text: the same for the same heads."""
    return " ".join(sorted(heads))


def parents_of(connection: Connection) -> dict[str, list[str]]:
    return {row[0]: row[1].split() for row in connection.execute("SELECT id, parents FROM commits")}


class CommitHistory:
    """The commits that heads reach. Those that an index knows are not read again."""

    def __init__(self, repository: "Repository", known: Mapping[str, list[str]]) -> None:
        self._objects = repository.objects
        self._known = known
        self.missing: list[str] = []
        self.damaged: list[str] = []

    def walk(self, heads: Iterable[str]) -> set[str]:
        from ctx.errors import ObjectNotFound
        from ctx.objects.model import Commit
        from ctx.objects.store import DAMAGE, read_typed

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
                except DAMAGE:
                    self.damaged.append(each)
                    continue
            found.add(each)
            waiting += [parent for parent in parents if parent not in reached]
            reached.update(parents)
        return found


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


def _noted(connection: Connection, name: str) -> str:
    row = connection.execute("SELECT value FROM present WHERE name = ?", (name,)).fetchone()
    return row[0] if row else ""


def note(connection: Connection, name: str, value: str) -> None:
    """Write down something about the index itself."""
    connection.execute("INSERT OR REPLACE INTO present VALUES (?, ?)", (name, value))
