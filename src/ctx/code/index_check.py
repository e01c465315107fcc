"""Compare the code index with the files, by their stamps.

Most refreshes find that nothing has changed, so this loads nothing that reads or resolves files.
"""

from collections.abc import Iterable
from hashlib import blake2b
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.checkouts import Checkout
from ctx.code import generated_files, grammars, index_file, postings
from ctx.code.file_listing import ExcludedPath, FileListing, ListedFile
from ctx.code.language_detection import FileLimits
from ctx.code.vocabulary import LARGEST_FILE

PACKAGES = "packages"
"""Noted while the packages match the files. An interrupted refresh keeps the note correct."""
LIMITS = "limits"
"""A note with a digest of the limits for parsing."""
AT_ONCE = 32
"""If no more files than this are pending, a refresh resolves them: it takes a moment."""


class SourceTree(NamedTuple):
    """The files of a project, and the path of their index."""

    root: str
    checkout: Checkout | None
    database: str
    ignore_globs: tuple[str, ...] = ()
    max_bytes: int = LARGEST_FILE
    """Larger files are not parsed."""


class RefreshCounts(NamedTuple):
    """What a refresh found and did."""

    files: int
    added: int
    changed: int
    removed: int
    resolved: int
    """Files whose mentions were resolved right away."""
    left_out: tuple[ExcludedPath, ...]


class StaleFile(NamedTuple):
    """A file of the index that has to be read again."""

    file_id: int
    file: ListedFile
    hash: bytes | None
    reader: int


class Comparison(NamedTuple):
    changed: list[StaleFile]
    new: list[ListedFile]
    gone: list[int]
    """The ids of deleted files."""


def note_if_current(place: SourceTree, listing: FileListing) -> RefreshCounts | None:
    """If the index matches the files in every respect, note the time; None if it does not."""
    connection = index_file.open_existing(place.database)
    try:
        if not _is_current(connection, place, listing.files):
            return None
        note_refresh(connection, place, listing)
        return RefreshCounts(len(listing.files), 0, 0, 0, 0, tuple(listing.left_out))
    finally:
        connection.close()


def note_refresh(connection: Connection, place: SourceTree, listing: FileListing) -> None:
    with index_file.writing(connection, place.database):
        index_file.note(connection, "refreshed_at", clock.now_ms())
        index_file.note(connection, "left_out", len(listing.left_out))


def _is_current(connection: Connection, place: SourceTree, files: list[ListedFile]) -> bool:
    return (
        index_file.read_note(connection, LIMITS) == limits_digest(place)
        and bool(index_file.read_note(connection, PACKAGES))
        and not any(compare(connection, files))
        and not 0 < len(index_file.unresolved_files(connection)) <= AT_ONCE
        and not postings.is_due(connection, postings.FILES)
    )


def compare(connection: Connection, files: Iterable[ListedFile]) -> Comparison:
    rows = connection.execute(
        "SELECT path, size, mtime_ns, ctime_ns, inode, settled, id, hash, reader, language"
        " FROM files"
    )
    known = {row[0]: row for row in rows}
    changed: list[StaleFile] = []
    new: list[ListedFile] = []
    for file in files:
        row = known.pop(file[0], None)
        if row is None:
            new.append(file)
            continue
        if file != row[:5] or not row[5] or row[8] != grammars.version(row[9]):
            changed.append(StaleFile(row[6], file, row[7], row[8]))
    return Comparison(changed, new, [row[6] for row in known.values()])


def limits(root: str, max_bytes: int) -> FileLimits:
    """What is not parsed in a project, including its own attributes."""
    return FileLimits(max_bytes, generated_files.read_attributes(root))


def limits_digest(place: SourceTree) -> str:
    now = repr(limits(place.root, place.max_bytes))
    return blake2b(now.encode("utf-8", "replace"), digest_size=8).hexdigest()
