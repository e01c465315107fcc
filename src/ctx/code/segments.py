"""Reading the stored words of files and commit messages, and which of them are current."""

from array import array
from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code.file_words import FILE_FIELDS, MESSAGE_FIELDS

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
