"""Finds every place below some folders in which a word stands, without the help of ctx.

It looks at the names of files and folders, at the bytes of every file, at what is compressed in
them, and at every value of every table of a database.
"""

import gzip
import os
import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_ZSTD = b"\x28\xb5\x2f\xfd"
_SEAL = b"\x50\x2a\x4d\x18"


def places(word: str, *roots: Path) -> list[str]:
    """The places that contain a word, in any case and with any separator between its parts."""
    parts = [re.escape(part.encode()) for part in word.split("-")]
    pattern = re.compile(rb"(?:[\s_-]|\\[nrt])+".join(parts), re.IGNORECASE)
    found = []
    for root in roots:
        for here, folders, names in os.walk(root):
            named = [name for name in (*folders, *names) if pattern.search(os.fsencode(name))]
            inside = os.path.relpath(here, root)
            found += [f"name {os.path.normpath(os.path.join(inside, name))}" for name in named]
            for name in names:
                path = Path(here, name)
                if path.is_file() and not path.is_symlink():
                    inside = os.path.relpath(path, root)
                    found += [f"{how} {inside}" for how in _ways(path, pattern)]
    return sorted(set(found))


def _ways(path: Path, pattern: "re.Pattern[bytes]") -> Iterator[str]:
    data = path.read_bytes()
    if pattern.search(data):
        yield "bytes"
    if any(pattern.search(part) for part in _unpacked(data)):
        yield "compressed"
    if data.startswith(b"SQLite format 3"):
        yield from _rows(path, pattern)


def _rows(path: Path, pattern: "re.Pattern[bytes]") -> Iterator[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        with suppress(sqlite3.DatabaseError):
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                with suppress(sqlite3.DatabaseError):
                    for row in connection.execute(f'SELECT * FROM "{table.decode()}"'):
                        values = [value for value in row if isinstance(value, bytes)]
                        every = (part for value in values for part in (value, *_unpacked(value)))
                        if any(pattern.search(part) for part in every):
                            yield f"table {table.decode()} of"


def _unpacked(data: bytes) -> Iterator[bytes]:
    """What is compressed in some bytes: frames of zstd, one after the other, zlib or gzip."""
    while data[:4] in (_ZSTD, _SEAL):
        if data[:4] == _SEAL:
            data = data[12:]
            continue
        reader = zstd.ZstdDecompressor()
        try:
            yield reader.decompress(data)
        except zstd.ZstdError:
            return
        data = reader.unused_data
    if data[:2] in (b"\x78\x9c", b"\x78\x01", b"\x78\xda"):
        with suppress(zlib.error):
            yield zlib.decompress(data)
    if data[:2] == b"\x1f\x8b":
        with suppress(OSError, EOFError, zlib.error):
            yield gzip.decompress(data)
