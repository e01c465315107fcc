"""History: walking it, and telling which heads count.

A parent that is not here (after a cherry-pick, a squash, a revert or in a shallow clone) is a
boundary: the walk stops there and goes on elsewhere.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctx.errors import ObjectNotFound
from ctx.ids import ObjectId
from ctx.objects.model import Commit
from ctx.objects.store import Reader, read_typed


class Head(NamedTuple):
    """A commit that has no child here."""

    id: ObjectId
    commit: Commit


class Visited(NamedTuple):
    """A commit on a walk, or the boundary where one should be."""

    id: ObjectId
    commit: Commit | None


def walk(reader: Reader, starts: Iterable[ObjectId]) -> Iterator[Visited]:
    """Every commit reachable from `starts`, each once, newest first, children before parents.

    A commit is never older than its parents (see `timestamp`), which is what makes the order
    of times an order of history. Boundaries come when their time is unknown: last.
    """
    starts = list(starts)
    seen = set(starts)
    boundaries = []
    queue: list[tuple[int, ObjectId, Commit]] = []

    def enter(id: ObjectId) -> None:
        try:
            commit = read_typed(reader, id, Commit)
        except ObjectNotFound:
            boundaries.append(id)
        else:
            heapq.heappush(queue, (-commit.timestamp_unix, id, commit))

    for id in starts:
        enter(id)
    while queue:
        _, id, commit = heapq.heappop(queue)
        yield Visited(id, commit)
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                enter(parent)
    for id in boundaries:
        yield Visited(id, None)


def newest(reader: Reader, named: Iterable[ObjectId]) -> tuple[ObjectId, ...]:
    """The heads that no other head descends from or amends.

    A crash between making a head and removing the one before it leaves both.
    """
    heads = set(named)
    if len(heads) < 2:
        return tuple(heads)
    oldest = min(read_typed(reader, id, Commit).timestamp_unix for id in heads)
    overtaken: set[ObjectId | None] = set()
    for _, commit in walk(reader, heads):
        if commit is None or commit.timestamp_unix < oldest:
            break
        overtaken.update(commit.parents)
        overtaken.add(commit.amends)
    return tuple(sorted(heads - overtaken))


def contain(reader: Reader, heads: Iterable[ObjectId], wanted: Iterable[ObjectId]) -> bool:
    """Whether the history of the heads has all of these commits, or has amended them."""
    missing = set(wanted)
    unknown = False
    for id, commit in walk(reader, heads):
        if not missing:
            return True
        missing.discard(id)
        amended = commit.amends if commit else None
        while amended is not None:
            missing.discard(amended)
            try:
                amended = read_typed(reader, amended, Commit).amends
            except ObjectNotFound:
                # What it amended in turn was collected; it may well be what is wanted.
                unknown = True
                break
    return not missing or unknown


def timestamp(now: int, parents: Iterable[Commit]) -> int:
    """When a commit is made: now, but never before its parents, whatever the clock says."""
    return max([now, *(parent.timestamp_unix for parent in parents)])
