"""The code for a question that somebody waits for.

A small index is brought up to date first. A large one is taken as it is, and brought up to date
behind the answer's back, so that the next answer has it: looking at ten thousand files would take
as long as everything else. Where there is none yet, the answer comes from a scan of the files,
while the index is being made.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import NamedTuple, TypeVar

from ctx import clock, disk
from ctx.code import index_file, lookup
from ctx.code.lookup import Code
from ctx.codebase import code_index
from ctx.codebase.code_index import Codebase
from ctx.codebase.index_state import IndexState
from ctx.errors import (
    CtxError,
    DiskFailure,
    GitFailure,
    IndexCorrupt,
    LockConflict,
    PathRefused,
)
from ctx.workspace import Memory

FEW_FILES = 2_000
"""To look at so many takes a tenth of a second; to make an index of them, a second or two."""

_NAMES_SECONDS = 10.0
"""So long a command waits that looks up a few names."""
_YOUNG_MS = 10_000
_WAIT_SECONDS = 0.5
_REFRESH_SECONDS = 1.5
_IN_ALL_SECONDS = 2.5
"""So long a first answer may take. A scan has what is left of it, if that is not too little."""
_SCAN_SECONDS = 0.5

_RECENT_MS = 4 * 3_600_000
_MOST_RECENT = 20


class AvailableCode(NamedTuple):
    code: Code | None
    root: str
    state: IndexState


NO_CODE = AvailableCode(None, "", IndexState("none", None, 0, 0))


_Answer = TypeVar("_Answer")


class _TimeIsUp(Exception):
    """More has changed than can be read in passing. What was read stays read."""


def codebase_here(memory: Memory) -> Codebase | None:
    """The code of the project that is asked in; None where there is none to be looked at."""
    # Outside of any project there is no telling what lies around.
    if memory.project is not None:
        with suppress(PathRefused, GitFailure):
            return code_index.codebase_at(memory.surroundings)
    return None


def with_code(
    codebase: Codebase | None, question: str, answer: Callable[[AvailableCode], _Answer]
) -> _Answer:
    """An answer with what can be had of the code; a damaged index is made anew for it."""
    if codebase is None:
        return answer(NO_CODE)

    def attempt() -> _Answer:
        with open_now(codebase, question) as at_hand:
            return answer(at_hand)

    try:
        return attempt()
    except (sqlite3.DatabaseError, ValueError, IndexError, IndexCorrupt):
        try:
            if not code_index.remove_damaged(codebase):
                raise
        except (LockConflict, DiskFailure):
            # Whoever is at it makes it anew, and where nothing can be written nobody does.
            return answer(NO_CODE._replace(root=codebase.place.root))
    return attempt()


@contextmanager
def open_now(codebase: Codebase, question: str) -> Iterator[AvailableCode]:
    """What can be had of the code in a moment."""
    code, state = _open_existing(codebase) or _open_first(codebase, question)
    if code is None:
        yield AvailableCode(None, codebase.place.root, IndexState(state, None, 0, 0))
        return
    with code:
        yield AvailableCode(code, codebase.place.root, _index_state(code.connection, state))


def open_if_quick(codebase: Codebase) -> Code | None:
    """The index for a command that looks up names, as fresh as it gets in a moment. To be closed.

    None where there is none. In a large repository it is made by who asks for it (`ctx code index`,
    `ctx add code`); until then these commands do without.
    """
    from ctx.code import file_listing

    place = codebase.place
    if not os.path.isfile(place.database):
        found = file_listing.list_files(place.root, place.checkout, codebase.ignore_globs)
        if len(found.files) > FEW_FILES:
            return None
    _refresh_in_time(codebase, _NAMES_SECONDS, with_history=False)
    return code_index.open_readable(codebase)


def recently_edited(code: Code, wall_ms: int) -> list[str]:
    """The files that somebody is working on: changed lately, the last one first.

    Where very many are, it was no person who wrote them but a checkout.
    """
    rows = code.connection.execute(
        "SELECT path FROM files WHERE mtime_ns >= ? ORDER BY mtime_ns DESC LIMIT ?",
        (disk.storable_ns((wall_ms - _RECENT_MS) * 1_000_000), _MOST_RECENT + 1),
    ).fetchall()
    return [path for (path,) in rows] if len(rows) <= _MOST_RECENT else []


def _open_existing(codebase: Codebase) -> tuple[Code, str] | None:
    """The index that there is, brought up to date where that takes a moment."""
    place = codebase.place
    known = lookup.open_index(place.database, place.root)
    if known is None:
        return None
    files, refreshed_ms = _size_and_age(known.connection)
    if refreshed_ms is not None and files > FEW_FILES:
        if not 0 <= clock.now_ms() - refreshed_ms < _YOUNG_MS:
            _refresh_behind(codebase)
        return known, _without_refresh(codebase)
    known.connection.close()
    if refreshed_ms is None:
        # Somebody is making it, or was interrupted: half of it is no better than a scan.
        return None
    state = "fresh" if _refresh_in_time(codebase) else _without_refresh(codebase)
    code = code_index.open_readable(codebase)
    return (code, state) if code else None


def _open_first(codebase: Codebase, question: str) -> tuple[Code | None, str]:
    """A first index if there is little to read, else a first look."""
    from ctx.code import file_listing, unindexed_search
    from ctx.codebase import background_refresh
    from ctx.search import question as questions

    began = clock.monotonic()
    place = codebase.place
    try:
        files = file_listing.list_files(place.root, place.checkout, codebase.ignore_globs).files
    except GitFailure:
        return None, "refused"
    if len(files) <= FEW_FILES and _refresh_in_time(codebase):
        return code_index.open_readable(codebase), "fresh"
    left = max(_IN_ALL_SECONDS - (clock.monotonic() - began), _SCAN_SECONDS)
    found = None
    with suppress(CtxError):
        found = unindexed_search.search(
            codebase.files, questions.read(question).weights, left, files
        )
    # Not before: the two would be in each other's way.
    _refresh_behind(codebase)
    if found is None:
        return None, "none"
    is_made = background_refresh.can_be_written(place)
    return found, "scanned" if is_made else "not writable"


def _refresh_in_time(
    codebase: Codebase, seconds: float = _REFRESH_SECONDS, *, with_history: bool = True
) -> bool:
    is_in_time = clock.deadline(seconds)

    def tick(_done: int, _total: int) -> None:
        if not is_in_time():
            raise _TimeIsUp

    # Another process may be at it, or nothing can be written here: then it is what it is.
    try:
        code_index.refresh(codebase, tick, wait_seconds=_WAIT_SECONDS)
        if with_history:
            code_index.read_history(codebase, tick, _WAIT_SECONDS)
    except (_TimeIsUp, CtxError):
        return False
    return True


def _refresh_behind(codebase: Codebase) -> None:
    from ctx.codebase import background_refresh

    background_refresh.start(codebase)


def _without_refresh(codebase: Codebase) -> str:
    from ctx.codebase import background_refresh

    return "as it was" if background_refresh.can_be_written(codebase.place) else "not writable"


def _size_and_age(connection: Connection) -> tuple[int, int | None]:
    files = connection.execute("SELECT count(*) FROM files").fetchone()[0]
    refreshed_ms = index_file.noted(connection, "refreshed_at")
    return files, refreshed_ms if isinstance(refreshed_ms, int) else None


def _index_state(connection: Connection, state: str) -> IndexState:
    files, refreshed_ms = _size_and_age(connection)
    commits = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
    at = clock.iso(refreshed_ms) if refreshed_ms is not None else None
    return IndexState(state, at, files, commits)
