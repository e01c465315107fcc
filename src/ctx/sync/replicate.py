"""Exchanges batches between the store and a target.

    receive   apply every batch that the store has not read; forget those that are gone
    rewrite   replace batches that contain a record in a version that a scrub has replaced
    send      write every record that is in no batch of the target
    confirm   tell the other replicas which scrubs this one has applied
    merge     turn many small batches of this replica into one

Each step can be interrupted and repeated. A batch is in the target before the store says so: if the
process is killed in between, the next run reads this batch like any other one, and finds that it
has all of its records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, interrupts
from ctx.errors import SyncFailure
from ctx.ids import Ulid
from ctx.memory import event_log, record_versions, replicas
from ctx.memory.record_versions import VersionedRecord
from ctx.memory.records import Record
from ctx.memory.replicas import Replica
from ctx.sqlite.connection import transaction
from ctx.sync import batch_files, outgoing, sync_batch
from ctx.sync.batch_files import BatchFile, Keys, OtherKey, UnreadableFile
from ctx.sync.batch_target import BatchTarget, TargetListing
from ctx.sync.sync_batch import DecodedBatch, SyncBatch

_MOST_RECORDS = 2_000
"""Records of one batch."""
_MOST_TEXT = 4 * 1024 * 1024
"""About how many characters of text the records of one batch may have."""
_MOST_BATCHES = 16
"""Batches that are written at once."""
_READ_AT_ONCE = 100
_SMALL = 200
"""A batch with fewer records is merged with others."""
_MOST_SMALL = 64


OnApplied = Callable[[Connection, Sequence[Record]], None]
"""Called in the transaction that adds records, with those that were scrubbed elsewhere."""


class UnreadBatch(NamedTuple):
    """A file in a target that was left alone, and why."""

    file: str
    why: str


class SyncCounts(NamedTuple):
    received_batches: int = 0
    received_records: int = 0
    """Records that the store did not have."""
    scrubbed_records: int = 0
    """Records that the store had, and that were scrubbed elsewhere."""
    sent_batches: int = 0
    sent_records: int = 0
    rewritten_batches: int = 0
    """Batches from which something that was scrubbed is removed."""
    unread: tuple[UnreadBatch, ...] = ()
    locked: int = 0
    """How many of them need a key that this machine does not have."""


class Replication:
    """One exchange with one target."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        target: BatchTarget,
        keys: Keys,
        replica: Replica,
        on_applied: OnApplied = lambda _connection, _scrubbed: None,
        tick: clock.Tick = clock.no_tick,
        add_command: str = "",
    ) -> None:
        self._connection = connection
        self._name = name
        self._target = target
        self._keys = keys
        self._replica = replica
        self._on_applied = on_applied
        self._scrubbed = 0
        self._scrub = self._last_scrub()
        """The last scrub here before anything was read."""
        self._tick = tick
        self._add_command = add_command
        """The command that adds the target, for messages."""
        self._unread: list[UnreadBatch] = []
        self._locked = 0

    def _last_scrub(self) -> int:
        return event_log.last_id(self._connection, event_log.SCRUBBED)

    def run(self) -> SyncCounts:
        received = self._receive(self._listing())
        rewritten = self._rewrite()
        sent = self._send()
        # Something may have been scrubbed while it was sent.
        rewritten += self._rewrite()
        self._confirm()
        self._merge()
        return received._replace(
            scrubbed_records=self._scrubbed,
            sent_batches=sent.sent_batches,
            sent_records=sent.sent_records,
            rewritten_batches=rewritten,
            unread=tuple(self._unread),
            locked=self._locked,
        )

    def receive(self) -> SyncCounts:
        """Only apply what the target has."""
        counts = self._receive(self._listing())
        return counts._replace(scrubbed_records=self._scrubbed, unread=tuple(self._unread))

    def add_missing(self) -> SyncCounts:
        """Only write what the target lacks, after everything in it was received."""
        return self._send()._replace(rewritten_batches=self._rewrite())

    def preview(self) -> SyncCounts:
        """What `run` would do. Nothing is changed."""
        listing = self._listing()
        known = replicas.known_batches(self._connection, self._replica.id)
        coming = [batch for _, batch in self._unseal(sorted(listing.batches - known))]
        self._check_key(bool(coming), known, listing)
        new = {each.record.id for batch in coming for each in batch.records}
        present = {
            each.record.id for each in record_versions.current_records(self._connection, list(new))
        }
        contained = {id for batch in coming for id in batch.contents.records}
        unsent = {id for _, ids in self.unsent() for id in ids} - contained
        outdated = replicas.outdated_batches(self._connection, self._replica.id)
        return SyncCounts(
            len(coming),
            len(new - present),
            0,
            -(-len(unsent) // _MOST_RECORDS),
            len(unsent),
            len(outdated),
            tuple(self._unread),
            self._locked,
        )

    def announce(self, *, is_empty: bool) -> None:
        """Tell the others that this replica exists. An empty target is to get everything again."""
        known = replicas.batches_of_replica(self._connection, self._replica.id, self._replica.id)
        if is_empty:
            with transaction(self._connection):
                replicas.forget_batches(self._connection, self._replica.id, known)
        elif len(self._keys) > 1:
            self._write_with_first_key(known)
        self._confirm()

    def _write_with_first_key(self, names: Iterable[str]) -> None:
        """Write batches of another key again, for machines that have only the first one."""
        old: list[DecodedBatch] = []
        for name in names:
            with suppress(UnreadableFile):
                data = self._target.read(name)
                if batch_files.salt_of(data) != next(iter(self._keys)):
                    old.append(batch_files.unseal(name, data, self._keys))
        self._publish([each.batch for each in old], [each.contents.name for each in old])

    def leave(self) -> None:
        """Tell the others that this replica sends nothing more."""
        self._publish([sync_batch.new_batch(self._replica._replace(has_left=True))])

    def _listing(self) -> TargetListing:
        listing = self._target.listing()
        known = replicas.known_batches(self._connection, self._replica.id)
        if known and not listing.batches:
            raise SyncFailure(
                f"The target {self._name} is empty, and it had {len(known):,} batches.",
                hint=f"Is the disk mounted? To send everything again: {self._add_command}",
            )
        self._unread += [UnreadBatch(name, "it is not a batch of ctx") for name in listing.others]
        return listing

    # Receive

    def _receive(self, listing: TargetListing) -> SyncCounts:
        known = replicas.known_batches(self._connection, self._replica.id)
        names = sorted(listing.batches - known)
        batches = records = 0
        came: list[str] = []
        again: list[str] = []
        for number, batch in self._unseal(names):
            interrupts.defer()
            new = self._apply(batch)
            (again if batch.replica.id == self._replica.id else came).extend(new)
            records += len(new)
            batches += 1
            self._tick(number, len(names))
        if came:
            with transaction(self._connection):
                # Now it is known which records of this replica the target has.
                replicas.find_unread(self._connection, came, again)
        self._check_key(bool(batches), known, listing)
        if gone := known - listing.batches:
            with transaction(self._connection):
                replicas.forget_batches(self._connection, self._replica.id, gone)
        return SyncCounts(batches, records)

    def _unseal(self, names: Iterable[str]) -> Iterator[tuple[int, DecodedBatch]]:
        """The readable ones of some batches, each with its number from 1."""
        shared = self._target.projects()
        for number, name in enumerate(names, 1):
            try:
                batch = batch_files.unseal(name, self._target.read(name), self._keys)
                yield number, shared.admitted(batch) if shared and batch.records else batch
            except UnreadableFile as error:
                self._locked += isinstance(error, OtherKey)
                self._unread.append(UnreadBatch(name, error.message))

    def _check_key(self, has_received: bool, known: set[str], listing: TargetListing) -> None:
        """Refuse to write to a target whose batches are all encrypted with another key."""
        if not self._locked or has_received or known & listing.batches:
            return
        what = f"The target {self._name} is encrypted with another passphrase or key."
        if known:
            what = f"The target {self._name} was emptied, and begun again with another key."
        raise SyncFailure(
            what,
            hint=f"Nothing is lost: {self._add_command} with the passphrase of your other machines,"
            f" then `ctx sync {self._name}` sends everything again.",
        )

    def _apply(self, batch: DecodedBatch) -> list[Ulid]:
        """Add the records of a batch; those that are new."""
        with transaction(self._connection):
            applied = record_versions.apply_records(self._connection, batch.records)
            replicas.add_batch(self._connection, self._replica.id, batch.contents)
            confirmed = batch.batch.confirmed
            replicas.note_replica(self._connection, self._replica.id, batch.replica, confirmed)
            if batch.replica.id != self._replica.id:
                replicas.note_foreign_changes(self._connection, applied.new)
            pairs = [(id, each) for id, unread in batch.batch.unread.items() for each in unread]
            replicas.note_unread(self._connection, pairs)
            self._on_applied(self._connection, applied.scrubbed)
        self._scrubbed += len(applied.scrubbed)
        return [record.id for record in applied.new]

    # Rewrite

    def _rewrite(self) -> int:
        outdated = replicas.outdated_batches(self._connection, self._replica.id)
        shared = self._target.projects() if outdated else None
        for _, old in self._unseal(outdated):
            if shared is not None and old.batch.project not in {"", *shared.writable}:
                # Another member has to do it.
                continue
            current = record_versions.current_records(self._connection, list(old.contents.records))
            newer: dict[str, VersionedRecord] = {
                each.record.id: each
                for each in current
                if each.version.version != old.contents.records[each.record.id]
            }
            self._publish(
                [sync_batch.replaced(old.batch, self._replica, newer)], [old.contents.name]
            )
        if outdated:
            self._target.purge()
        return len(outdated)

    # Send

    def _send(self) -> SyncCounts:
        unsent = self.unsent()
        total = sum(len(ids) for _, ids in unsent)
        batches = records = 0
        waiting: list[SyncBatch] = []
        for project, part in (
            (project, part) for project, ids in unsent for part in parts(self._connection, ids)
        ):
            waiting.append(self._new_batch(part, project))
            batches += 1
            records += len(part)
            if len(waiting) == _MOST_BATCHES:
                self._publish(waiting)
                waiting = []
            self._tick(records, total)
        self._publish(waiting)
        return SyncCounts(sent_batches=batches, sent_records=records)

    def unsent(self) -> list[tuple[str, list[str]]]:
        """The records to send, by the project whose members may read them."""
        unsent = replicas.unsent_ids(self._connection, self._replica.id)
        shared = self._target.projects()
        return (
            [("", unsent)]
            if shared is None
            else outgoing.by_project(self._connection, unsent, shared)
        )

    def _confirm(self) -> None:
        """Confirmations have a batch of their own: one with records may be rewritten by others."""
        applied = record_versions.versions(self._connection)
        before = replicas.confirmed_versions(self._connection, self._replica.id, self._replica.id)
        own = replicas.batches_of_replica(self._connection, self._replica.id, self._replica.id)
        if applied - before or 0 not in own.values():
            self._publish([self._confirmation()])

    def _merge(self) -> None:
        if self._target.projects() is not None:
            # A row costs less than a file, and batches of different projects stay apart.
            return
        own = replicas.batches_of_replica(self._connection, self._replica.id, self._replica.id)
        small = [name for name, records in own.items() if records < _SMALL]
        if len(small) <= _MOST_SMALL:
            return
        ids = replicas.records_in(self._connection, self._replica.id, small)
        larger = list(parts(self._connection, ids))
        is_complete = sum(map(len, larger)) == len(ids)
        if is_complete and 2 * len(larger) < len(small):
            merged = [self._new_batch(part) for part in larger]
            self._publish([*merged, self._confirmation()], small)

    def _new_batch(self, part: Sequence[VersionedRecord], project: str = "") -> SyncBatch:
        unread = replicas.unread_of(self._connection, (each.record.id for each in part))
        return sync_batch.new_batch(self._replica, part, project=project, unread=unread)

    def _confirmation(self) -> SyncBatch:
        applied = sorted(record_versions.versions(self._connection))
        return sync_batch.new_batch(self._replica, (), applied)

    def _publish(self, batches: Sequence[SyncBatch], removed: Sequence[str] = ()) -> None:
        """Write batches to the target, then note in the store that they are there."""
        if not batches:
            return
        interrupts.defer()
        sealed: list[BatchFile] = [batch_files.seal(batch, self._keys) for batch in batches]
        gone = set(removed) - {file.name for file in sealed}
        self._target.publish(sealed, gone)
        with transaction(self._connection):
            known = replicas.known_batches(self._connection, self._replica.id)
            for file, batch in zip(sealed, batches, strict=True):
                if file.name not in known:
                    contents = sync_batch.contents_of(file.name, batch)
                    replicas.add_batch(self._connection, self._replica.id, contents)
                if self._last_scrub() != self._scrub:
                    sent = sync_batch.decode(file.name, sync_batch.encode(batch)).records
                    record_versions.note_scrubbed_meanwhile(self._connection, sent)
                replicas.note_replica(
                    self._connection,
                    self._replica.id,
                    self._replica._replace(sent_at=clock.iso(batch.at)),
                    batch.confirmed,
                )
            replicas.forget_batches(self._connection, self._replica.id, gone)


def parts(connection: Connection, ids: Iterable[str]) -> Iterator[list[VersionedRecord]]:
    """Records by their ids, as much as one batch may contain."""
    rest = iter(ids)
    part: list[VersionedRecord] = []
    size = 0
    while some := list(islice(rest, _READ_AT_ONCE)):
        for each in record_versions.current_records(connection, some):
            part.append(each)
            size += sum(len(text) for text in each.record.body.values() if type(text) is str)
            if len(part) == _MOST_RECORDS or size > _MOST_TEXT:
                yield part
                part, size = [], 0
    if part:
        yield part
