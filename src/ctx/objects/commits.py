"""History: walking it, and finding the current heads; and the uncommitted steps of a session.

A missing parent (after a cherry-pick, a squash, a revert or in a shallow clone) is a boundary: the
walk stops there and continues elsewhere.
"""

import heapq
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ctx.errors import CtxError, ObjectNotFound
from ctx.ids import ObjectId
from ctx.objects.object_store import DAMAGE, Reader, read_typed
from ctx.objects.object_types import Commit, WorkCommit

# Otherwise each commit of a long chain would be followed to its end.
_MOST_AMENDED = 100


class Head(NamedTuple):
    """A commit that has no child here."""

    id: ObjectId
    commit: Commit


class WalkedCommit(NamedTuple):
    """A commit on a walk, or a boundary."""

    id: ObjectId
    commit: Commit | None


def walk(reader: Reader, starts: Iterable[ObjectId]) -> Iterator[WalkedCommit]:
    """Every commit reachable from `starts`, each once, newest first, children before parents.

    A commit is never older than its parents (see `timestamp`), so the order of times is an order of
    history. Boundaries have no time and come last.
    """
    return _walk(reader, starts, (ObjectNotFound,))


def walk_past_damage(reader: Reader, starts: Iterable[ObjectId]) -> Iterator[WalkedCommit]:
    """The same, with unreadable commits as boundaries, so that one damaged file hides as little as
    possible."""
    return _walk(reader, starts, (ObjectNotFound, *DAMAGE))


def _walk(
    reader: Reader, starts: Iterable[ObjectId], boundary: tuple[type[CtxError], ...]
) -> Iterator[WalkedCommit]:
    starts = list(starts)
    visited = set(starts)
    boundaries = []
    queue: list[tuple[int, ObjectId, Commit]] = []

    def enter(id: ObjectId) -> None:
        try:
            commit = read_typed(reader, id, Commit)
        except boundary:
            boundaries.append(id)
        else:
            heapq.heappush(queue, (-commit.timestamp_unix, id, commit))

    for id in starts:
        enter(id)
    while queue:
        _, id, commit = heapq.heappop(queue)
        yield WalkedCommit(id, commit)
        for parent in commit.parents:
            if parent not in visited:
                visited.add(parent)
                enter(parent)
    for id in boundaries:
        yield WalkedCommit(id, None)


def newest(reader: Reader, named: Iterable[ObjectId]) -> tuple[ObjectId, ...]:
    """The heads that no other head descends from or amends.

    A crash between creating a head and removing the previous one leaves both. A head that cannot be
    read counts, unless another commit amends or follows it.
    """
    heads = set(named)
    if len(heads) < 2:
        return tuple(heads)
    times = [_time(reader, id) for id in heads]
    oldest = None if None in times else min(time for time in times if time is not None)
    overtaken: set[ObjectId | None] = set()
    for _, commit in walk_past_damage(reader, heads):
        if commit is None or (oldest is not None and commit.timestamp_unix < oldest):
            break
        overtaken.update(commit.parents)
        overtaken.update({commit.amends, *commit.replaced})
    return tuple(sorted(heads - overtaken))


def _time(reader: Reader, id: ObjectId) -> int | None:
    try:
        return read_typed(reader, id, Commit).timestamp_unix
    except (ObjectNotFound, *DAMAGE):
        return None


def contain(reader: Reader, heads: Iterable[ObjectId], wanted: Iterable[ObjectId]) -> bool:
    """Whether the history of the heads contains these commits or amends them."""
    missing = set(wanted)
    amended = AmendedCommits(reader)
    for id, commit in walk_past_damage(reader, heads):
        if not missing:
            return True
        missing.discard(id)
        if commit is not None:
            missing.difference_update(amended.by(commit))
    return not missing


class AmendedCommits:
    """Which commits are amended by others. Each is read once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[ObjectId, tuple[ObjectId, ...]] = {}

    def by(self, commit: Commit) -> tuple[ObjectId, ...]:
        """Every commit that one amends, the last first."""
        if commit.replaced or commit.amends is None:
            return commit.replaced
        # Earlier versions recorded only the last one.
        amended = [commit.amends]
        while len(amended) < _MOST_AMENDED and (earlier := self._directly(amended[-1])):
            amended += earlier
            if len(earlier) > 1:
                break
        return tuple(amended)

    def _directly(self, id: ObjectId) -> tuple[ObjectId, ...]:
        if id not in self._known:
            self._known[id] = ()
            # It may be collected, or not be a commit.
            with suppress(ObjectNotFound, *DAMAGE):
                commit = read_typed(self._reader, id, Commit)
                alone = (commit.amends,) if commit.amends else ()
                self._known[id] = commit.replaced or alone
        return self._known[id]


def timestamp(now: int, parents: Iterable[Commit]) -> int:
    """The time of a new commit: now, but never before its parents."""
    return max([now, *(parent.timestamp_unix for parent in parents)])


class WorkStep(NamedTuple):
    """One step of a session's uncommitted work."""

    id: ObjectId
    work: WorkCommit


def work_chain(reader: Reader, tip: ObjectId | None) -> list[WorkStep]:
    """The steps up to a work commit, newest first."""
    steps = []
    while tip is not None:
        work = read_typed(reader, tip, WorkCommit)
        steps.append(WorkStep(tip, work))
        tip = work.parents[0] if work.parents else None
    return steps
