"""Reads the rows of an SQLite file page by page, without SQLite.

SQLite cannot read a file whose first page is damaged, nor any row behind a damaged page. Here each
page is read by itself, so a row is found even if the pages that lead to it are damaged. The caller
must determine the table of a row, because a page does not name it.

A write-ahead log beside the file counts up to its last complete commit. Free pages are skipped,
because they contain deleted rows.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from ctx import clock

Value = None | int | float | str | bytes

MAGIC = b"SQLite format 3\0"
USUAL_PAGE_SIZE = 4096

_INNER_INDEX = 2
_LEAF_INDEX = 10
_LEAF_TABLE = 13
_FILE_HEADER = 100
_WAL_HEADER = 32
_FRAME_HEADER = 24
_INTEGER_SIZES = (0, 1, 2, 3, 4, 6, 8)


class PageRow(NamedTuple):
    """The values of one cell."""

    keyed: bool
    """Whether it is in an index or in a table without rowid."""
    values: tuple[Value, ...]


@contextmanager
def pages_of(path: str) -> Iterator["Pages"]:
    """The pages of a file, including its write-ahead log."""
    log = f"{path}-wal"
    with (
        open(path, "rb") as file,
        open(log if os.path.exists(log) else os.devnull, "rb") as logged,
    ):
        yield Pages(file, logged)


class Pages:
    """The pages of a file and its log; `unreadable` counts damaged cells and pages."""

    def __init__(self, file: BinaryIO, log: BinaryIO) -> None:
        self.unreadable = 0
        self._file = file
        self._log = log
        header = file.read(_FILE_HEADER)
        self._size = _page_size(header)
        self._logged, count = _frames(log, self._size)
        there = -(-os.fstat(file.fileno()).st_size // self._size)
        self._count = count or there
        # A truncated file still records its page count, if the header is intact.
        is_whole = header.startswith(b"SQLite format 3\0") and header[24:28] == header[92:96]
        stated = int.from_bytes(header[28:32], "big") if is_whole and not count else 0
        self.missing = max(0, stated - there)

    def rows(self, tick: clock.Tick = clock.no_tick) -> Iterator[PageRow]:
        free = self._free_pages()
        for number in range(1, self._count + 1):
            tick(number, self._count)
            if number not in free:
                yield from self._rows(number)

    def _page(self, number: int) -> bytes:
        file, at = self._file, (number - 1) * self._size
        if number in self._logged:
            file, at = self._log, self._logged[number]
        file.seek(at)
        return file.read(self._size).ljust(self._size, b"\0")

    def _rows(self, number: int) -> Iterator[PageRow]:
        page = self._page(number)
        start = _FILE_HEADER if number == 1 else 0
        kind = page[start]
        if kind not in (_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE):
            return
        first = start + (12 if kind == _INNER_INDEX else 8)
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        if first + 2 * count > self._size:
            self.unreadable += 1
            return
        for (at,) in struct.iter_unpack(">H", page[first : first + 2 * count]):
            try:
                payload = self._payload(page, at, kind)
                yield PageRow(kind != _LEAF_TABLE, _values(payload))
            except (IndexError, ValueError):
                self.unreadable += 1

    def _payload(self, page: bytes, at: int, kind: int) -> bytes:
        """The payload of a cell, including overflow pages."""
        if kind == _INNER_INDEX:
            at += 4
        length, at = _varint(page, at)
        if kind == _LEAF_TABLE:
            _, at = _varint(page, at)
        most = self._size - 35 if kind == _LEAF_TABLE else (self._size - 12) * 64 // 255 - 23
        if length <= most:
            return _exactly(page, at, length)
        least = (self._size - 12) * 32 // 255 - 23
        here = least + (length - least) % (self._size - 4)
        if here > most:
            here = least
        if length > self._count * self._size:
            raise ValueError("longer than the file")
        parts = [_exactly(page, at, here)]
        following = int.from_bytes(_exactly(page, at + here, 4), "big")
        missing = length - here
        while missing:
            if not 1 < following <= self._count:
                raise ValueError("its next page is not there")
            overflow = self._page(following)
            parts.append(overflow[4 : 4 + missing])
            missing -= len(parts[-1])
            following = int.from_bytes(overflow[:4], "big")
        return b"".join(parts)

    def _free_pages(self) -> set[int]:
        """The free pages; empty if the free list is damaged."""
        header = self._page(1)
        trunk, count = struct.unpack(">II", header[32:40])
        pages: set[int] = set()
        while 1 < trunk <= self._count and trunk not in pages and len(pages) <= count:
            pages.add(trunk)
            page = self._page(trunk)
            trunk, leaves = struct.unpack(">II", page[:8])
            if leaves > self._size // 4 - 2:
                break
            pages.update(struct.unpack(f">{leaves}I", page[8 : 8 + 4 * leaves]))
        return pages if len(pages) == count else set()


def _page_size(header: bytes) -> int:
    stored = int.from_bytes(header[16:18], "big")
    size = 65536 if stored == 1 else stored
    plausible = size >= 512 and size & (size - 1) == 0
    return size if header.startswith(MAGIC) and plausible else USUAL_PAGE_SIZE


def _frames(log: BinaryIO, page_size: int) -> tuple[dict[int, int], int]:
    """The position of each page's last committed version in the log, and the page count then."""
    header = log.read(_WAL_HEADER)
    if len(header) < _WAL_HEADER or header[:3] != b"\x37\x7f\x06":
        return {}, 0
    order = ">" if header[3] & 1 else "<"
    sums = _checksum(header[:24], (0, 0), order)
    if sums != struct.unpack(">II", header[24:]) or header[8:12] != struct.pack(">I", page_size):
        return {}, 0
    committed: dict[int, int] = {}
    waiting: dict[int, int] = {}
    count = 0
    while len(frame := log.read(_FRAME_HEADER + page_size)) == _FRAME_HEADER + page_size:
        sums = _checksum(frame[:8] + frame[_FRAME_HEADER:], sums, order)
        number, pages, *_ = struct.unpack(">6I", frame[:_FRAME_HEADER])
        if frame[8:16] != header[16:24] or sums != struct.unpack(">II", frame[16:24]):
            break
        waiting[number] = log.tell() - page_size
        if pages:
            committed.update(waiting)
            waiting.clear()
            count = pages
    return committed, count


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    for left, right in struct.iter_unpack(f"{order}II", data):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return first, second


def _values(payload: bytes) -> tuple[Value, ...]:
    """A row: a header with the type of each value, then the values."""
    end, at = _varint(payload, 0)
    # Types below 128 take one byte, and nearly all of them are.
    header = _exactly(payload, at, max(0, end - at))
    types = list(header)
    if not header.isascii():
        types.clear()
        while at < end:
            kind, at = _varint(payload, at)
            types.append(kind)
        if at != end:
            raise ValueError("the header of a row does not end where it says")
    at = end
    values: list[Value] = []
    for kind in types:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError("a row does not end where it says")
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind >= 12:
        size = (kind - 12) // 2
        data = _exactly(payload, at, size)
        return data.decode("utf-8") if kind % 2 else data, at + size
    match kind:
        case 0:
            return None, at
        case 7:
            number: float = struct.unpack(">d", _exactly(payload, at, 8))[0]
            return number, at + 8
        case 8 | 9:
            return kind - 8, at
        case 10 | 11:
            raise ValueError("no value has this type")
        case _:
            size = _INTEGER_SIZES[kind]
            return int.from_bytes(_exactly(payload, at, size), "big", signed=True), at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(at, at + 8):
        value = value << 7 | data[position] & 0x7F
        if data[position] < 0x80:
            return value, position + 1
    return value << 8 | data[at + 8], at + 9


def _exactly(data: bytes, at: int, length: int) -> bytes:
    part = data[at : at + length]
    if len(part) != length:
        raise ValueError("it ends too early")
    return part
