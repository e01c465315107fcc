"""The index of the code: where it lies, brought up to date, opened.

One process at a time brings it up to date, or follows names for an answer that needs it. Whoever
cannot wait reads what is there, and the answer says how old that is.
"""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Literal, NamedTuple

from ctx import clock, disk, layout, locks
from ctx.code import coverage, lookup
from ctx.code.coverage import Coverage
from ctx.code.listing import LeftOut
from ctx.code.lookup import Code
from ctx.code.vocabulary import LARGEST_FILE
from ctx.codebase import code_left_behind
from ctx.errors import DiskFailure, IndexCorrupt, LockConflict
from ctx.layout import CodePlace, Project, UserStore
from ctx.project import trust_check
from ctx.sqlite.connection import discard, explained, size_of
from ctx.workspace import Surroundings, Workspace

if TYPE_CHECKING:
    from ctx.code.build import Place, Refreshed

_WAIT_SECONDS = 2.0
_PATIENT_SECONDS = 600.0
_DOING = "ctx code index"
_FEW = 64
"""Files that are followed in a moment."""

State = Literal["fresh", "as it was", "busy", "not writable"]


class Age(NamedTuple):
    """How old what an answer says is."""

    refreshed_at: str | None
    state: State
    """`fresh`: brought up to date for this answer. Else why not: nobody asked, another process is
    at it, or nothing can be written here."""


class _Follower:
    """Has names followed for an answer, if that can be."""

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
                explained(place.database, IndexCorrupt),
            ):
                build.follow(self._codebase.files, files, self._tick)
        except LockConflict:
            self.hindered = "busy"
        except DiskFailure:
            self.hindered = "not writable"


class Opened(NamedTuple):
    """An index that can be read, and how old it is. To be used as a context."""

    code: Code
    as_opened: Age
    root: str
    folder: str
    """Where the command works, from the root."""
    follower: _Follower

    @property
    def age(self) -> Age:
        """How old what was read of it is, up to now."""
        hindered = self.follower.hindered
        return self.as_opened._replace(state=hindered) if hindered else self.as_opened

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.code.connection.close()


class Indexed(NamedTuple):
    """The answer of `ctx code index`."""

    root: str
    path: str
    """The file of the index."""
    bytes: int
    added: int
    changed: int
    removed: int
    resolved: int
    """Files whose mentions were looked up."""
    left_out: tuple[LeftOut, ...]
    coverage: Coverage


class Status(NamedTuple):
    """The answer of `ctx code status`."""

    root: str
    path: str
    bytes: int
    coverage: Coverage
    age: Age


class Codebase(NamedTuple):
    """The code that a command is about."""

    place: CodePlace
    folder: str
    ignore_globs: tuple[str, ...]
    max_bytes: int
    user_store: UserStore | None = None
    """Where indexes may lie that were left behind; None: nobody looks."""

    @property
    def files(self) -> "Place":
        """The same as the index is built from it."""
        from ctx.code.build import Place

        place = self.place
        return Place(place.root, place.checkout, place.database, self.ignore_globs, self.max_bytes)


def of_project(workspace: Workspace) -> Codebase:
    """The code of a project that is open already."""
    config = workspace.config
    return Codebase(
        workspace.project.code,
        "",
        tuple(config.texts("ingestion.ignore_globs")),
        min(config.integer("ingestion.max_file_bytes"), LARGEST_FILE),
    )


def at(surroundings: Surroundings) -> Codebase:
    """The code that a folder belongs to, with what the settings say about it."""
    from ctx.config.resolve import load

    user_store = surroundings.user_store
    place = layout.code_at(surroundings.folder, user_store)
    # A stranger's settings do not decide which files are read.
    store = trust_check.trusted_project(user_store.home, surroundings.folder)
    config = load(
        user_store.config_file,
        store.config_file if store else None,
        surroundings.environment,
        surroundings.overrides,
    )
    inside = os.path.relpath(os.path.realpath(surroundings.folder), place.root)
    return Codebase(
        place,
        "" if inside == "." else inside,
        tuple(config.texts("ingestion.ignore_globs")),
        min(config.integer("ingestion.max_file_bytes"), LARGEST_FILE),
        user_store,
    )


def refreshed(codebase: Codebase, tick: clock.Tick = clock.no_tick) -> Opened:
    """The index, up to date if that can be."""
    try:
        refresh(codebase, tick, wait_seconds=_WAIT_SECONDS)
    except LockConflict as conflict:
        return _without_refresh(codebase, "busy", conflict)
    except DiskFailure as failure:
        return _without_refresh(codebase, "not writable", failure)
    return _opened(codebase, "fresh", tick)


def as_it_is(codebase: Codebase, tick: clock.Tick = clock.no_tick) -> Opened:
    """The index as the last refresh left it."""
    return _opened(codebase, "as it was", tick)


def readable(codebase: Codebase) -> Code | None:
    """The same for who can do without it, and without edges that take long to find; None where
    there is none. To be closed."""
    place = codebase.place
    follower = _Follower(codebase, clock.no_tick, _FEW)
    return lookup.opened(place.database, place.root, follower)


def remove_damaged(codebase: Codebase) -> bool:
    """Remove the index if it is damaged: it is derived, and made anew by whoever needs it."""
    path = codebase.place.database
    try:
        with explained(path, IndexCorrupt):
            code = lookup.opened(path, codebase.place.root)
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
) -> "Refreshed":
    """Bring the index up to date; with `chosen` as far as these paths go."""
    with locks.hold(codebase.place.lock, _DOING, wait_seconds):
        return _refresh(codebase, tick, chosen)


def index(
    codebase: Codebase, tick: clock.Tick, *, wait_seconds: float = _PATIENT_SECONDS
) -> Indexed:
    """Bring the index up to date, with every name followed, however long others are at it, and say
    what there is."""
    with locks.hold(codebase.place.lock, _DOING, wait_seconds):
        done = _refresh_all(codebase, tick)
        _read_history(codebase, tick)
    return _told(codebase, done)


def index_anew(codebase: Codebase, tick: clock.Tick) -> Indexed:
    """The same from nothing."""
    with locks.hold(codebase.place.lock, _DOING, _PATIENT_SECONDS):
        _remove(codebase.place.database)
        done = _refresh_all(codebase, tick)
        _read_history(codebase, tick)
    return _told(codebase, done)


def status(codebase: Codebase, opened: Opened) -> Status:
    path = codebase.place.database
    return Status(
        codebase.place.root, path, _bytes(path), coverage.of(opened.code.connection), opened.age
    )


def _refresh_all(codebase: Codebase, tick: clock.Tick) -> "Refreshed":
    """Read what has changed, and follow what waits for it."""
    from ctx.code import build

    def reading(done: int, total: int) -> None:
        tick(done, total * 5 // 4)

    def following(done: int, total: int) -> None:
        tick(4 * total + done, 5 * total)

    try:
        refreshed = _refresh(codebase, reading, None)
        followed = build.follow(codebase.files, tick=following)
    except IndexCorrupt:
        # Also what only shows when names are followed.
        _remove(codebase.place.database)
        refreshed = _refresh(codebase, reading, None)
        followed = build.follow(codebase.files, tick=following)
    return refreshed._replace(resolved=refreshed.resolved + followed)


def _refresh(
    codebase: Codebase, tick: clock.Tick, chosen: Callable[[str], bool] | None
) -> "Refreshed":
    from ctx.code import build

    if codebase.user_store:
        code_left_behind.clear(codebase.user_store)
    path = codebase.place.database
    try:
        with explained(path, IndexCorrupt):
            return build.refresh(codebase.files, tick, chosen=chosen)
    except IndexCorrupt:
        # It is derived: what is damaged is made anew.
        _remove(path)
        with explained(path, IndexCorrupt):
            return build.refresh(codebase.files, tick, chosen=chosen)


def read_history(codebase: Codebase, tick: clock.Tick, wait_seconds: float) -> None:
    """Bring what is known of commits up to date."""
    with locks.hold(codebase.place.lock, _DOING, wait_seconds):
        _read_history(codebase, tick)


def _read_history(codebase: Codebase, tick: clock.Tick) -> None:
    from ctx.code import index_file
    from ctx.code.history import refresh as history

    place = codebase.place
    with (
        explained(place.database, IndexCorrupt),
        closing(index_file.open_for_writing(place.database)) as opened,
    ):
        history.refresh(opened, Project(place.root, place.checkout), tick=tick)


def _remove(path: str) -> None:
    with disk.explained("removing the index of the code"):
        discard(path)


def _without_refresh(
    codebase: Codebase, state: State, reason: LockConflict | DiskFailure
) -> Opened:
    follower = _Follower(codebase, clock.no_tick)
    follower.hindered = state
    code = lookup.opened(codebase.place.database, codebase.place.root, follower)
    if code is None and isinstance(reason, LockConflict):
        owner = locks.read_owner(codebase.place.lock)
        raise LockConflict(f"The index of the code is being made by {owner or 'another process'}.")
    if code is None:
        raise reason
    return _made(codebase, code, state, follower)


def _opened(codebase: Codebase, state: State, tick: clock.Tick = clock.no_tick) -> Opened:
    follower = _Follower(codebase, tick)
    code = lookup.opened(codebase.place.database, codebase.place.root, follower)
    if code is None:
        raise IndexCorrupt(
            f"There is no index of the code in {codebase.place.root} yet.",
            hint="`ctx code index` makes it.",
        )
    return _made(codebase, code, state, follower)


def _made(codebase: Codebase, code: Code, state: State, follower: _Follower) -> Opened:
    return Opened(
        code,
        Age(coverage.refreshed_at(code.connection), state),
        codebase.place.root,
        codebase.folder,
        follower,
    )


def _told(codebase: Codebase, done: "Refreshed") -> Indexed:
    path = codebase.place.database
    with _opened(codebase, "fresh") as opened:
        known = coverage.of(opened.code.connection)
    return Indexed(
        codebase.place.root,
        path,
        _bytes(path),
        done.added,
        done.changed,
        done.removed,
        done.resolved,
        done.left_out,
        known,
    )


def _bytes(path: str) -> int:
    return size_of(path) + size_of(f"{path}-wal")
