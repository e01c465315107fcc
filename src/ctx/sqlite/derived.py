"""Derived files: built under a temporary name, sealed, renamed into place, never written again."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import BinaryIO

from ctx import clock, disk
from ctx.errors import CtxError, IndexCorrupt
from ctx.sqlite.connection import (
    IMMUTABLE,
    JOURNALS,
    Change,
    closed_on_failure,
    connect,
    expect_mark,
    explain_errors,
    folder_of,
    integrity_problems,
    mark,
    path_text,
    temporary_file,
    transaction,
)

_SEAL_MARK = b"CTXSEAL1"
SEAL_SIZE = len(_SEAL_MARK) + 8 + 32
_SECTOR = 512  # SQLite file sizes are a multiple of this; the seal comes after.
_READ_SIZE = 1 << 20
_SMALL = 1 << 20  # Small enough to hash at each opening.


def open_derived(path: str, *, application_id: int, version: int, build: Change) -> Connection:
    """Open a derived file for reading; build it if it is missing, damaged or of another version."""
    try:
        return read_derived(path, application_id=application_id, version=version)
    except IndexCorrupt:
        return build_derived(path, application_id=application_id, version=version, build=build)


def read_derived(path: str, *, application_id: int, version: int) -> Connection:
    """Open a derived file for reading, or raise `IndexCorrupt`."""
    with explain_errors(path, IndexCorrupt):
        _verify_seal(path)
        with closed_on_failure(connect(path, IMMUTABLE)) as connection:
            expect_mark(connection, path_text(path), application_id, version)
            return connection


def build_derived(
    path: str, *, application_id: int, version: int, build: Change, source: str | None = None
) -> Connection:
    """Build a derived file, put it in place, and open it for reading.

    With a source, `build` changes a copy of that derived file; damage in it raises `IndexCorrupt`
    and is not passed on. Several processes may build the same file at once: each builds its own,
    all are complete, and the last one stays.
    """
    with explain_errors(path, IndexCorrupt), disk.explain_errors("building an index"):
        disk.make_folder(folder_of(path))
        with temporary_file(path) as temporary:
            if source is not None:
                with open(temporary, "wb") as copy:
                    copy.writelines(_bytes_before_seal(source))
            with closing(connect(temporary, "mode=rw")) as building:
                # The file is private until it is sealed, and discarded after a crash.
                building.execute("PRAGMA journal_mode = MEMORY")
                building.execute("PRAGMA synchronous = OFF")
                with transaction(building):
                    mark(building, application_id, version)
                    build(building)
            seal(temporary)
            # Opened before the rename, so that the connection is to this file.
            with closed_on_failure(connect(temporary, IMMUTABLE)) as connection:
                # We open it as immutable, which ignores journals. Other programs would apply
                # journals of an earlier file.
                for suffix in JOURNALS:
                    disk.discard(path + suffix)
                os.replace(temporary, path)
                disk.sync_folder(folder_of(path))
                return connection


def check_derived(path: str) -> list[str]:
    """The problems of a derived file, with every byte checked; empty if none. Never raises."""
    try:
        with explain_errors(path, IndexCorrupt):
            for _ in _bytes_before_seal(path):
                pass
            with closing(connect(path, IMMUTABLE)) as connection:
                return integrity_problems(connection)
    except CtxError as error:
        return [error.message]


def seal(path: str) -> None:
    """Append a checksum of all its bytes to a closed SQLite file, and sync it.

    The seal is after the last page, where SQLite does not look, so one rename moves both. It also
    contains the file's modification time, set one second back, so that any later write, even an
    immediate one, changes it.
    """
    sealed_at = clock.now_s() - 1
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        file.truncate(size - size % _SECTOR)
        digest = hashlib.sha256()
        while part := file.read(_READ_SIZE):
            digest.update(part)
        head = _SEAL_MARK + sealed_at.to_bytes(8, "big")
        digest.update(head)
        file.write(head + digest.digest())
        file.flush()
        os.utime(file.fileno(), (sealed_at, sealed_at))
        disk.sync(file.fileno())


def _verify_seal(path: str) -> None:
    """Raise `IndexCorrupt` if a derived file differs from what was sealed.

    A large file with the modification time in the seal was neither written nor copied since, and is
    not read. Only a failing disk could have changed it, and `check_derived` detects that.
    """
    with _open_for_reading(path) as file:
        status = os.fstat(file.fileno())
        sealed_at = int.from_bytes(_seal_head(path, file)[len(_SEAL_MARK) :], "big")
    if status.st_size <= _SMALL or status.st_mtime_ns != sealed_at * 1_000_000_000:
        for _ in _bytes_before_seal(path):
            pass


def _bytes_before_seal(path: str) -> Iterator[bytes]:
    """The bytes before the seal; raises `IndexCorrupt` after the last one if they differ."""
    with _open_for_reading(path) as file:
        head = _seal_head(path, file)
        left = file.tell() - len(head)
        file.seek(0)
        digest = hashlib.sha256()
        while part := file.read(min(left, _READ_SIZE)):
            left -= len(part)
            digest.update(part)
            yield part
        digest.update(head)
        file.seek(len(head), os.SEEK_CUR)
        if file.read() != digest.digest():
            raise IndexCorrupt(f"The index {path_text(path)} is damaged: its checksum is wrong.")


def _seal_head(path: str, file: BinaryIO) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size % _SECTOR == SEAL_SIZE:
        file.seek(size - SEAL_SIZE)
        head = file.read(len(_SEAL_MARK) + 8)
        if head.startswith(_SEAL_MARK):
            return head
    raise IndexCorrupt(f"The index {path_text(path)} is damaged: it has no seal.")


@contextmanager
def _open_for_reading(path: str) -> Iterator[BinaryIO]:
    with disk.explain_errors("reading an index"):
        try:
            file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError as error:
            raise IndexCorrupt(f"There is no index {path_text(path)}.") from error
        with file:
            yield file
