"""Reads a document of `ctx export` in parts, so that a large one need not fit into memory.

The document is read twice: first all of it is checked, then the items are imported. Only documents
in the order of an export can be read in parts: the format, the version, then nodes, edges and
views, each sorted. For all others, also for broken ones, `open_stream` returns None. They are
parsed as a whole, which gives the same items, or the error.
"""

import codecs
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ctx import disk
from ctx.errors import ContentRefused
from ctx.exchange import graph_document
from ctx.exchange.foreign.foreign_items import Item
from ctx.exchange.graph_document import FORMAT, VERSION
from ctx.memory.model import Edge

Chunks = Callable[[], Iterator[str]]
"""Reads a text from its beginning."""

_CHUNK = 1 << 20
_LISTS = ("nodes", "edges", "views")
_BLANK = re.compile(r"[ \t\n\r]*")


class _OutOfOrder(Exception):
    """The document cannot be read in parts."""


class ItemStream:
    """The items of a document, which are read from its text each time."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._count = 0
        self._missing: list[Edge] = []
        """Edges that only the field `superseded_by` of a node mentions."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        """Nodes, then edges, then views."""
        try:
            missing = iter(self._missing)
            for name, at, entry in _entries(self._chunks()):
                if name == "views":
                    yield from missing
                yield graph_document.item(name, entry, at)
            yield from missing
        except _OutOfOrder:
            raise ContentRefused(
                "The document was changed while it was read.", hint="Nothing was imported."
            ) from None

    def check(self) -> None:
        """Check all of the document. Raises `_OutOfOrder` or `ContentRefused`."""
        last = dict.fromkeys(_LISTS, "")
        missing: dict[tuple[str, str], Edge] = {}
        for name, at, entry in _entries(self._chunks()):
            item = graph_document.item(name, entry, at)
            key = graph_document.item_name(item)
            if key <= last[name]:
                # It may be in the document twice.
                raise _OutOfOrder
            last[name] = key
            self._count += 1
            if name == "nodes" and (edge := graph_document.replacement(entry, at)):
                missing[edge.from_id, edge.to_id] = edge
            elif isinstance(item, Edge) and item.type == "SUPERSEDES":
                missing.pop((item.from_id, item.to_id), None)
        self._missing = list(missing.values())
        self._count += len(missing)


def open_stream(chunks: Chunks) -> ItemStream | None:
    """The items of a document, all of which is valid; None if it has to be parsed as a whole."""
    items = ItemStream(chunks)
    try:
        items.check()
    except (_OutOfOrder, ContentRefused):
        return None
    return items


def chunks_of_file(fd: int) -> Iterator[str]:
    """The text of an open file, from its beginning."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    at = 0
    while True:
        with disk.explain_errors("reading what to import"):
            data = os.pread(fd, _CHUNK, at)
        at += len(data)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise _OutOfOrder from None
        if text:
            yield text
        if not data:
            return


def chunks_of_text(text: str) -> Iterator[str]:
    return (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))


def _entries(chunks: Iterator[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The entries of the lists: the name of the list, the place of the entry, and the entry."""
    text = _TextReader(chunks)
    text.expect("{")
    members: dict[str, Any] = {}
    while True:
        name = text.value()
        text.expect(":")
        if not isinstance(name, str) or name in members:
            raise _OutOfOrder
        if name in _LISTS:
            after = _LISTS[_LISTS.index(name) :]
            if not _is_ours(members) or any(known in members for known in after):
                raise _OutOfOrder
            members[name] = None
            for number, entry in enumerate(text.list_values()):
                if not isinstance(entry, dict):
                    raise _OutOfOrder
                yield name, f"{name}[{number}]", entry
        else:
            members[name] = text.value()
        if text.expect(",}") == "}":
            break
    if not _is_ours(members) or not text.is_at_end():
        raise _OutOfOrder


def _is_ours(members: Mapping[str, Any]) -> bool:
    version = members.get("version")
    return members.get("format") == FORMAT and isinstance(version, int) and version <= VERSION


class _TextReader:
    """A JSON text of which only a part is in memory."""

    def __init__(self, chunks: Iterator[str]) -> None:
        self._chunks = chunks
        self._text = ""
        self._at = 0
        self._decode = json.JSONDecoder(parse_constant=graph_document.refuse_constant).raw_decode

    def expect(self, signs: str) -> str:
        """Skip one of these signs, and return it."""
        sign = self._next_sign()
        if not sign or sign not in signs:
            raise _OutOfOrder
        self._at += 1
        return sign

    def is_at_end(self) -> bool:
        return not self._next_sign()

    def list_values(self) -> Iterator[Any]:
        """The values of a list, which begins here."""
        self.expect("[")
        if self._next_sign() == "]":
            self._at += 1
            return
        yield self.value()
        while self.expect(",]") == ",":
            yield self.value()

    def value(self) -> Any:
        """The value that begins here."""
        self._next_sign()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except (ValueError, RecursionError):
                end = -1
            # A number may go on in the next chunk.
            if 0 <= end < len(self._text):
                self._at = end
                return value
            if not self._read_more():
                raise _OutOfOrder

    def _next_sign(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            if blank := _BLANK.match(self._text, self._at):
                self._at = blank.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def _read_more(self) -> bool:
        """Read as much as there is already, so that a long value is not decoded too often."""
        rest = [self._text[self._at :]]
        self._at = 0
        wanted = len(rest[0]) or 1
        size = 0
        while size < wanted and (chunk := next(self._chunks, "")):
            rest.append(chunk)
            size += len(chunk)
        self._text = "".join(rest)
        return size > 0
