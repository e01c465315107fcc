"""Copy a store to another one: a file, or a team's PostgreSQL server."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, disk, ids, interrupts
from ctx.context import contexts
from ctx.errors import DatabaseFailure, PathRefused, SyncFailure, UsageError
from ctx.exchange import integrity, scrub_store
from ctx.layout import UserStore
from ctx.memory import record_versions, records, replay, replicas, user_store
from ctx.memory.records import Record
from ctx.memory.replicas import Replica
from ctx.operations import sync_scrubs
from ctx.operations.store import require_plain_file
from ctx.sqlite import truth
from ctx.sqlite.connection import folder_of, path_text, snapshot, transaction
from ctx.sync import replicate, target_settings, team_connection
from ctx.sync.git_target import shown
from ctx.sync.replicate import OnApplied, Replication, SyncCounts
from ctx.sync.team_target import TeamTarget

_WAIT_S = 30.0


class LeftOutRecords(NamedTuple):
    project: str
    """Empty if another member of the server has them."""
    records: int


class StoreCopyResult(NamedTuple):
    """The answer of `ctx store copy`."""

    source: str
    destination: str
    dry_run: bool
    copied: int
    """Records that the destination did not have."""
    scrubs: int
    """Records of a file, or batches of a server, that contained what was scrubbed in the source."""
    left_out: tuple[LeftOutRecords, ...]
    """Records that the user may not write to the server."""


class CopyPlaces(NamedTuple):
    """The path of a file or the URL of a server, for both sides."""

    source: str
    destination: str


def copy(
    store: UserStore,
    places: CopyPlaces,
    *,
    dry_run: bool = False,
    tick: clock.Tick = clock.no_tick,
) -> StoreCopyResult:
    """Add the records of one store to another, as a sync does."""
    for place in places:
        if "://" in place and not team_connection.is_team(place):
            raise UsageError(
                f"{place.partition('://')[0]}:// is not a PostgreSQL server.",
                hint="Give the path of a file, or a URL with postgresql://.",
            )
    names = shown(places.source), shown(places.destination)
    result = StoreCopyResult(*names, dry_run, 0, 0, ())
    if not team_connection.is_team(places.source):
        _require_store(places.source)
        with (
            user_store.reading(places.source) as source,
            snapshot(source),
        ):
            if team_connection.is_team(places.destination):
                return _to_server(source, places.destination, result, tick)
            return _to_file(store, source, places, result, tick)
    if team_connection.is_team(places.destination):
        raise UsageError(
            "Both stores are on a server.",
            hint="Copy to a file first, and from this file to the other server.",
        )
    return _from_server(store, places, result, tick)


def _to_server(
    source: Connection, url: str, result: StoreCopyResult, tick: clock.Tick
) -> StoreCopyResult:
    """Sync a private copy with the server, as a machine that leaves."""
    with closing(TeamTarget(url)) as target, integrity.private_copy(source) as connection:
        replica = _replica(url)._replace(id=ids.new_ulid())
        replication = Replication(connection, result.destination, target, {}, replica, tick=tick)
        replication.receive()
        unsent = replication.unsent()
        going = {record_id for _, part in unsent for record_id in part}
        left_out = [
            record
            for record in records.records_with_ids(
                connection, replicas.unsent_ids(connection, replica.id)
            )
            if record.id not in going
        ]
        sent = SyncCounts() if result.dry_run else replication.add_missing()
        by_project = Counter(
            ", ".join(sorted(replay.projects_of(connection, record.subject))) for record in left_out
        )
        refused = tuple(LeftOutRecords(*each) for each in sorted(by_project.items()))
        return result._replace(copied=len(going), scrubs=sent.rewritten_batches, left_out=refused)


def _from_server(
    store: UserStore, places: CopyPlaces, result: StoreCopyResult, tick: clock.Tick
) -> StoreCopyResult:
    # The same id each time, so that an interrupted copy continues.
    replica = _replica(places.source)
    with (
        closing(TeamTarget(places.source)) as target,
        _file(store, places.destination, dry_run=result.dry_run) as (connection, on_applied),
    ):
        replication = Replication(connection, result.source, target, {}, replica, on_applied, tick)
        if result.dry_run:
            return result._replace(copied=replication.preview().received_records)
        counts = replication.receive()
        with transaction(connection):
            replicas.forget_target(connection, replica.id)
        return result._replace(copied=counts.received_records, scrubs=counts.scrubbed_records)


def _replica(url: str) -> Replica:
    return Replica(ids.derived_ulid(0, url), os.uname().nodename, "", True)


def _to_file(
    store: UserStore,
    source: Connection,
    places: CopyPlaces,
    result: StoreCopyResult,
    tick: clock.Tick,
) -> StoreCopyResult:
    path = places.destination
    if os.path.exists(path) and os.path.samefile(path, places.source):
        raise UsageError("Both stores are the same file.")
    copied = scrubs = done = 0
    with _file(store, path, dry_run=result.dry_run) as (connection, on_applied):
        every = replicas.shared_ids(source)
        if result.dry_run:
            return result._replace(copied=len(set(every) - records.ids(connection)))
        for part in replicate.parts(source, every):
            interrupts.defer()
            with transaction(connection):
                applied = record_versions.apply_records(connection, part)
                on_applied(connection, applied.scrubbed)
            copied += len(applied.new)
            scrubs += len(applied.scrubbed)
            done += len(part)
            tick(done, len(every))
            interrupts.next_part()
    return result._replace(copied=copied, scrubs=scrubs)


def _require_store(path: str) -> None:
    require_plain_file(path)
    if truth.application_id_of(path) != user_store.APPLICATION_ID:
        raise DatabaseFailure(
            f"{path_text(path)} is not a store of ctx.",
            hint="`ctx import` reads files of other programs.",
        )


@contextmanager
def _file(store: UserStore, path: str, *, dry_run: bool) -> Iterator[tuple[Connection, OnApplied]]:
    """The store to copy to, and what has to be done with records that were scrubbed."""
    is_user_store = path == store.database
    if not is_user_store and not os.path.isdir(folder_of(path)):
        raise PathRefused(f"{path_text(folder_of(path))} is not a folder.", hint="Create it first.")
    if os.path.lexists(path):
        _require_store(path)
    elif dry_run:
        with closing(user_store.empty_store()) as nothing:
            yield nothing, _ignore
        return
    if is_user_store:
        with disk.explain_errors("making the user store's folder"):
            disk.make_folder(store.home)
    has_scrubbed = False

    def note_applied(connection: Connection, scrubbed: Sequence[Record]) -> None:
        nonlocal has_scrubbed
        has_scrubbed |= bool(scrubbed)
        if is_user_store:
            if scrubbed:
                disk.make_folder(store.sync)
            sync_scrubs.note_applied(store, connection, scrubbed)
        else:
            contexts.forget(connection)

    with (
        disk.explain_errors("copying a store"),
        user_store.writing(path) as connection,
    ):
        yield connection, note_applied
        if is_user_store and os.path.isdir(store.sync):
            with target_settings.try_hold(store, _WAIT_S) as is_free:
                # Otherwise the sync that is under way does it.
                if is_free:
                    sync_scrubs.wipe(store, connection)
        elif has_scrubbed and not scrub_store.wipe(connection):
            raise SyncFailure(
                f"The old text of scrubbed records is still in free pages of {path_text(path)},"
                " because another process reads it.",
                hint="Run `ctx scrub` with this store later.",
            )


def _ignore(_connection: Connection, _scrubbed: Sequence[Record]) -> None:
    """Nothing is added in a dry run."""
