"""What is in a file of code."""

from typing import NamedTuple

from ctx.code.lookup import OutlineEntry
from ctx.codebase import code_items
from ctx.codebase.code_index import IndexAge, OpenIndex


class FileOutline(NamedTuple):
    """The answer of `ctx code outline`."""

    path: str
    language: str | None
    lines: int
    skipped: str | None
    """Why nothing was read out of it; null: it was."""
    problems: int
    """Places that could not be understood."""
    items: tuple[OutlineEntry, ...]
    age: IndexAge


def outline(opened: OpenIndex, path: str) -> FileOutline:
    file = code_items.require_file(opened, path)
    items = tuple(opened.code.outline(file))
    return FileOutline(
        file.path, file.language, file.lines, file.skipped, file.problems, items, opened.age
    )
