"""Copies the records of one store to another: from a file to a file or a team's server, and back.

The records are read in the order of their ids, in parts. For each part, the destination says which
of its records it has, and gets the others in one transaction. So an interrupted copy needs no note
of where it was: it begins again, and finds what is already there.

Afterwards both sides are compared: for each kind, the number of records and a checksum.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple, Protocol

from ctx import clock, interrupts
from ctx.memory import record_checksums, record_projects, record_versions, replicas
from ctx.memory.record_checksums import Checksums, HeldRecord, RecordChecksum
from ctx.memory.record_versions import ORIGINAL, VersionedRecord
from ctx.memory.records import Record
from ctx.memory.replicas import Replica
from ctx.sqlite.connection import transaction
from ctx.sync import batch_files, outgoing, sync_batch, team_connection, team_records
from ctx.sync.team_target import TeamTarget

PAGE = 500
"""Records that are read at once."""
MOST_RECORDS = 2_000
MOST_TEXT = 4 * 1024 * 1024
"""About how many records and characters of text one transaction adds."""

OnApplied = Callable[[Connection, Sequence[Record]], None]
"""Called in the transaction that adds records to a file, with those that a scrub has changed."""


class RecordSource(Protocol):
    invalid: int
    """Records that were left out while reading, because they are not valid."""

    def count(self) -> int:
        """About how many records there are."""

    def pages(self) -> Iterator[list[VersionedRecord]]:
        """The records, in the order of their ids."""


class PartPlan(NamedTuple):
    """What becomes of some records."""

    by_project: list[tuple[str, list[VersionedRecord]]]
    """The records to add, by the project of the server that they are for."""
    left_out: Mapping[str, str]
    """The records that the user may not add, by id, and the project that they belong to: empty if
    another member has them."""


class RecordDestination(Protocol):
    def held(self, ids: Sequence[str]) -> Mapping[str, HeldRecord]:
        """Those records that it has."""

    def records(self, ids: Sequence[str]) -> Sequence[VersionedRecord]:
        """Records that it has."""

    def plan(self, part: Sequence[VersionedRecord]) -> PartPlan:
        """Decide what becomes of records that it lacks."""

    def add(self, plan: PartPlan) -> None:
        """Add records in one transaction."""

    def add_checksums(self, ids: Sequence[str], found: Checksums) -> None:
        """Add the checksums of some records."""


class KindComparison(NamedTuple):
    """The records of one kind, in the source and in the destination."""

    kind: str
    source: RecordChecksum
    destination: RecordChecksum


class LeftOutRecords(NamedTuple):
    project: str
    """Empty if another member of the server has them."""
    records: int


class CopyCounts(NamedTuple):
    records: int
    """Records of the source that can be copied."""
    copied: int
    """Records that the destination did not have, or had before a scrub."""
    kept: int
    """Records that the destination keeps because more was scrubbed in them there."""
    invalid: int
    """Records of a server that are not valid, and are left out."""
    left_out: tuple[LeftOutRecords, ...]
    """Records that the user may not write to the server."""
    kinds: tuple[KindComparison, ...]
    """What both sides have now, without what was left out; empty if nothing was copied yet."""


def copy(
    source: RecordSource, destination: RecordDestination, tick: clock.Tick = clock.no_tick
) -> CopyCounts:
    """Add what the destination lacks, then compare both sides."""
    counts = _walk(source, destination, tick, dry_run=False)
    total = source.count()
    source.invalid = 0
    here, there = Checksums(), Checksums()
    kept = done = 0
    for part in _parts(source):
        comparison = _compare(destination, part)
        refused = destination.plan(comparison.wanted).left_out if comparison.wanted else {}
        expected = [
            each
            for each in part
            if each.record.id not in refused and each.record.id not in comparison.kept
        ]
        kept += len(comparison.kept)
        here.add_records(expected)
        destination.add_checksums([each.record.id for each in expected], there)
        done += len(part)
        tick(total + done, 2 * total)
    sides = here.by_kind(), there.by_kind()
    nothing = RecordChecksum(0, "")
    kinds = tuple(
        KindComparison(kind, *(side.get(kind, nothing) for side in sides))
        for kind in sorted({*sides[0], *sides[1]})
    )
    return counts._replace(kept=kept, kinds=kinds)


def preview(
    source: RecordSource, destination: RecordDestination, tick: clock.Tick = clock.no_tick
) -> CopyCounts:
    """What `copy` would do. Nothing is changed."""
    return _walk(source, destination, tick, dry_run=True)


def _walk(
    source: RecordSource, destination: RecordDestination, tick: clock.Tick, *, dry_run: bool
) -> CopyCounts:
    total = source.count()
    left_out: dict[str, int] = {}
    done = copied = kept = 0
    for part in _parts(source):
        comparison = _compare(destination, part)
        kept += len(comparison.kept)
        if comparison.wanted:
            plan = destination.plan(comparison.wanted)
            for project in plan.left_out.values():
                left_out[project] = left_out.get(project, 0) + 1
            if plan.by_project and not dry_run:
                interrupts.defer()
                destination.add(plan)
                interrupts.next_part()
            copied += len(comparison.wanted) - len(plan.left_out)
        done += len(part)
        tick(done, total if dry_run else 2 * total)
    refused = tuple(LeftOutRecords(*each) for each in sorted(left_out.items()))
    return CopyCounts(done, copied, kept, source.invalid, refused, ())


def _parts(source: RecordSource) -> Iterator[list[VersionedRecord]]:
    part: list[VersionedRecord] = []
    size = 0
    for page in source.pages():
        part += page
        size += sum(
            len(text) for each in page for text in each.record.body.values() if type(text) is str
        )
        if len(part) >= MOST_RECORDS or size > MOST_TEXT:
            yield part
            part, size = [], 0
    if part:
        yield part


class _Comparison(NamedTuple):
    wanted: list[VersionedRecord]
    kept: set[str]


def _compare(destination: RecordDestination, part: Sequence[VersionedRecord]) -> _Comparison:
    """Which records the destination lacks, and which it has with more scrubbed."""
    held = destination.held([each.record.id for each in part])
    wanted: list[VersionedRecord] = []
    kept: set[str] = set()
    different: dict[str, Record] = {}
    for each in part:
        ours, theirs = each.version, held.get(each.record.id)
        if theirs is None or theirs.version.version in {*ours.replaces, ORIGINAL} - {ours.version}:
            wanted.append(each)
        elif theirs.version.version != ours.version:
            kept.add(each.record.id)
            if ours.version not in {*theirs.version.replaces, ORIGINAL}:
                # Two scrubs that do not know of each other are joined.
                wanted.append(each)
        elif ours.version == ORIGINAL and theirs.hash != record_checksums.hash_of(each):
            different[each.record.id] = each.record
    for found in destination.records([*different]) if different else ():
        one, other = different[found.record.id], found.record
        if record_versions.differs(one, other):
            wanted.append(record_versions.joined_unversioned(one, other))
    return _Comparison(wanted, kept)


# Files


class FileSource:
    """A store in a file. The caller holds a snapshot of it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.invalid = 0

    def count(self) -> int:
        return replicas.shared_count(self._connection)

    def pages(self) -> Iterator[list[VersionedRecord]]:
        after = ""
        while page := replicas.shared_records(self._connection, after, PAGE):
            yield page
            after = page[-1].record.id


class FileDestination:
    def __init__(self, connection: Connection, on_applied: OnApplied, *, is_foreign: bool) -> None:
        self._connection = connection
        self._on_applied = on_applied
        self._is_foreign = is_foreign

    def held(self, ids: Sequence[str]) -> Mapping[str, HeldRecord]:
        return {
            each.record.id: HeldRecord(each.version, record_checksums.hash_of(each))
            for each in self.records(ids)
        }

    def records(self, ids: Sequence[str]) -> Sequence[VersionedRecord]:
        return record_versions.current_records(self._connection, ids)

    def plan(self, part: Sequence[VersionedRecord]) -> PartPlan:
        return PartPlan([("", [*part])], {})

    def add(self, plan: PartPlan) -> None:
        with transaction(self._connection):
            for _, part in plan.by_project:
                applied = record_versions.apply_records(self._connection, part)
                if self._is_foreign:
                    replicas.note_foreign_changes(self._connection, applied.new)
                self._on_applied(self._connection, applied.scrubbed)

    def add_checksums(self, ids: Sequence[str], found: Checksums) -> None:
        found.add_records(self.records(ids))


# Servers


class TeamSource:
    """The records of a server that the user may read."""

    def __init__(self, target: TeamTarget) -> None:
        self._connection = target.connection()
        self.invalid = 0
        with team_connection.explain_errors():
            team_records.begin_snapshot(self._connection)

    def count(self) -> int:
        with team_connection.explain_errors():
            return team_records.count(self._connection)

    def pages(self) -> Iterator[list[VersionedRecord]]:
        after = ""
        while True:
            with team_connection.explain_errors():
                page = team_records.page(self._connection, after, PAGE)
            if not page:
                return
            valid = list(sync_batch.accepted(page))
            self.invalid += len(page) - len(valid)
            yield valid
            after = page[-1].record.id


class TeamDestination:
    """A server, to which the records of a file are sent as batches, like those of a machine that
    syncs once and leaves."""

    def __init__(self, target: TeamTarget, source: Connection, replica: Replica) -> None:
        self._target = target
        self._shared = target.projects()
        self._source = source
        self._replica = replica._replace(has_left=True)

    def held(self, ids: Sequence[str]) -> Mapping[str, HeldRecord]:
        with team_connection.explain_errors():
            return team_records.held(self._target.connection(), ids)

    def records(self, ids: Sequence[str]) -> Sequence[VersionedRecord]:
        with team_connection.explain_errors():
            return team_records.records_with_ids(self._target.connection(), ids)

    def plan(self, part: Sequence[VersionedRecord]) -> PartPlan:
        ids = [each.record.id for each in part]
        with team_connection.explain_errors():
            hidden = team_records.hidden(self._target.connection(), ids)
        going = outgoing.by_project(
            self._source, [id for id in ids if id not in hidden], self._shared
        )
        sent = {id for _, some in going for id in some}
        left_out: dict[str, str] = {
            each.record.id: self._project_of(each.record, hidden)
            for each in part
            if each.record.id not in sent
        }
        joined = {each.record.id: each for each in part}
        by_project = [
            (
                project,
                [
                    joined.get(each.record.id, each)
                    for each in record_versions.current_records(self._source, some)
                ],
            )
            for project, some in going
        ]
        return PartPlan(by_project, left_out)

    def _project_of(self, record: Record, hidden: set[str]) -> str:
        """The project in which the user may not write; empty if another member has the record."""
        if record.id in hidden:
            return ""
        projects = record_projects.projects_of(self._source, record.subject)
        return ", ".join(sorted(projects))

    def add(self, plan: PartPlan) -> None:
        self._target.publish(
            [
                batch_files.seal(sync_batch.new_batch(self._replica, part, project=project), {})
                for project, part in plan.by_project
            ]
        )

    def add_checksums(self, ids: Sequence[str], found: Checksums) -> None:
        with team_connection.explain_errors():
            team_records.add_checksums(self._target.connection(), ids, found)
