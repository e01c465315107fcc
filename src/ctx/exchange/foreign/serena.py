"""Reads the memories of Serena: Markdown files below `.serena/memories`, one memory each."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ctx.errors import PathRefused
from ctx.exchange.foreign import foreign_items, project_pages
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, SkippedItem
from ctx.memory.model import Draft
from ctx.sqlite.connection import path_text

PROGRAM = "serena"
SOURCE = f"source:{PROGRAM}"
FOLDER = os.path.join(".serena", "memories")


@contextmanager
def reading(path: str, project: str | None = None) -> Iterator[ForeignSource]:
    """The memories in a project, in its folder `.serena`, or in `.serena/memories` itself."""
    folder = os.path.abspath(path)
    for inner in (FOLDER, "memories"):
        if os.path.isdir(os.path.join(folder, inner)):
            folder = os.path.join(folder, inner)
            break
    project_pages.require_folder(folder)
    if not project_pages.is_inside(folder, path):
        raise PathRefused(
            f"{path_text(folder)} is a link to another place.",
            hint="Give the folder that it leads to, if you want to import that.",
        )
    owner = os.path.dirname(os.path.dirname(folder))
    named = project or project_pages.project_of(owner)[0]
    yield ForeignSource(PROGRAM, 0, _items(folder, named))


def _items(folder: str, project: str) -> Iterator[Item]:
    for file in project_pages.find_files(folder, lambda name: name.endswith(".md")):
        page = file if isinstance(file, SkippedItem) else project_pages.read_page(file, folder)
        if isinstance(page, SkippedItem):
            yield page
            continue
        name = page.name.removesuffix(".md")
        if not page.text.strip():
            yield SkippedItem(page.name, "it is empty")
            continue
        yield Draft(
            foreign_items.derived_id(None, PROGRAM, project, name),
            "fact",
            page.text,
            page.changed_at,
            page.changed_at,
            tags=foreign_items.tags(f"project:{project}", SOURCE),
            metadata={"path": page.path, "name": name},
        )
