"""Reads the instruction files of other agents in a project: AGENTS.md, `.cursorrules` and others.

Each section under a heading becomes a fact; without headings, each block of text. Whoever can write
to the repository can write these files, so their source is `repository`: agents get them as
quotations.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ctx.exchange.foreign import foreign_items, markdown_sections, project_pages
from ctx.exchange.foreign.foreign_items import CompletePage, ForeignSource, Item, SkippedItem
from ctx.exchange.foreign.project_pages import ProjectPage
from ctx.memory import model, sources
from ctx.memory.model import Draft

PROGRAM = "instructions"

_TOOLS = {
    "agents-md": r"AGENTS\.md",
    "cursor": r"\.cursorrules|\.cursor/rules/.+\.mdc",
    "windsurf": r"\.windsurfrules|\.windsurf/rules/.+\.md",
    "copilot": r"\.github/copilot-instructions\.md|\.github/instructions/.+\.instructions\.md",
    "gemini": r"GEMINI\.md",
}
_FILES = re.compile("(?:.*/)?(?:" + "|".join(f"({names})" for names in _TOOLS.values()) + ")")
_HIDDEN = frozenset({".cursor", ".windsurf", ".github"})


def tool_of(path: str) -> str | None:
    """The tool that an instruction file is for; None for other files."""
    found = _FILES.fullmatch(path.replace(os.sep, "/"))
    return list(_TOOLS)[(found.lastindex or 0) - 1] if found else None


@contextmanager
def reading(path: str, project: str | None = None) -> Iterator[ForeignSource]:
    """The sections of a file, or of the files of a project."""
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        project_pages.require_folder(path)
    yield ForeignSource(PROGRAM, 0, _items(path, project))


def _items(path: str, project: str | None) -> Iterator[Item]:
    is_file = os.path.isfile(path)
    named, root = project_pages.project_of(os.path.dirname(path) if is_file else path)
    files = [path] if is_file else project_pages.find_files(path, _is_instructions, _HIDDEN)
    for file in files:
        if isinstance(file, SkippedItem):
            yield file
            continue
        page = project_pages.read_page(file, root, is_named=is_file)
        if isinstance(page, SkippedItem):
            yield page
        else:
            yield from _drafts(page, project or named)


def _is_instructions(name: str) -> bool:
    return tool_of(name) is not None


def _drafts(page: ProjectPage, project: str) -> Iterator[Draft | CompletePage]:
    parsed = markdown_sections.parse(page.text)
    tags = foreign_items.tags(f"project:{project}", f"source:{tool_of(page.name) or PROGRAM}")
    node_ids = []
    for section, only in markdown_sections.distinct(markdown_sections.sections(parsed)):
        metadata = {
            **parsed.head,
            "path": page.path,
            "line": section.line,
            sources.KEY: sources.REPOSITORY,
        }
        if section.above:
            metadata["heading"] = " / ".join(section.above)
        node_ids.append(
            foreign_items.derived_id(None, PROGRAM, project, page.name, *section.above, only)
        )
        yield Draft(
            node_ids[-1],
            "fact",
            section.text,
            page.changed_at,
            page.changed_at,
            tags=(*tags, model.REFERENCE),
            metadata=metadata,
        )
    yield CompletePage(page.path, tags, frozenset(node_ids))
