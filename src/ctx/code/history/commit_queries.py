"""Queries on the history of a project: by file, by words, by time."""

import heapq
import json
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import compress
from sqlite3 import Connection
from typing import NamedTuple

from ctx import layout, terms
from ctx.code.bm25 import Bm25Collection
from ctx.code.file_words import EXPLANATION, SUBJECT
from ctx.code.history.history_tables import LARGEST_SHARED, key_of, unpack, unshrink
from ctx.code.postings import COMMITS
from ctx.sqlite.connection import snapshot

_NEWEST_SHARED = 2000
_SUBJECT_COUNTS = 2.0
_MOST_RENAMES = 30
_NEVER = 1 << 62


class IndexedGitCommit(NamedTuple):
    hash: str
    time: int
    """The time of the commit, in seconds since 1970."""
    subject: str
    body: str


class CommitMatch(NamedTuple):
    commit: IndexedGitCommit
    score: float


class CoChange(NamedTuple):
    """A file that was changed in the same commits as the given one."""

    path: str
    times: int
    share: float
    """The share of the commits of the given file."""


def commits_of(connection: Connection, path: str, limit: int) -> list[IndexedGitCommit]:
    """The commits that touched a file, under its earlier names too; the newest first."""
    return _newest(connection, _trail(connection, path), limit)


def commits_inside(connection: Connection, folder: str, limit: int) -> list[IndexedGitCommit]:
    """The commits that touched any file in a folder, the newest first; `.` is the root."""
    ids: set[int] = set()
    beginning = "" if folder == "." else f"{folder}/"
    if beginning and layout.unfit_name(folder):
        return []
    for (packed,) in connection.execute(
        "SELECT commits FROM history_paths WHERE substr(path, 1, ?) = ?",
        (len(beginning), beginning),
    ):
        ids.update(unpack(packed))
    return _newest(connection, sorted(ids), limit)


def files_of(connection: Connection, hash: str) -> list[str]:
    """The files that a commit touched, sorted; none for a merge."""
    name = bytes.fromhex(hash)
    row = connection.execute(
        "SELECT files FROM commits WHERE substr(hash, 1, 4) = ? AND hash = ?", (name[:4], name)
    ).fetchone()
    return sorted(_names(connection, unpack(row[0] or b"")).values()) if row else []


def changed_together(connection: Connection, path: str, limit: int) -> list[CoChange]:
    """The files that change together with a file, the closest first.

    A commit of two files connects them more than one of thirty, and a file that changes all the
    time is connected to none. Only small commits count, and only the newest ones of the file.
    """
    own = connection.execute(
        "SELECT time, files FROM commits WHERE id IN (SELECT value FROM json_each(?))"
        " AND length(files) <= ? ORDER BY time DESC, hash LIMIT ?",
        (json.dumps(_trail(connection, path)), 4 * LARGEST_SHARED, _NEWEST_SHARED),
    ).fetchall()
    itself = _id_of(connection, path)
    if itself is None:
        return []
    heir = _heirs(connection)
    times: Counter[int] = Counter()
    ties: defaultdict[int, float] = defaultdict(float)
    for time, packed in own:
        others = {heir(id, time) for id in unpack(packed)} - {itself, heir(itself, time)}
        for other in others:
            times[other] += 1
            ties[other] += 1 / len(others)
    total = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
    for id, touched in connection.execute(
        "SELECT id, length(commits) / 4 FROM history_paths"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(times)),),
    ):
        ties[id] *= math.log(1 + total / max(touched, times[id]))
    names = _names(connection, times)
    closest = sorted(times, key=lambda id: (-ties[id], names[id]))
    return [CoChange(names[id], times[id], times[id] / len(own)) for id in closest[:limit]]


def search(connection: Connection, words: str, limit: int) -> list[CommitMatch]:
    """The commits whose messages contain any of the words, the best first."""
    fields = {SUBJECT: _SUBJECT_COUNTS, EXPLANATION: 1.0}
    scores = message_scores(connection, fields, dict.fromkeys(terms.query(words), 1.0))
    # Among equal scores, the newest.
    bar = heapq.nlargest(max(limit, 1), scores.values())[-1] if scores else 0.0
    best = [id for id, score in scores.items() if score >= bar]
    named = _newest_by_id(connection, best, limit=None)
    ranked = sorted(named, key=lambda id: (-scores[id], -named[id].time, named[id].hash))
    return [CommitMatch(named[id], scores[id]) for id in ranked[:limit]]


def message_scores(
    connection: Connection, fields: Mapping[str, float], weights: Mapping[str, float]
) -> dict[int, float]:
    """The scores of commit messages for weighted terms; only those above zero."""
    with snapshot(connection):
        scores = Bm25Collection(connection, COMMITS).scores(fields, weights)
    by_commit: dict[int, float] = {}
    for segment, totals, _ in scores:
        ids = segment.ids
        by_commit.update((ids[place], totals[place]) for place in compress(range(len(ids)), totals))
    return by_commit


def ages(connection: Connection, paths: Iterable[str]) -> dict[str, int]:
    """For existing files, the seconds between their last commit and the newest commit, based on the
    newest small commits."""
    row = connection.execute("SELECT lately FROM history_state").fetchone()
    recent = unpack(row[0] if row else b"")
    count = len(recent) // 2
    by_path: dict[str, int] = {}
    for id, path in connection.execute(
        "SELECT id, path FROM history_paths WHERE key IN (SELECT value FROM json_each(?))",
        (str([key_of(path) for path in paths]),),
    ):
        place = bisect_left(recent, id, 0, count)
        if place < count and recent[place] == id:
            by_path[path] = recent[count + place]
    return by_path


def current_name(connection: Connection, path: str, time: int) -> str | None:
    """The current name of a file, given its name at a time; None if git does not know it."""
    known = _id_of(connection, path)
    if known is None:
        return None
    heir = _heirs(connection)(known, time)
    return _names(connection, [heir]).get(heir)


def _newest(connection: Connection, ids: list[int], limit: int) -> list[IndexedGitCommit]:
    return list(_newest_by_id(connection, ids, limit).values())


def _newest_by_id(
    connection: Connection, ids: list[int], limit: int | None
) -> dict[int, IndexedGitCommit]:
    rows = connection.execute(
        "SELECT id, hash, time, subject, body FROM commits"
        " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY time DESC, hash LIMIT ?",
        (json.dumps(ids), -1 if limit is None else limit),
    )
    return {
        id: IndexedGitCommit(hash.hex(), time, subject, unshrink(body))
        for id, hash, time, subject, body in rows
    }


def _trail(connection: Connection, path: str) -> list[int]:
    """The commits of a file: those that touched it, and those that touched its earlier names before
    each rename."""
    start = _id_of(connection, path)
    if start is None:
        return []
    away = connection.execute("SELECT commit_id FROM renames WHERE old_id = ?", (start,))
    commits = {id for (id,) in away}
    names: set[int] = set()
    # The later its end, the more of a name's commits count: that name goes first, and each only
    # once.
    waiting = [(-_NEVER, start)]
    while waiting:
        end, name = heapq.heappop(waiting)
        if name in names:
            continue
        names.add(name)
        row = connection.execute("SELECT commits FROM history_paths WHERE id = ?", (name,))
        touching = json.dumps(unpack(row.fetchone()[0]))
        commits.update(
            id
            for (id,) in connection.execute(
                "SELECT id FROM commits WHERE id IN (SELECT value FROM json_each(?)) AND time <= ?",
                (touching, -end),
            )
        )
        for old, time in connection.execute(
            "SELECT old_id, time FROM renames JOIN commits ON id = commit_id"
            " WHERE new_id = ? AND time <= ?",
            (name, -end),
        ):
            heapq.heappush(waiting, (-time, old))
    return sorted(commits)


def _heirs(connection: Connection) -> Callable[[int, int], int]:
    """A function that returns the current name of a file that had a name at a time."""

    @cache
    def renamed(id: int) -> list[tuple[int, int]]:
        return connection.execute(
            "SELECT time, new_id FROM renames JOIN commits ON id = commit_id"
            " WHERE old_id = ? ORDER BY time, hash",
            (id,),
        ).fetchall()

    def heir(id: int, time: int) -> int:
        # Renames back and forth within one second would form a loop.
        for _ in range(_MOST_RENAMES):
            step = next((step for step in renamed(id) if step[0] >= time), None)
            if step is None:
                break
            time, id = step
        return id

    return heir


def _id_of(connection: Connection, path: str) -> int | None:
    if layout.unfit_name(path):
        return None
    row = connection.execute(
        "SELECT id FROM history_paths WHERE key = ? AND path = ?", (key_of(path), path)
    ).fetchone()
    return row[0] if row else None


def _names(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    return dict(
        connection.execute(
            "SELECT id, path FROM history_paths WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
    )
