"""The meaning of commit messages: a fingerprint for each of the newest small commits.

A fingerprint has one bit per dimension of the vector of the subject line: its sign. Two texts with
a similar meaning share most of their bits, even if they share no words.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from operator import getitem
from sqlite3 import Connection

from ctx.code.history.history_tables import pack, unpack

MOST_FILES = 12
"""The number of files of a commit that still says what its files are for."""
NEWEST = 5_000
"""Older commits say little about today's files."""
_LIKELY = 400


def without_fingerprint(connection: Connection) -> list[tuple[int, str]]:
    """The ids and subjects of the newest small commits that have no fingerprint yet."""
    known = all_fingerprints(connection)
    rows = connection.execute(
        "SELECT id, subject FROM commits WHERE length(files) BETWEEN 4 AND ?"
        " ORDER BY time DESC, id DESC LIMIT ?",
        (4 * 4 * MOST_FILES, NEWEST),
    )
    return [(id, subject) for id, subject in rows if id not in known]


def add(connection: Connection, added: Iterable[tuple[int, bytes]]) -> None:
    _store(connection, all_fingerprints(connection) | dict(added))


def remove(connection: Connection, commits: Iterable[int]) -> None:
    """Remove the fingerprints of commits that are no longer part of the history."""
    by_commit = all_fingerprints(connection)
    gone = by_commit.keys() & commits
    if gone:
        _store(connection, {id: own for id, own in by_commit.items() if id not in gone})


def fingerprint(vector: Sequence[float]) -> bytes:
    bits = 0
    for value in vector:
        bits = bits << 1 | (value > 0)
    return bits.to_bytes(len(vector) // 8, "big")


def nearest(connection: Connection, vector: Sequence[float], limit: int) -> dict[int, float]:
    """The commits whose subjects are closest in meaning to a vector of length 1, with the
    similarity of each."""
    by_commit = all_fingerprints(connection)
    own = int.from_bytes(fingerprint(vector), "big")
    # The bits that differ tell which ones are near. Only those are compared with the vector itself.
    differing = {
        id: (own ^ int.from_bytes(bits, "big")).bit_count() for id, bits in by_commit.items()
    }
    likely = sorted(differing, key=differing.__getitem__)[:_LIKELY]
    sums = _sums_by_byte(vector)
    scale = len(vector) ** -0.5
    near = {id: scale * sum(map(getitem, sums, by_commit[id])) for id in likely}
    return {id: near[id] for id in heapq.nlargest(limit, near, key=near.__getitem__)}


def all_fingerprints(connection: Connection) -> dict[int, bytes]:
    """The fingerprints by the id of the commit."""
    row = connection.execute("SELECT commits, fingerprints FROM commit_meanings").fetchone()
    if row is None or not row[0]:
        return {}
    commits, joined = unpack(row[0]), row[1]
    size = len(joined) // len(commits)
    every = (joined[at : at + size] for at in range(0, len(joined), size))
    return dict(zip(commits, every, strict=True))


def _store(connection: Connection, by_commit: Mapping[int, bytes]) -> None:
    connection.execute("DELETE FROM commit_meanings")
    if by_commit:
        values = pack(list(by_commit)), b"".join(by_commit.values())
        connection.execute("INSERT INTO commit_meanings VALUES (?, ?)", values)


def _sums_by_byte(vector: Sequence[float]) -> list[list[float]]:
    """For each byte of a fingerprint and each value of it, the sum of eight dimensions, each with
    the sign of its bit."""
    halves = [_signed_sums(vector[start : start + 4]) for start in range(0, len(vector), 4)]
    return [
        [first + second for first in high for second in low]
        for high, low in zip(halves[::2], halves[1::2], strict=True)
    ]


def _signed_sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [sum for below in sums for sum in (below - value, below + value)]
    return sums
