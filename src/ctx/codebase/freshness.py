"""As fresh a code index as fits into the time of one answer.

A small index is refreshed first. A large one is used as it is and refreshed in the background, so
the next answer benefits: checking ten thousand files would take as long as everything else. Without
an index, the answer comes from a search of the files while the index is built in the background.
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
from ctx.codebase import indexing
from ctx.codebase.index_state import IndexState
from ctx.codebase.indexing import Codebase, OpenIndex
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
"""Checking this many files takes a tenth of a second; indexing them takes a second or two."""

_NAMES_SECONDS = 10.0
"""How long a command that looks up a few names waits."""
_FRESH_MS = 10_000
_RECENT_REFRESH_MS = 60_000
"""For a page, which is looked at again and again."""
_WAIT_SECONDS = 0.5
_REFRESH_SECONDS = 1.5
_IN_ALL_SECONDS = 2.5
"""How long a first answer may take. The search without an index gets the rest of it, but at least
`_SCAN_SECONDS`."""
_SCAN_SECONDS = 0.5

_RECENT_MS = 4 * 3_600_000
_MOST_RECENT = 20


class AvailableCode(NamedTuple):
    code: Code | None
    root: str
    state: IndexState


NO_CODE = AvailableCode(None, "", IndexState("none", None, 0, 0))


_Answer = TypeVar("_Answer")


class _OutOfTime(Exception):
    """More has changed than can be read in time. The files that were read stay in the index."""


def codebase_here(memory: Memory) -> Codebase | None:
    """The code of the current project; None if there is none."""
    # Outside of a project, a folder may hold anything.
    if memory.project is not None:
        with suppress(PathRefused, GitFailure):
            return indexing.codebase_at(memory.environment)
    return None


def with_code(
    codebase: Codebase | None, question: str, answer: Callable[[AvailableCode], _Answer]
) -> _Answer:
    """Compute an answer with the code that is available. A damaged index is rebuilt first."""
    if codebase is None:
        return answer(NO_CODE)

    def attempt() -> _Answer:
        with open_now(codebase, question) as at_hand:
            return answer(at_hand)

    try:
        return attempt()
    except (sqlite3.DatabaseError, ValueError, IndexError, IndexCorrupt):
        try:
            if not indexing.remove_damaged(codebase):
                raise
        except (LockConflict, DiskFailure):
            # Another process rebuilds the index, or nothing can be written here.
            return answer(NO_CODE._replace(root=codebase.place.root))
    return attempt()


@contextmanager
def open_now(codebase: Codebase, question: str) -> Iterator[AvailableCode]:
    """Open the code that is available within a moment."""
    code, state = _open_existing(codebase) or _open_first(codebase, question)
    if code is None:
        yield AvailableCode(None, codebase.place.root, IndexState(state, None, 0, 0))
        return
    with code:
        yield AvailableCode(code, codebase.place.root, _index_state(code.connection, state))


@contextmanager
def open_as_it_is(codebase: Codebase) -> Iterator[OpenIndex | None]:
    """Open the index as the last refresh left it, at once; None without one. It is built or
    refreshed in the background."""
    opened = indexing.open_at_once(codebase)
    if opened is None:
        _refresh_behind(codebase)
        yield None
        return
    with opened:
        _, refreshed_ms = _size_and_age(opened.code.connection)
        if refreshed_ms is None or not 0 <= clock.now_ms() - refreshed_ms < _RECENT_REFRESH_MS:
            _refresh_behind(codebase)
        yield opened


def open_if_quick(codebase: Codebase) -> Code | None:
    """Open the index for a command that looks up names, as fresh as possible in a moment. The
    caller closes it.

    None if there is no index. In a large repository, `ctx code index` or `ctx add code` builds it;
    until then these commands work without.
    """
    from ctx.code import file_listing

    place = codebase.place
    if not os.path.isfile(place.database):
        listing = file_listing.list_files(place.root, place.checkout, codebase.ignore_globs)
        if len(listing.files) > FEW_FILES:
            return None
    _refresh_in_time(codebase, _NAMES_SECONDS, with_history=False)
    return indexing.open_readable(codebase)


def recently_edited(code: Code, wall_ms: int) -> list[str]:
    """The files that somebody is working on: recently changed, the newest first.

    If very many files changed, it was a checkout and not a person.
    """
    rows = code.connection.execute(
        "SELECT path FROM files WHERE mtime_ns >= ? ORDER BY mtime_ns DESC LIMIT ?",
        (disk.storable_ns((wall_ms - _RECENT_MS) * 1_000_000), _MOST_RECENT + 1),
    ).fetchall()
    return [path for (path,) in rows] if len(rows) <= _MOST_RECENT else []


def _open_existing(codebase: Codebase) -> tuple[Code, str] | None:
    """Open the existing index, refreshed if that takes only a moment."""
    place = codebase.place
    known = lookup.open_index(place.database, place.root)
    if known is None:
        return None
    files, refreshed_ms = _size_and_age(known.connection)
    if refreshed_ms is not None and files > FEW_FILES:
        if not 0 <= clock.now_ms() - refreshed_ms < _FRESH_MS:
            _refresh_behind(codebase)
        return known, _without_refresh(codebase)
    known.connection.close()
    if refreshed_ms is None:
        # It is being built, or building was interrupted. Half an index is no better than a search.
        return None
    state = "fresh" if _refresh_in_time(codebase) else _without_refresh(codebase)
    code = indexing.open_readable(codebase)
    return (code, state) if code else None


def _open_first(codebase: Codebase, question: str) -> tuple[Code | None, str]:
    """Build a first index if there are few files, else search the files."""
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
        return indexing.open_readable(codebase), "fresh"
    left = max(_IN_ALL_SECONDS - (clock.monotonic() - began), _SCAN_SECONDS)
    results = None
    with suppress(CtxError):
        results = unindexed_search.search(
            codebase.files, questions.read(question).weights, left, files
        )
    # Only now, because the two would slow each other down.
    _refresh_behind(codebase)
    if results is None:
        return None, "none"
    is_made = background_refresh.can_be_written(place)
    return results, "scanned" if is_made else "not writable"


def _refresh_in_time(
    codebase: Codebase, seconds: float = _REFRESH_SECONDS, *, with_history: bool = True
) -> bool:
    is_in_time = clock.deadline(seconds)

    def tick(_done: int, _total: int) -> None:
        if not is_in_time():
            raise _OutOfTime

    # If another process holds the lock or nothing can be written, the index stays as it is.
    try:
        indexing.refresh(codebase, tick, wait_seconds=_WAIT_SECONDS)
        if with_history:
            indexing.read_history(codebase, tick, _WAIT_SECONDS)
    except (_OutOfTime, CtxError):
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
    refreshed_ms = index_file.read_note(connection, "refreshed_at")
    return files, refreshed_ms if isinstance(refreshed_ms, int) else None


def _index_state(connection: Connection, state: str) -> IndexState:
    files, refreshed_ms = _size_and_age(connection)
    commits = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
    at = clock.iso(refreshed_ms) if refreshed_ms is not None else None
    return IndexState(state, at, files, commits)
