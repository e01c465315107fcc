"""A folder of the code: its files and folders, and what memory knows about them."""

import posixpath
from collections.abc import Sequence
from typing import NamedTuple

from ctx.code import coverage
from ctx.codebase import freshness
from ctx.codebase.indexing import IndexAge, OpenIndex
from ctx.errors import NodeNotFound
from ctx.operations import code_trouble
from ctx.operations.code_trouble import NO_TROUBLE, Trouble
from ctx.workspace import Memory

_MOST_AREAS = 240
"""Files of a heat map: the hottest, and the largest of the others."""
_MOST_WARM = 20


class CodeEntry(NamedTuple):
    name: str
    path: str
    is_folder: bool
    files: int
    lines: int
    language: str | None
    trouble: Trouble


class FileArea(NamedTuple):
    """A file on a heat map."""

    path: str
    lines: int
    trouble: Trouble


class CodeFolder(NamedTuple):
    """A folder of the project; empty lists if there is no index yet."""

    path: str
    """From the root of the project; empty for the root."""
    entries: tuple[CodeEntry, ...]
    more: int
    """Entries before and after those that are listed."""
    warmest: tuple[FileArea, ...]
    """The files with the most remembered trouble, the most first."""
    areas: tuple[FileArea, ...]
    """Files for a heat map, in the order of their paths."""
    age: IndexAge | None
    """Null without an index."""


def code_folder(memory: Memory, folder: str, first: int = 0, limit: int = 50) -> CodeFolder:
    """List a folder. The index is used as it is."""
    # A folder as paths in the index begin. Nothing on the disk is looked at.
    path = posixpath.normpath(folder.strip("/")) if folder.strip("/") else ""
    folder = "" if path == "." else path
    codebase = freshness.codebase_here(memory)
    if codebase is None:
        return _without_index(memory, folder)
    with freshness.open_as_it_is(codebase) as opened:
        if opened is None:
            return _without_index(memory, folder)
        listed = coverage.entries(opened.code.connection, folder)
        if not listed and folder:
            raise NodeNotFound(f"The code index has no folder {folder[:200]!r}.", hint="")
        by_file = code_trouble.trouble_by_file(code_trouble.file_mentions(memory, opened))
        entries = tuple(
            CodeEntry(
                *each,
                code_trouble.trouble_below(by_file, each.path)
                if each.is_folder
                else by_file.get(each.path, NO_TROUBLE),
            )
            for each in listed[first : first + limit]
        )
        areas = _areas(opened, folder, by_file)
        more = len(listed) - len(entries)
        return CodeFolder(folder, entries, more, _warmest(areas), areas, opened.age)


def _without_index(memory: Memory, folder: str) -> CodeFolder:
    """What memory alone knows."""
    by_file = code_trouble.trouble_by_file(code_trouble.file_mentions(memory, None))
    areas = [FileArea(path, 0, trouble) for path, trouble in sorted(by_file.items())]
    return CodeFolder(folder, (), 0, _warmest(areas), (), None)


def _areas(opened: OpenIndex, folder: str, by_file: dict[str, Trouble]) -> tuple[FileArea, ...]:
    connection = opened.code.connection
    beginning = f"{folder}/" if folder else ""
    warm = sorted(
        (path for path in by_file if path.startswith(beginning)),
        key=lambda path: -by_file[path].heat,
    )[: _MOST_AREAS // 2]
    lines = coverage.lines_of(connection, warm)
    for path, size in coverage.largest_files(connection, folder, _MOST_AREAS):
        if len(lines) < _MOST_AREAS:
            lines.setdefault(path, size)
    return tuple(
        FileArea(path, size, by_file.get(path, NO_TROUBLE)) for path, size in sorted(lines.items())
    )


def _warmest(areas: Sequence[FileArea]) -> tuple[FileArea, ...]:
    warm = [each for each in areas if each.trouble.heat > 0]
    return tuple(sorted(warm, key=lambda each: (-each.trouble.heat, each.path))[:_MOST_WARM])
