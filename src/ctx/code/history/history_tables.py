"""The tables of history in `code.db`, and how lists of ids are packed into them."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from sqlite3 import Connection

LARGEST_SHARED = 30
"""A larger commit does not show which of its files belong together."""

SCHEMA = """
CREATE TABLE history_state (
    head TEXT,                  -- NULL while commits are being added or removed
    folder TEXT NOT NULL,       -- the project's root, relative to the top of the checkout
    edge TEXT NOT NULL,         -- the commits at the boundary of a shallow clone
    most INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    reader TEXT NOT NULL,       -- the process that updates it; a later process takes over
    lately BLOB NOT NULL        -- ids of paths that small commits touched, sorted; then the age of
                                -- each, in seconds before the newest commit
);
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    time INTEGER NOT NULL,
    subject TEXT NOT NULL,
    body BLOB NOT NULL,         -- zlib
    files BLOB                  -- ids of paths; NULL if git cannot list them
);
CREATE INDEX commits_by_hash ON commits (substr(hash, 1, 4));
CREATE INDEX commits_by_time ON commits (time DESC);
CREATE TABLE history_paths (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    key INTEGER NOT NULL,       -- an index of the paths themselves would be four times as large
    commits BLOB NOT NULL       -- ids of commits
);
CREATE INDEX history_paths_by_key ON history_paths (key);
CREATE TABLE renames (
    commit_id INTEGER NOT NULL,
    old_id INTEGER NOT NULL,
    new_id INTEGER NOT NULL,
    PRIMARY KEY (commit_id, old_id)
) WITHOUT ROWID;
CREATE INDEX renames_by_old ON renames (old_id);
CREATE INDEX renames_by_new ON renames (new_id);
CREATE TABLE commit_meanings (
    commits BLOB NOT NULL,      -- ids; all in one row, because every question reads all of them
    fingerprints BLOB NOT NULL  -- one bit per dimension of the vector of each subject
);
"""


def pack(ids: Sequence[int]) -> bytes:
    """Four bytes per id, so that a list can be extended by appending."""
    return struct.pack(f"<{len(ids)}I", *ids)


def unpack(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed) // 4}I", packed)


def shrink(body: str) -> bytes:
    return zlib.compress(body.encode()) if body else b""


def unshrink(body: bytes) -> str:
    return zlib.decompress(body).decode() if body else ""


def key_of(path: str) -> int:
    """A number to look up a path by. Two paths may have the same number."""
    return zlib.crc32(path.encode())


def messages(connection: Connection) -> Iterator[str]:
    """The bodies of all commit messages."""
    for (body,) in connection.execute("SELECT body FROM commits"):
        yield unshrink(body)
