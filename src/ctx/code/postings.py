"""An inverted index: the files and commit messages that contain a word.

New texts are first stored as *loose* rows, one per text with all its words. When there are many,
they become a *segment*, in which each word has one row with the texts that contain it. A segment is
never changed. A text that is read again becomes a loose row again and counts in no earlier segment;
a deleted text is recorded as deleted. When there are many segments, their current texts are merged.

So writing costs what was read, and a query costs one row per word and segment.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code.file_words import FILE_FIELDS, MESSAGE_FIELDS, WordCounts

MOST_LOOSE = 256
"""With more loose texts than this, a segment is made."""
_MOST_SEGMENTS = 8
_LARGEST_SEGMENT = 1 << 14
"""The maximum number of texts in a segment made of loose ones; it bounds the memory use."""
_POSITIONS = 1 << 16
"""The maximum number of texts in any segment: a position takes two bytes."""


# Writing, inside a transaction


def put(connection: Connection, collection: int, id: int, role: int, counts: WordCounts) -> None:
    """Store the words of a text in place of its previous ones."""
    lengths = array("I", counts.lengths).tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO loose VALUES (?, ?, ?, ?, ?)",
        (collection, id, role, lengths, counts.packed),
    )


def put_segment(
    connection: Connection,
    collection: int,
    ids: Sequence[int],
    roles: bytes,
    lengths: Sequence[Sequence[int]],
    having: Mapping[int, tuple["array[int]", bytes | bytearray]],
) -> None:
    """Write a segment: the text at each position with its role and its length in each field; and
    for each word number, the positions of the texts that contain it, and the counts."""
    segment = _begin_segment(connection, collection, ids, roles, lengths)
    connection.executemany(
        "INSERT INTO postings VALUES (?, ?, ?)",
        (
            (word, segment, positions.tobytes() + times)
            for word, (positions, times) in having.items()
        ),
    )


def _begin_segment(
    connection: Connection,
    collection: int,
    ids: Sequence[int],
    roles: bytes,
    lengths: Sequence[Sequence[int]],
) -> int | None:
    """Write which texts a segment contains. Returns its id, for the words."""
    packed = b"".join(array("I", field).tobytes() for field in lengths)
    words = array("Q", map(sum, lengths)).tobytes()
    return connection.execute(
        "INSERT INTO segments (collection, ids, roles, lengths, words) VALUES (?, ?, ?, ?, ?)",
        (collection, array("I", ids).tobytes(), roles, packed, words),
    ).lastrowid


def remove(connection: Connection, collection: int, ids: Iterable[int]) -> None:
    for id in ids:
        connection.execute("DELETE FROM loose WHERE collection = ? AND id = ?", (collection, id))
        connection.execute("INSERT OR IGNORE INTO gone VALUES (?, ?)", (collection, id))


def clear(connection: Connection, collection: int) -> None:
    connection.execute(
        "DELETE FROM postings WHERE segment IN (SELECT id FROM segments WHERE collection = ?)",
        (collection,),
    )
    for table in ("segments", "loose", "gone"):
        connection.execute(f"DELETE FROM {table} WHERE collection = ?", (collection,))


def is_due(connection: Connection, collection: int) -> bool:
    """Whether so many texts are loose that queries would be slow."""
    return _count(connection, "loose", collection) > MOST_LOOSE


def settle(connection: Connection, collection: int) -> None:
    """Turn loose texts into segments, and merge segments if there are many."""
    while True:
        rows = connection.execute(
            "SELECT id, role, lengths, words FROM loose WHERE collection = ? ORDER BY id LIMIT ?",
            (collection, _LARGEST_SEGMENT),
        ).fetchall()
        if not rows:
            break
        connection.execute(
            "DELETE FROM loose WHERE collection = ? AND id <= ?", (collection, rows[-1][0])
        )
        # A text that is here again is not deleted. This segment replaces its words in earlier ones.
        connection.execute(
            "DELETE FROM gone WHERE collection = ? AND id BETWEEN ? AND ?"
            " AND id IN (SELECT value FROM json_each(?))",
            (collection, rows[0][0], rows[-1][0], str([row[0] for row in rows])),
        )
        _make_segment(connection, collection, rows)
    if _count(connection, "segments", collection) > _MOST_SEGMENTS:
        _merge(connection, collection)


def _count(connection: Connection, table: str, collection: int) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table} WHERE collection = ?", (collection,))
    count: int = row.fetchone()[0]
    return count


_Loose = tuple[int, int, bytes, bytes]


def _make_segment(connection: Connection, collection: int, rows: Sequence[_Loose]) -> None:
    # Not worth importing for a few texts.
    import numpy

    sizes = [len(row[3]) // 5 for row in rows]
    numbers = numpy.concatenate(
        [
            numpy.frombuffer(row[3], numpy.uint32, size)
            for row, size in zip(rows, sizes, strict=True)
        ]
    )
    times = numpy.concatenate(
        [
            numpy.frombuffer(row[3], numpy.uint8, offset=4 * size)
            for row, size in zip(rows, sizes, strict=True)
        ]
    )
    positions = numpy.repeat(numpy.arange(len(rows), dtype=numpy.uint16), sizes)
    order = numpy.argsort(numbers, kind="stable")
    numbers = numbers[order]
    ends = numpy.flatnonzero(numpy.diff(numbers)) + 1
    bounds = [0, *ends.tolist(), len(numbers)] if len(numbers) else []
    lengths = list(zip(*(array("I", row[2]) for row in rows), strict=True))
    ids, roles = [row[0] for row in rows], bytes([row[1] for row in rows])
    segment = _begin_segment(connection, collection, ids, roles, lengths)
    by_word, times_by_word = positions[order].tobytes(), times[order].tobytes()
    connection.executemany(
        "INSERT INTO postings VALUES (?, ?, ?)",
        (
            (word, segment, by_word[2 * start : 2 * end] + times_by_word[start:end])
            for word, (start, end) in zip(
                numbers[bounds[:-1]].tolist(), pairwise(bounds), strict=True
            )
        ),
    )


def _merge(connection: Connection, collection: int) -> None:
    """Merge the current texts of all segments into new ones."""
    segments = [segment for segment in segments_of(connection, collection) if segment.id]
    # The new segment of each text, and its position there.
    moved: dict[int, list[int]] = {}
    ids: array[int] = array("I")
    roles = bytearray()
    lengths: list[array[int]] = [array("I") for _ in FIELDS[collection]]
    for segment in segments:
        target = []
        outdated = frozenset(segment.outdated)
        for position, id in enumerate(segment.ids):
            if position not in outdated:
                target.append(len(ids))
                ids.append(id)
                roles.append(segment.roles[position])
                for field, known in enumerate(segment.lengths):
                    lengths[field].append(known[position])
            else:
                target.append(-1)
        moved[segment.id] = target
    named = str([segment.id for segment in segments])
    rows = connection.execute(
        "SELECT word, segment, texts FROM postings"
        " WHERE segment IN (SELECT value FROM json_each(?)) ORDER BY word, segment DESC",
        (named,),
    ).fetchall()
    connection.execute(
        "DELETE FROM postings WHERE segment IN (SELECT value FROM json_each(?))", (named,)
    )
    connection.execute("DELETE FROM segments WHERE collection = ?", (collection,))
    connection.execute("DELETE FROM gone WHERE collection = ?", (collection,))
    made = []
    for first in range(0, len(ids), _POSITIONS):
        span = slice(first, first + _POSITIONS)
        own = [field[span] for field in lengths]
        made.append(_begin_segment(connection, collection, ids[span], bytes(roles[span]), own))
    connection.executemany(
        "INSERT INTO postings VALUES (?, ?, ?)", _moved_postings(rows, moved, made)
    )


def _moved_postings(
    rows: list[tuple[int, int, bytes]], moved: dict[int, list[int]], made: list[int | None]
) -> Iterator[tuple[int, int | None, bytes]]:
    """The postings with the positions in the new segments."""
    place = 0
    while place < len(rows):
        word = rows[place][0]
        blocks: dict[int, tuple[array[int], bytearray]] = {}
        while place < len(rows) and rows[place][0] == word:
            _, segment, texts = rows[place]
            target = moved[segment]
            for position, times in zip(*texts_of(texts), strict=True):
                new = target[position]
                if new >= 0:
                    block = blocks.setdefault(new // _POSITIONS, (array("H"), bytearray()))
                    block[0].append(new % _POSITIONS)
                    block[1].append(times)
            place += 1
        for number, (positions, counts) in sorted(blocks.items()):
            yield word, made[number], positions.tobytes() + counts


FILES, COMMITS = range(2)
"""The two collections of texts. A word that is rare in one may be common in the other."""

FIELDS = {FILES: FILE_FIELDS, COMMITS: MESSAGE_FIELDS}

SCHEMA = """
CREATE TABLE loose (
    collection INTEGER NOT NULL,
    id INTEGER NOT NULL,            -- of the file, or the commit
    role INTEGER NOT NULL,
    lengths BLOB NOT NULL,          -- words in each field, four bytes each
    words BLOB NOT NULL,            -- see words.py
    PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    ids BLOB NOT NULL,              -- of the texts in it; a position is a place in this list
    roles BLOB NOT NULL,            -- a byte each
    lengths BLOB NOT NULL,          -- words in the first field, four bytes each; in the next …
    words BLOB NOT NULL             -- in all texts together in each field, eight bytes each
);
CREATE TABLE postings (
    word INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    texts BLOB NOT NULL,            -- positions, two bytes each; how often, a byte each
    PRIMARY KEY (word, segment)
) WITHOUT ROWID;
CREATE TABLE gone (
    collection INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (collection, id)
) WITHOUT ROWID;
"""


class Segment(NamedTuple):
    """Texts that are queried together; the loose ones form one segment too."""

    id: int
    """0: the loose texts."""
    ids: Sequence[int]
    roles: bytes
    lengths: Sequence[Sequence[int]]
    """By field and text."""
    words: Sequence[int]
    """The sums of these, by field."""
    outdated: Sequence[int]
    """The positions of texts that have changed or are deleted."""


def segments_of(connection: Connection, collection: int) -> list[Segment]:
    """All segments, the newest first."""
    fields = len(FIELDS[collection])
    gone = {
        id
        for (id,) in connection.execute("SELECT id FROM gone WHERE collection = ?", (collection,))
    }
    newest_first = []
    rows = connection.execute(
        "SELECT id, role, lengths FROM loose WHERE collection = ? ORDER BY id", (collection,)
    ).fetchall()
    newer: set[int] = set()
    if rows:
        loose = [row[0] for row in rows]
        told_of_each = list(zip(*(array("I", row[2]) for row in rows), strict=True))
        roles_of_each = bytes(row[1] for row in rows)
        words_of_all = list(map(sum, told_of_each))
        newest_first.append(Segment(0, loose, roles_of_each, told_of_each, words_of_all, ()))
        newer.update(loose)
    newer |= gone
    segments = connection.execute(
        "SELECT id, ids, roles, lengths, words FROM segments WHERE collection = ? ORDER BY id DESC",
        (collection,),
    ).fetchall()
    for place, (id, packed, roles, packed_lengths, words) in enumerate(segments):
        ids = array("I", packed)
        length = len(packed_lengths) // fields
        lengths = [
            array("I", packed_lengths[field * length : (field + 1) * length])
            for field in range(fields)
        ]
        outdated: Sequence[int] = ()
        if newer and not newer.isdisjoint(ids):
            outdated = [position for position, number in enumerate(ids) if number in newer]
        if place < len(segments) - 1:
            newer.update(ids)
        newest_first.append(Segment(id, ids, roles, lengths, array("Q", words), outdated))
    return newest_first


def texts_of(packed: bytes) -> tuple["array[int]", bytes]:
    """The positions of the texts that contain a word, and the counts."""
    count = len(packed) // 3
    positions = array("H")
    positions.frombytes(packed[: 2 * count])
    return positions, packed[2 * count :]
