"""What a scrub on one machine means for the others: who has confirmed it, and wiping what is left.

When a scrubbed record arrives, its old text is also in free pages of the database, in backups and
in vectors. A file marks that this is to be wiped, so that an interrupted sync continues with it.
"""

import os
from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import disk
from ctx.context import contexts
from ctx.exchange import scrub_files, scrub_store
from ctx.layout import UserStore
from ctx.memory import record_versions, replicas, user_store
from ctx.memory.records import Record
from ctx.sqlite.connection import discard
from ctx.sync import target_settings

_MARK = "wiping"


class UnconfirmedReplica(NamedTuple):
    """A machine that may still have what was scrubbed."""

    target: str
    machine: str
    this: bool
    """Whether it is this machine, which has not synced since the scrub."""
    sent_at: str
    """When it last sent something."""


def unconfirmed_replicas(store: UserStore) -> list[UnconfirmedReplica]:
    """The machines that have not confirmed every scrub: this one too, until its next sync."""
    with user_store.reading(store.database) as connection:
        return [
            UnconfirmedReplica(target.name, each.machine, each.id == target.replica, each.sent_at)
            for target in target_settings.targets(store)
            for each in replicas.unconfirmed(connection, target.replica)
        ]


def discard_clones(store: UserStore) -> None:
    """Delete the private clones of targets; the next sync fetches them again.

    A sync that is under way does this itself.
    """
    with target_settings.try_hold(store) as is_free:
        if is_free:
            _purge_targets(store)


def _purge_targets(store: UserStore) -> None:
    for target in target_settings.targets(store):
        with target_settings.open_target(store, target) as opened:
            opened.purge()


def note_applied(store: UserStore, connection: Connection, scrubbed: Sequence[Record]) -> None:
    """Inside the transaction that adds records of other machines."""
    contexts.forget(connection)
    if scrubbed:
        with disk.explain_errors("noting that something was scrubbed"):
            disk.replace(os.path.join(store.sync, _MARK), b"")


def wipe(store: UserStore, connection: Connection) -> None:
    """Remove what was scrubbed elsewhere from backups, vectors, private clones and free pages.

    The caller holds the lock of targets.
    """
    mark = os.path.join(store.sync, _MARK)
    if not os.path.exists(mark):
        return
    scrubbed = record_versions.scrubbed_records(connection)
    for path in list(scrub_files.files_beside(store.home, store.database)):
        if scrub_files.is_copy(path):
            scrub_files.replace_in_copy(path, scrubbed)
    discard(store.vectors)
    _purge_targets(store)
    if scrub_store.wipe(connection):
        disk.discard(mark)
