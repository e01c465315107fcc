"""The meaning of commit messages: a fingerprint for each of the newest small commits.

A fingerprint has one bit per dimension of the vector of the subject line: its sign. Two texts with
a similar meaning share most of their bits, even if they share no words.
"""

import heapq
from collections.abc import Iterable, Sequence
from sqlite3 import Connection

MOST_FILES = 12
"""The number of files of a commit that still says what its files are for."""
NEWEST = 5_000
"""Older commits say little about today's files."""
_LIKELY = 400


def without_fingerprint(connection: Connection) -> list[tuple[int, str]]:
    """The ids and subjects of the newest small commits that have no fingerprint yet."""
    return connection.execute(
        "SELECT id, subject FROM (SELECT id, subject FROM commits"
        " WHERE length(files) BETWEEN 4 AND ? ORDER BY time DESC, id DESC LIMIT ?)"
        " WHERE id NOT IN (SELECT commit_id FROM commit_meanings)",
        (4 * 4 * MOST_FILES, NEWEST),
    ).fetchall()


def add(connection: Connection, fingerprints: Iterable[tuple[int, bytes]]) -> None:
    connection.executemany("INSERT OR REPLACE INTO commit_meanings VALUES (?, ?)", fingerprints)


def fingerprint(vector: Sequence[float]) -> bytes:
    bits = 0
    for value in vector:
        bits = bits << 1 | (value > 0)
    return bits.to_bytes(len(vector) // 8, "big")


def nearest(connection: Connection, vector: Sequence[float], limit: int) -> dict[int, float]:
    """The commits whose subjects are closest in meaning to a vector of length 1, with the
    similarity of each."""
    rows = connection.execute("SELECT fingerprint, commit_id FROM commit_meanings").fetchall()
    own = int.from_bytes(fingerprint(vector), "big")
    # The bits that differ tell which ones are near. Only those are compared with the vector itself.
    differing = [(own ^ int.from_bytes(bits, "big")).bit_count() for bits, _ in rows]
    likely = sorted(range(len(rows)), key=differing.__getitem__)[:_LIKELY]
    sums = _sums_by_byte(vector)
    scale = len(vector) ** -0.5
    near = {rows[place][1]: scale * _product(sums, rows[place][0]) for place in likely}
    return {id: near[id] for id in heapq.nlargest(limit, near, key=near.__getitem__)}


def _sums_by_byte(vector: Sequence[float]) -> list[list[float]]:
    """For each byte of a fingerprint and each value of it, the sum of eight dimensions, each with
    the sign of its bit."""
    every: list[list[float]] = []
    for start in range(0, len(vector), 8):
        sums = [0.0]
        for value in vector[start : start + 8]:
            sums = [sum for below in sums for sum in (below - value, below + value)]
        every.append(sums)
    return every


def _product(sums: Sequence[Sequence[float]], bits: bytes) -> float:
    return sum([values[byte] for values, byte in zip(sums, bits, strict=True)])
