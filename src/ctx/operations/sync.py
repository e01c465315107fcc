"""Exchange the graph of the user store with other machines: add a target, sync, show, remove."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from sqlite3 import Connection
from typing import Literal, NamedTuple

from ctx import clock, disk, ids, interrupts
from ctx.errors import CtxError, LockConflict, SyncFailure, UsageError
from ctx.layout import UserStore
from ctx.memory import replicas
from ctx.memory.conflicts import find_conflicts
from ctx.memory.graph import Graph
from ctx.memory.replicas import Replica
from ctx.operations import sync_scrubs
from ctx.sqlite.connection import transaction
from ctx.sync import batch_files, target_settings
from ctx.sync.batch_files import BatchFile, Keys, UnreadableFile
from ctx.sync.batch_target import BatchTarget
from ctx.sync.git_target import shown
from ctx.sync.replicate import Replication, SyncCounts, UnreadBatch
from ctx.sync.target_settings import SyncTarget, TargetKind
from ctx.sync.team_connection import ServerWait
from ctx.sync.team_target import TeamTarget

AskSecret = Callable[[bool], bytes | None]
"""Returns the passphrase or key, or None for no encryption. The argument is whether the target is
new, so that a passphrase is asked for twice."""

Samples = dict[bytes | None, list[BatchFile]]
"""The batches of each salt, a few with their content; None stands for no encryption."""

_LOCK_WAIT_S = 30.0
_STATUS_WAIT = ServerWait(2, 10.0)
"""How long `ctx sync status` waits for a server: it shows what is known here without it."""
_MOST_SAMPLES = 3
_MOST_SALTS = 20
"""Deriving a key takes a tenth of a second, and anybody can write a file with another salt."""
_SHORTEST_SECRET = 8


class SyncAddResult(NamedTuple):
    """The answer of `ctx sync add`."""

    name: str
    kind: TargetKind
    place: str
    encrypted: bool
    every: str
    """How often the worker syncs: `10m`, or `never`."""
    batches: int
    """Batches that the target already has."""
    unopened: tuple[str, ...]
    """Those that the passphrase or key does not open."""
    added: bool
    """Whether the target is new here."""
    changed: bool
    """Whether the target existed here, and its key or interval changed."""


class TargetResult(NamedTuple):
    """What was exchanged with one target."""

    name: str
    received_batches: int
    received_records: int
    """Records that this machine did not have."""
    scrubbed_records: int
    """Records that this machine had, and that were scrubbed on another one."""
    sent_batches: int
    sent_records: int
    rewritten_batches: int
    """Batches from which something that was scrubbed is removed."""
    unread: tuple[UnreadBatch, ...]
    """Files that were left alone."""
    locked: int
    """How many of them need a key that this machine does not have."""
    problem: str | None
    """Why the target could not be synced, or not all of it."""


class SyncResult(NamedTuple):
    """The answer of `ctx sync`."""

    dry_run: bool
    targets: tuple[TargetResult, ...]
    conflicts: int
    """Texts that were edited on two machines at once; `ctx review` shows them."""


class ReplicaStatus(NamedTuple):
    """One machine that shares a target."""

    machine: str
    this: bool
    """Whether it is this machine."""
    sent_at: str
    """When it last sent something, as far as is known here."""
    confirmed: bool
    """Whether it has applied every scrub that is known here."""


class TargetStatus(NamedTuple):
    name: str
    kind: TargetKind
    place: str
    encrypted: bool
    every: str
    """How often the worker syncs: `10m`, or `never`."""
    synced_at: str | None
    """When it was last synced."""
    problem: str | None
    """Why the last attempt failed."""
    unsent: int
    """Records that the target does not have yet, also those that you may not send to a team."""
    machines: tuple[ReplicaStatus, ...]
    unconfirmed: int
    """Machines that have not applied every scrub that is known here."""
    team: "TeamStatus | None"
    """What a team's server says now; missing for other targets, and if it cannot be reached."""


class ProjectRole(NamedTuple):
    project: str
    role: Literal["owner", "writer", "reader"]
    members: int


class TeamStatus(NamedTuple):
    """The state of a team's server for one member."""

    to_send: int
    """Records that the next sync sends."""
    to_receive: int
    """Records that the next sync receives."""
    staying: int
    """Records of projects that the server does not have, or that you may not write to."""
    projects: tuple[ProjectRole, ...]
    """Your projects."""


class SyncStatus(NamedTuple):
    """The answer of `ctx sync status`."""

    targets: tuple[TargetStatus, ...]


class SyncRemoveResult(NamedTuple):
    """The answer of `ctx sync remove`."""

    name: str
    place: str
    announced: bool
    """Whether the other machines learn that this one has left."""


def add(
    store: UserStore,
    connection: Connection,
    place: tuple[str, str, str],
    every: str,
    ask_secret: AskSecret,
    *,
    is_stated: bool,
    default_every: str,
) -> SyncAddResult:
    """Add a target, or change the key or interval of one. `place` has the name of the target, the
    folder or URL, and the folder that a path is relative to. `is_stated` is whether the user gave a
    secret or `--plain` with the command, so that it is checked even if the keys are known."""
    name, text, folder = place
    before = target_settings.target_named(store, name)
    kind, path = target_settings.place_of(text, folder)
    if before and path == shown(before.place):
        # Messages show it without the user name and password.
        path = before.place
    if before and (before.kind, before.place) != (kind, path):
        raise UsageError(
            f"The target {name} is {shown(before.place)}.",
            hint=f"Use another name, or remove it first: `ctx sync remove {name}`",
        )
    with _hold(store), _purged_on_failure(store, name, before):
        if kind == "folder" and before is None:
            _make_folder(path)
        replica = before.replica if before else ids.new_ulid()
        every = every or (before.every if before else "")
        target = SyncTarget(name, kind, path, replica, True, every)
        with target_settings.open_target(store, target) as opened:
            names = sorted(opened.listing().batches)
            old = target_settings.stored_keys(store, before) if before else None
            keys: Keys = {}
            samples: Samples = {}
            if kind != "postgresql":
                samples = _samples(opened, names)
                keys = _keys(samples, old, shown(path), ask_secret, is_stated=is_stated)
            target = SyncTarget(name, kind, path, replica, bool(keys), every)
            interrupts.defer()
            target_settings.keep(store, target, keys)
            replication = _replication(store, connection, target, opened, keys)
            replication.announce(is_empty=not names)
    is_changed = before is not None and (before.every, old) != (every, keys)
    unopened = samples.keys() - keys.keys() - {None}
    return SyncAddResult(
        name,
        kind,
        shown(path),
        bool(keys),
        every or default_every,
        len(names),
        tuple(file.name for salt in unopened for file in samples[salt]),
        before is None,
        is_changed,
    )


def sync(
    store: UserStore,
    connection: Connection,
    name: str | None,
    *,
    dry_run: bool = False,
    tick: clock.Tick = clock.no_tick,
) -> SyncResult:
    """Sync one target or all of them. If one of several fails, the others are synced too."""
    chosen = [_target(store, name)] if name else target_settings.targets(store)
    if not chosen:
        raise SyncFailure(
            "There is no target to sync with.",
            hint="Add a folder or a git repository: `ctx sync add NAME DIR`",
        )
    results = []
    with _hold(store):
        for target in chosen:
            try:
                counts = sync_target(store, connection, target, dry_run=dry_run, tick=tick)
                results.append(TargetResult(target.name, *counts, key_problem(target, counts)))
            except CtxError as error:
                if len(chosen) == 1:
                    raise
                results.append(TargetResult(target.name, *SyncCounts(), str(error)))
    return SyncResult(dry_run, tuple(results), len(find_conflicts(Graph(connection))))


def sync_target(
    store: UserStore,
    connection: Connection,
    target: SyncTarget,
    *,
    dry_run: bool = False,
    tick: clock.Tick = clock.no_tick,
) -> SyncCounts:
    """Sync one target, and store how it went. The caller holds the lock."""
    try:
        with target_settings.open_target(store, target) as opened:
            keys = target_settings.keys_of(store, target)
            replication = _replication(store, connection, target, opened, keys, tick)
            counts = replication.preview() if dry_run else replication.run()
    except CtxError as error:
        if not dry_run:
            with transaction(connection):
                replicas.note_attempt(connection, target.replica, str(error))
        raise
    if not dry_run:
        with transaction(connection):
            replicas.note_attempt(connection, target.replica)
            if problem := key_problem(target, counts):
                replicas.note_attempt(connection, target.replica, problem)
        sync_scrubs.wipe(store, connection)
    return counts


def key_problem(target: SyncTarget, counts: SyncCounts) -> str | None:
    """Report batches that are encrypted with a key that this machine does not have."""
    if not counts.locked:
        return None
    batches = "1 batch needs" if counts.locked == 1 else f"{counts.locked:,} batches need"
    return (
        f"{batches} another key: machines that begin a target at the same time, or begin it again,"
        " take different keys for one passphrase. Nothing is lost. To read them, run"
        f" {target_settings.add_command(target)} with the passphrase."
    )


def status(store: UserStore, connection: Connection, default_every: str) -> SyncStatus:
    """Show the targets as this machine knows them. Only a team's server is asked."""
    found = []
    for target in target_settings.targets(store):
        team, team_problem = None, None
        try:
            team = _team_status(store, connection, target)
        except CtxError as error:
            team_problem = str(error)
        state = replicas.target_state(connection, target.replica)
        awaited = set(replicas.unconfirmed(connection, target.replica))
        machines = tuple(
            ReplicaStatus(
                each.machine, each.id == target.replica, each.sent_at, each not in awaited
            )
            for each in replicas.replicas_of(connection, target.replica)
            if not each.has_left
        )
        found.append(
            TargetStatus(
                target.name,
                target.kind,
                shown(target.place),
                target.encrypted,
                target.every or default_every,
                state.synced_at if state else None,
                team_problem or (state.problem or None if state else None),
                replicas.unsent_count(connection, target.replica),
                machines,
                len(awaited),
                team,
            )
        )
    return SyncStatus(tuple(found))


def _team_status(store: UserStore, connection: Connection, target: SyncTarget) -> TeamStatus | None:
    if target.kind != "postgresql":
        return None
    with closing(TeamTarget(target.place, _STATUS_WAIT)) as server:
        counts = _replication(store, connection, target, server, {}).preview()
        roles = tuple(ProjectRole(*each) for each in server.roles())
    staying = replicas.unsent_count(connection, target.replica) - counts.sent_records
    return TeamStatus(counts.sent_records, counts.received_records, max(0, staying), roles)


def remove(store: UserStore, connection: Connection, name: str) -> SyncRemoveResult:
    """Stop syncing with a target. What it contains stays there, and so does what came from it."""
    target = _target(store, name)
    with _hold(store):
        interrupts.defer()
        announced = True
        try:
            with target_settings.open_target(store, target) as opened:
                keys = target_settings.keys_of(store, target)
                _replication(store, connection, target, opened, keys).leave()
        except CtxError:
            # It may be gone for good.
            announced = False
        target_settings.forget(store, name)
        with transaction(connection):
            replicas.forget_target(connection, target.replica)
    return SyncRemoveResult(name, shown(target.place), announced)


@contextmanager
def _hold(store: UserStore) -> Iterator[None]:
    """Hold the lock of `ctx sync`, or report that another process does."""
    with target_settings.try_hold(store, _LOCK_WAIT_S) as is_free:
        if not is_free:
            raise LockConflict("Another process is syncing.")
        yield


def _target(store: UserStore, name: str) -> SyncTarget:
    target = target_settings.target_named(store, name)
    if target is None:
        known = ", ".join(each.name for each in target_settings.targets(store))
        raise SyncFailure(
            f"There is no target {name}.",
            hint=f"The targets are: {known}." if known else "Add one: `ctx sync add NAME DIR`",
        )
    return target


def _replication(
    store: UserStore,
    connection: Connection,
    target: SyncTarget,
    opened: BatchTarget,
    keys: Keys,
    tick: clock.Tick = clock.no_tick,
) -> Replication:
    now = clock.iso(clock.now_ms())
    replica = Replica(target.replica, os.uname().nodename, now, False)
    on_applied = partial(sync_scrubs.note_applied, store)
    command = target_settings.add_command(target)
    return Replication(connection, target.name, opened, keys, replica, on_applied, tick, command)


@contextmanager
def _purged_on_failure(store: UserStore, name: str, before: SyncTarget | None) -> Iterator[None]:
    """Leave nothing of a target that could not be added."""
    try:
        yield
    except BaseException:
        if before is None:
            target_settings.forget(store, name)
        raise


def _make_folder(path: str) -> None:
    """Create the folder of a new target. Its parent must exist: it may be on another disk."""
    if os.path.isdir(path):
        return
    if os.path.lexists(path) or not os.path.isdir(os.path.dirname(path)):
        raise UsageError(
            f"{path} is not a folder.",
            hint="Create it first; if it is on another disk, mount the disk.",
        )
    with disk.explain_errors("making a sync folder"):
        disk.make_folder(path)


def _keys(
    samples: Samples, old: Keys | None, place: str, ask_secret: AskSecret, *, is_stated: bool
) -> Keys:
    """Derive the keys of a target, and check that they open what is already there.

    Nothing is asked if the `old` keys are enough. A secret that the user stated is checked. Anybody
    who can write to the target may have put a batch there, so a plain one beside encrypted ones
    does not count.
    """
    salts = [salt for salt in samples if salt is not None] or [*(old or ())]
    if old is not None and samples.keys() <= {None, *old} and not is_stated:
        return old
    secret = ask_secret(not samples)
    if secret is None and salts and old != {}:
        raise SyncFailure(f"{place} is encrypted.", hint="Give its passphrase instead of --plain.")
    if secret is None:
        return {}
    if old == {} or (samples and not salts):
        raise SyncFailure(
            f"{place} is not encrypted.",
            hint="Add --plain if your other machines do; or use another place.",
        )
    if len(secret) < _SHORTEST_SECRET:
        raise UsageError(
            "The passphrase is too short.", hint=f"It needs {_SHORTEST_SECRET} characters or more."
        )
    likely = sorted(salts, key=lambda salt: (-len(samples.get(salt, ())), salt))[:_MOST_SALTS]
    keys = {salt: batch_files.derive_key(secret, salt) for salt in likely}
    fitting = {
        salt: key
        for salt, key in keys.items()
        if (old or {}).get(salt) == key or any(_opens(file, keys) for file in samples.get(salt, ()))
    }
    if salts and not fitting:
        raise SyncFailure(
            f"The passphrase or key is wrong: it does not open the batches in {place}.",
            hint="Nothing was written. Use the one that the other machines use.",
        )
    if fitting:
        # New ones first: machines that began the target again have no others.
        return {s: key for s, key in fitting.items() if s not in (old or {})} | dict(old or {})
    salt = batch_files.new_salt()
    return {salt: batch_files.derive_key(secret, salt)}


def _samples(opened: BatchTarget, names: Sequence[str]) -> Samples:
    samples: Samples = {}
    for name in names:
        try:
            data = opened.read(name)
            few = samples.setdefault(batch_files.salt_of(data), [])
        except UnreadableFile:
            continue
        few.append(BatchFile(name, data if len(few) < _MOST_SAMPLES else b""))
    return samples


def _opens(file: BatchFile, keys: Keys) -> bool:
    try:
        batch_files.unseal(*file, keys)
    except UnreadableFile:
        return False
    return True
