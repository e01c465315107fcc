"""Reads a document of `ctx export` in parts, so that a large one need not fit into memory.

The document is read twice: first all of it is checked, then the items are imported. Only documents
with the lines of an export can be read in parts: one for the format, and one for each node, edge
and view, all of them sorted. For all others, also for broken ones, `open_stream` returns None. They
are parsed as a whole, which gives the same items, or the error.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ctx import disk
from ctx.errors import ContentRefused
from ctx.exchange import graph_document
from ctx.exchange.foreign.foreign_items import Item
from ctx.exchange.graph_document import FORMAT, VERSION, refuse_constant
from ctx.memory.model import Edge

Lines = Callable[[], Iterator[str]]
"""Reads the lines of a text from its beginning."""

_LISTS = ("nodes", "edges", "views")


class _OutOfOrder(Exception):
    """The document cannot be read in parts."""


class ItemStream:
    """The items of a document, which are read from its text each time."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._count = 0
        self._missing: list[Edge] = []
        """Edges that only the field `superseded_by` of a node mentions."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        """Nodes, then edges, then views."""
        try:
            missing = iter(self._missing)
            for name, at, entry in _entries(self._lines()):
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
        for name, at, entry in _entries(self._lines()):
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


def open_stream(lines: Lines) -> ItemStream | None:
    """The items of a document, all of which is valid; None if it has to be parsed as a whole."""
    items = ItemStream(lines)
    try:
        items.check()
    except (_OutOfOrder, ContentRefused):
        return None
    return items


def lines_of_file(fd: int) -> Iterator[str]:
    """The lines of an open file, from its beginning."""
    with (
        disk.explain_errors("reading what to import"),
        open(fd, encoding="utf-8-sig", newline="\n", closefd=False) as file,
    ):
        os.lseek(fd, 0, os.SEEK_SET)
        yield from file


def _entries(lines: Iterator[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The entries of the lists: the name of the list, the place of the entry, and the entry."""
    try:
        _expect(lines, f'{{"format": "{FORMAT}", "version": {VERSION},\n')
        for name in _LISTS:
            end = "]}\n" if name == _LISTS[-1] else "],\n"
            if _expect(lines, f'"{name}": [\n', f'"{name}": [{end}').endswith(end):
                continue
            number, goes_on = 0, True
            while (line := next(lines, "")) != end:
                entry = json.loads(line.removesuffix(",\n"), parse_constant=refuse_constant)
                if not goes_on or not isinstance(entry, dict):
                    raise _OutOfOrder
                yield name, f"{name}[{number}]", entry
                number, goes_on = number + 1, line.endswith(",\n")
            if goes_on:
                raise _OutOfOrder
        _expect(lines, "")
    except (ValueError, RecursionError):
        raise _OutOfOrder from None


def _expect(lines: Iterator[str], *expected: str) -> str:
    """The next line, which must be one of these; an empty one stands for the end."""
    line = next(lines, "")
    if line not in expected:
        raise _OutOfOrder
    return line
