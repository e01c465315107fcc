"""The code index: where it is stored, refreshing it, opening it.

One process at a time refreshes it, or resolves names for an answer that needs them. A command that
cannot wait reads the index as it is, and its answer reports the age.
"""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from sqlite3 import Connection
from typing import TYPE_CHECKING, Literal, NamedTuple

from ctx import clock, disk, layout, locks
from ctx.code import coverage, index_file, lookup
from ctx.code.coverage import Coverage
from ctx.code.file_listing import ExcludedPath
from ctx.code.history import commit_meanings
from ctx.code.history.commit_meanings import fingerprint
from ctx.code.lookup import Code
from ctx.code.vocabulary import LARGEST_FILE
from ctx.codebase import prune
from ctx.errors import DiskFailure, IndexCorrupt, LockConflict
from ctx.layout import CodePlace, Project, UserStore
from ctx.project import trust_check
from ctx.search import embedders
from ctx.sqlite.connection import discard, explain_errors, size_of, transaction
from ctx.workspace import Environment, Workspace

if TYPE_CHECKING:
    from ctx.code.index_check import RefreshCounts, SourceTree
    from ctx.config.resolve import Config

_WAIT_SECONDS = 2.0
_PATIENT_SECONDS = 600.0
_DOING = "ctx code index"
_FEW = 64
"""Resolving this many files takes only a moment."""

State = Literal["fresh", "as it was", "busy", "not writable"]


class IndexAge(NamedTuple):
    """The age of the index behind an answer."""

    refreshed_at: str | None
    state: State
    """`fresh`: refreshed for this answer. Otherwise why not: no refresh was requested, another
    process holds the lock, or the index cannot be written."""


class _ResolveOnDemand:
    """Resolves names for an answer when they are needed, if the index can be locked and written."""

    def __init__(self, codebase: "Codebase", tick: clock.Tick, most: float = math.inf) -> None:
        self._codebase = codebase
        self._tick = tick
        self._most = most
        self.hindered: State | None = None

    def __call__(self, files: Sequence[int]) -> None:
        if self.hindered or len(files) > self._most:
            return
        from ctx.code import build

        place = self._codebase.place
        try:
            with (
                locks.hold(place.lock, _DOING, _WAIT_SECONDS),
                explain_errors(place.database, IndexCorrupt),
            ):
                build.follow(self._codebase.files, files, self._tick)
        except LockConflict:
            self.hindered = "busy"
        except DiskFailure:
            self.hindered = "not writable"


class OpenIndex(NamedTuple):
    """An index that is open for reading, and its age. Use it as a context manager."""

    code: Code
    as_opened: IndexAge
    root: str
    folder: str
    """The folder that the command runs in, relative to the root."""
    follower: _ResolveOnDemand

    @property
    def age(self) -> IndexAge:
        """The age of the index, including whether names could be resolved so far."""
        hindered = self.follower.hindered
        return self.as_opened._replace(state=hindered) if hindered else self.as_opened

    def __enter__(self) -> "OpenIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.code.connection.close()


class IndexReport(NamedTuple):
    """The answer of `ctx code index`."""

    root: str
    path: str
    """The index file."""
    bytes: int
    added: int
    changed: int
    removed: int
    resolved: int
    """Files whose mentions were resolved."""
    left_out: tuple[ExcludedPath, ...]
    coverage: Coverage


class IndexStatus(NamedTuple):
    """The answer of `ctx code status`."""

    root: str
    path: str
    bytes: int
    coverage: Coverage
    age: IndexAge


class Codebase(NamedTuple):
    """The code that a command works on."""

    place: CodePlace
    folder: str
    ignore_globs: tuple[str, ...]
    max_bytes: int
    user_store: UserStore | None = None
    """Where to look for orphaned indexes; None: nowhere."""

    @property
    def files(self) -> "SourceTree":
        """The same code, as input for building the index."""
        from ctx.code.index_check import SourceTree

        place = self.place
        return SourceTree(
            place.root, place.checkout, place.database, self.ignore_globs, self.max_bytes
        )


def codebase_of(workspace: Workspace) -> Codebase:
    """The code of a project that is open already."""
    return _codebase(workspace.project.code, "", workspace.config)


def codebase_at(environment: Environment) -> Codebase:
    """The code that a folder belongs to, with the settings that apply to it."""
    from ctx.config.resolve import load

    user_store = environment.user_store
    place = layout.code_at(environment.folder, user_store)
    # The settings of an untrusted project do not decide which files are read.
    store = trust_check.trusted_project(user_store.home, environment.folder)
    config = load(
        user_store.config_file,
        store.config_file if store else None,
        environment.variables,
        environment.overrides,
    )
    inside = os.path.relpath(os.path.realpath(environment.folder), place.root)
    return _codebase(place, "" if inside == "." else inside, config, user_store)


def _codebase(
    place: CodePlace, folder: str, config: "Config", user_store: UserStore | None = None
) -> Codebase:
    globs = tuple(config.texts("ingestion.ignore_globs"))
    max_bytes = min(config.integer("ingestion.max_file_bytes"), LARGEST_FILE)
    return Codebase(place, folder, globs, max_bytes, user_store)


def open_refreshed(codebase: Codebase, tick: clock.Tick = clock.no_tick) -> OpenIndex:
    """Open the index, refreshed if possible."""
    try:
        refresh(codebase, tick, wait_seconds=_WAIT_SECONDS)
    except LockConflict as conflict:
        return _without_refresh(codebase, "busy", conflict)
    except DiskFailure as failure:
        return _without_refresh(codebase, "not writable", failure)
    return _open(codebase, "fresh", tick)


def open_unrefreshed(codebase: Codebase, tick: clock.Tick = clock.no_tick) -> OpenIndex:
    """Open the index as the last refresh left it."""
    return _open(codebase, "as it was", tick)


def open_at_once(codebase: Codebase) -> OpenIndex | None:
    """Open the index as it is, without resolving names; None if there is none."""
    follower = _ResolveOnDemand(codebase, clock.no_tick, 0)
    code = lookup.open_index(codebase.place.database, codebase.place.root, follower)
    return _open_index(codebase, code, "as it was", follower) if code else None


def open_readable(codebase: Codebase) -> Code | None:
    """Open the index for a caller that can do without it and without edges that take long to
    resolve; None if there is none. The caller closes it."""
    place = codebase.place
    follower = _ResolveOnDemand(codebase, clock.no_tick, _FEW)
    return lookup.open_index(place.database, place.root, follower)


def remove_damaged(codebase: Codebase) -> bool:
    """Remove the index if it is damaged. It is derived data, and the next caller that needs it
    rebuilds it."""
    path = codebase.place.database
    try:
        with explain_errors(path, IndexCorrupt):
            code = lookup.open_index(path, codebase.place.root)
            if code is None:
                return False
            with code:
                if code.connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
                    return False
    except IndexCorrupt:
        pass
    with locks.hold(codebase.place.lock, _DOING, _WAIT_SECONDS):
        _remove(path)
    return True


def refresh(
    codebase: Codebase,
    tick: clock.Tick = clock.no_tick,
    *,
    wait_seconds: float = _PATIENT_SECONDS,
    chosen: Callable[[str], bool] | None = None,
) -> "RefreshCounts":
    """Refresh the index; with `chosen`, only the paths that it accepts."""
    with locks.hold(codebase.place.lock, _DOING, wait_seconds):
        return _refresh(codebase, tick, chosen)


def update(
    codebase: Codebase, tick: clock.Tick, *, wait_seconds: float = _PATIENT_SECONDS
) -> IndexReport:
    """Refresh the index, resolve every name, and report the result. Waits for other processes."""
    with locks.hold(codebase.place.lock, _DOING, wait_seconds):
        done = _refresh_all(codebase, tick)
        _read_history(codebase, tick)
    return _report(codebase, done)


def rebuild(codebase: Codebase, tick: clock.Tick) -> IndexReport:
    """Rebuild the index from scratch."""
    with locks.hold(codebase.place.lock, _DOING, _PATIENT_SECONDS):
        _remove(codebase.place.database)
        done = _refresh_all(codebase, tick)
        _read_history(codebase, tick)
    return _report(codebase, done)


def status(codebase: Codebase, opened: OpenIndex) -> IndexStatus:
    root, path = codebase.place.root, codebase.place.database
    known = coverage.measure(opened.code.connection)
    return IndexStatus(root, path, _bytes(path), known, opened.age)


def _refresh_all(codebase: Codebase, tick: clock.Tick) -> "RefreshCounts":
    """Read what has changed, and resolve all pending files."""
    from ctx.code import build

    def reading(done: int, total: int) -> None:
        tick(done, total * 5 // 4)

    def following(done: int, total: int) -> None:
        tick(4 * total + done, 5 * total)

    def attempt() -> "RefreshCounts":
        counts = _refresh(codebase, reading, None)
        followed = build.follow(codebase.files, tick=following)
        return counts._replace(resolved=counts.resolved + followed)

    try:
        return attempt()
    except IndexCorrupt:
        # Includes damage that only shows while names are resolved.
        _remove(codebase.place.database)
        return attempt()


def _refresh(
    codebase: Codebase, tick: clock.Tick, chosen: Callable[[str], bool] | None
) -> "RefreshCounts":
    from ctx.code import file_listing, index_check

    if codebase.user_store:
        prune.prune_indexes(codebase.user_store)
    files = codebase.files
    listing = file_listing.list_files(files.root, files.checkout, files.ignore_globs)
    if not chosen:
        with suppress(IndexCorrupt), explain_errors(files.database, IndexCorrupt):
            if counts := index_check.note_if_current(files, listing):
                return counts
    from ctx.code import build

    def attempt() -> "RefreshCounts":
        with explain_errors(files.database, IndexCorrupt):
            return build.refresh(files, tick, chosen=chosen, listing=listing)

    try:
        return attempt()
    except IndexCorrupt:
        # The index is derived data: a damaged one is rebuilt.
        _remove(files.database)
        return attempt()


def read_history(codebase: Codebase, tick: clock.Tick, wait_seconds: float) -> None:
    """Refresh the commit history in the index."""
    with locks.hold(codebase.place.lock, _DOING, wait_seconds):
        _read_history(codebase, tick)


def _read_history(codebase: Codebase, tick: clock.Tick) -> None:
    from ctx.code.history import history_refresh as history

    place = codebase.place
    with (
        explain_errors(place.database, IndexCorrupt),
        closing(index_file.open_for_writing(place.database)) as opened,
    ):
        size = history.refresh(opened, Project(place.root, place.checkout), tick=tick)
        if size and size.commits_new:
            _add_meanings(opened)


def _add_meanings(connection: Connection) -> None:
    """Add fingerprints to new commits, so that a question finds those with a similar meaning."""
    missing = commit_meanings.without_fingerprint(connection)
    if not missing:
        return
    ids, subjects = zip(*missing, strict=True)
    try:
        embedder = embedders.default()
    except IndexCorrupt:
        # Without the table, commits are found by their words only.
        return
    # For a few texts, loading numpy takes longer.
    many = len(missing) > _FEW
    vectors = embedder.embed(subjects).tolist() if many else map(embedder.embed_one, subjects)
    with transaction(connection):
        commit_meanings.add(connection, zip(ids, map(fingerprint, vectors), strict=True))


def _remove(path: str) -> None:
    with disk.explain_errors("removing the index of the code"):
        discard(path)


def _without_refresh(
    codebase: Codebase, state: State, reason: LockConflict | DiskFailure
) -> OpenIndex:
    follower = _ResolveOnDemand(codebase, clock.no_tick)
    follower.hindered = state
    code = lookup.open_index(codebase.place.database, codebase.place.root, follower)
    if code is None and isinstance(reason, LockConflict):
        owner = locks.read_owner(codebase.place.lock)
        raise LockConflict(f"The code index is being built by {owner or 'another process'}.")
    if code is None:
        raise reason
    return _open_index(codebase, code, state, follower)


def _open(codebase: Codebase, state: State, tick: clock.Tick = clock.no_tick) -> OpenIndex:
    follower = _ResolveOnDemand(codebase, tick)
    code = lookup.open_index(codebase.place.database, codebase.place.root, follower)
    if code is None:
        raise IndexCorrupt(
            f"There is no code index of {codebase.place.root} yet.",
            hint="Run `ctx code index`.",
        )
    return _open_index(codebase, code, state, follower)


def _open_index(
    codebase: Codebase, code: Code, state: State, follower: _ResolveOnDemand
) -> OpenIndex:
    age = IndexAge(coverage.refreshed_at(code.connection), state)
    return OpenIndex(code, age, codebase.place.root, codebase.folder, follower)


def _report(codebase: Codebase, done: "RefreshCounts") -> IndexReport:
    path = codebase.place.database
    with _open(codebase, "fresh") as opened:
        known = coverage.measure(opened.code.connection)
    read = done.added, done.changed, done.removed, done.resolved
    root = codebase.place.root
    return IndexReport(root, path, _bytes(path), *read, done.left_out, known)


def _bytes(path: str) -> int:
    return size_of(path) + size_of(f"{path}-wal")
