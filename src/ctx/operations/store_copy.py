"""Copy a store to another one: a file, or a team's PostgreSQL server."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, disk, ids
from ctx.context import contexts
from ctx.errors import DatabaseFailure, PathRefused, SyncFailure, UsageError
from ctx.exchange import scrub_store
from ctx.layout import UserStore
from ctx.memory import user_store
from ctx.memory.records import Record
from ctx.memory.replicas import Replica
from ctx.operations import sync_scrubs
from ctx.operations.store import require_plain_file
from ctx.sqlite import truth
from ctx.sqlite.connection import explain_errors, folder_of, path_text, snapshot
from ctx.sync import store_copy, target_settings, team_connection
from ctx.sync.git_target import shown
from ctx.sync.store_copy import (
    CopyCounts,
    FileDestination,
    FileSource,
    RecordDestination,
    TeamDestination,
    TeamSource,
)
from ctx.sync.team_target import TeamTarget

_WAIT_S = 30.0


class StoreCopyResult(NamedTuple):
    """The answer of `ctx store copy`."""

    source: str
    destination: str
    dry_run: bool
    counts: CopyCounts
    verified: bool | None
    """Whether both sides are equal; missing for a dry run."""


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
    """Add the records of one store to another, and compare both."""
    for place in places:
        if "://" in place and not team_connection.is_team(place):
            raise UsageError(
                f"{place.partition('://')[0]}:// is not a PostgreSQL server.",
                hint="Give the path of a file, or a URL with postgresql://.",
            )
    if team_connection.is_team(places.source):
        if team_connection.is_team(places.destination):
            raise UsageError(
                "Both stores are on a server.",
                hint="Copy to a file first, and from this file to the other server.",
            )
        counts = _from_server(store, places, tick, dry_run=dry_run)
    else:
        counts = _from_file(store, places, tick, dry_run=dry_run)
    verified = None if dry_run else all(each.source == each.destination for each in counts.kinds)
    return StoreCopyResult(
        shown(places.source), shown(places.destination), dry_run, counts, verified
    )


def _from_server(
    store: UserStore, places: CopyPlaces, tick: clock.Tick, *, dry_run: bool
) -> CopyCounts:
    with (
        closing(TeamTarget(places.source)) as server,
        _file_destination(store, places.destination, is_foreign=True, dry_run=dry_run) as file,
    ):
        source = TeamSource(server)
        return (store_copy.preview if dry_run else store_copy.copy)(source, file, tick)


def _from_file(
    store: UserStore, places: CopyPlaces, tick: clock.Tick, *, dry_run: bool
) -> CopyCounts:
    _require_store(places.source)
    with (
        explain_errors(places.source),
        closing(user_store.open_for_reading(places.source)) as connection,
        snapshot(connection),
        _destination(store, places, connection, dry_run=dry_run) as destination,
    ):
        source = FileSource(connection)
        return (store_copy.preview if dry_run else store_copy.copy)(source, destination, tick)


def _require_store(path: str) -> None:
    require_plain_file(path)
    if truth.application_id_of(path) != user_store.APPLICATION_ID:
        raise DatabaseFailure(
            f"{path_text(path)} is not a store of ctx.",
            hint="`ctx import` reads files of other programs.",
        )


@contextmanager
def _destination(
    store: UserStore, places: CopyPlaces, source: Connection, *, dry_run: bool
) -> Iterator[RecordDestination]:
    place = places.destination
    if team_connection.is_team(place):
        with closing(TeamTarget(place)) as server:
            replica = Replica(ids.new_ulid(), os.uname().nodename, "", False)
            yield TeamDestination(server, source, replica)
        return
    if os.path.exists(place) and os.path.samefile(place, places.source):
        raise UsageError("Both stores are the same file.")
    with _file_destination(store, place, is_foreign=False, dry_run=dry_run) as file:
        yield file


@contextmanager
def _file_destination(
    store: UserStore, path: str, *, is_foreign: bool, dry_run: bool
) -> Iterator[FileDestination]:
    is_user_store = path == store.database
    if not is_user_store and not os.path.isdir(folder_of(path)):
        raise PathRefused(f"{path_text(folder_of(path))} is not a folder.", hint="Create it first.")
    if os.path.lexists(path):
        _require_store(path)
    elif dry_run:
        with closing(user_store.empty_store()) as nothing:
            yield FileDestination(nothing, _ignore, is_foreign=is_foreign)
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
        explain_errors(path),
        disk.explain_errors("copying a store"),
        closing(user_store.open_for_writing(path)) as connection,
    ):
        yield FileDestination(connection, note_applied, is_foreign=is_foreign)
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
