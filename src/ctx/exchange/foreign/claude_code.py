"""Reads CLAUDE.md files and Claude Code's own notes.

Instructions of people are in `CLAUDE.md` and `CLAUDE.local.md` of a project and its folders, in
`.claude/rules/`, and in Claude Code's own folder. Notes of the agent are in
`projects/<name>/memory/` of that folder: `MEMORY.md`, which is an index or the notes themselves,
and one file per topic.

Each section under a heading becomes a node; without headings, each block of text. A note with front
matter (name, description, type) is one node.

A section is identified by its headings, and also by its text if others have the same headings. So
it stays the same node when text above it changes.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ctx import disk
from ctx.errors import PathRefused
from ctx.exchange.foreign import foreign_items, markdown_sections, project_pages
from ctx.exchange.foreign.foreign_items import CompletePage, ForeignSource, Item, SkippedItem
from ctx.exchange.foreign.markdown_sections import MarkdownSection
from ctx.exchange.foreign.project_pages import MOST_FOLDERS, PASSED_OVER, project_of
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.model import Draft
from ctx.sqlite.connection import path_text

PROGRAM = "claude-code"
SOURCE = f"source:{PROGRAM}"

_INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md")
_INDEX = "MEMORY.md"
_MOST_HOPS = 5
_TEXT = (".md", ".mdx", ".txt")
_PATTERN_WORDS = re.compile(
    r"\b(instruction|convention|guideline|rule|styles?|practice|workflow|pattern|preference"
    r"|standard|principle|polic(y|ies)|how to|always|never|do not|don't|avoid|must|should)",
    re.IGNORECASE,
)
_INDEX_LINE = re.compile(r"\s*[-*+]\s+\[[^\]]*\]\(([^)\s]+)\)")
_IMPORT = re.compile(r"(?<![\w`@])@((?:~/|\.{0,2}/)?[\w][\w./-]*[\w])")
_IMPORT_LINE = re.compile(rf"\s*(?:[-*+]\s+)?{_IMPORT.pattern}\s*")
_DASHED = re.compile(r"[^A-Za-z0-9]")


class MemoryPage(NamedTuple):
    """A file to read, and where it belongs."""

    path: str
    root: str
    """The folder that its name is relative to, and that its imports must be in."""
    project: str | None
    trusted: bool = False
    """Whether a person named it or it is in their own folder: then it may be a link."""
    hops: int = 0

    @property
    def name(self) -> str:
        return os.path.relpath(self.path, self.root)


class ClaudeFolders(NamedTuple):
    """The folders to search."""

    config: str
    """Claude Code's folder."""
    near: Sequence[str] = ()
    """Project folders that the agent's notes may be about."""


@contextmanager
def reading(
    paths: Sequence[str], folders: ClaudeFolders, project: str | None = None
) -> Iterator[ForeignSource]:
    """The items of files and folders. `project` overrides the name of their project."""
    items: list[Item] = []
    waiting: list[MemoryPage] = []
    folders = folders._replace(near=[*map(os.path.abspath, paths), *folders.near])
    for path in paths:
        for entry in _pages(os.path.abspath(path), folders):
            if isinstance(entry, SkippedItem):
                items.append(entry)
            else:
                waiting.append(entry._replace(project=project or entry.project))
    paths_read: set[str] = set()
    while waiting:
        page = waiting.pop(0)
        real = os.path.realpath(page.path)
        if real not in paths_read:
            paths_read.add(real)
            items += _read(page, waiting)
    yield ForeignSource(PROGRAM, len(items), iter(items))


def _pages(path: str, folders: ClaudeFolders) -> Iterator[MemoryPage | SkippedItem]:
    if os.path.isfile(path):
        yield _page(path, folders)
    elif not os.path.isdir(path):
        raise PathRefused(
            f"{path_text(path)} is neither a file nor a folder.", hint="Give one that exists."
        )
    elif _is_same_file(path, folders.config) or _looks_like_claude_codes(path):
        yield from _of_claude_code(path, folders)
    elif os.path.basename(path) == "memory":
        yield from _notes(path, folders)
    else:
        yield from _of_project(path)


def _looks_like_claude_codes(folder: str) -> bool:
    is_named_so = os.path.basename(folder) == ".claude"
    return is_named_so and os.path.isdir(os.path.join(folder, "projects"))


def _page(path: str, folders: ClaudeFolders) -> MemoryPage:
    """A named file: a note of the agent or instructions of a project."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) == "memory" and _inside_projects(folder):
        project = _noted_project(os.path.dirname(folder), folders)
        return MemoryPage(path, folder, project, trusted=True)
    project, root = project_of(folder)
    return MemoryPage(path, root, project, trusted=True)


def _of_claude_code(folder: str, folders: ClaudeFolders) -> Iterator[MemoryPage | SkippedItem]:
    for name in ("CLAUDE.md", *_markdown_files(folder, "rules")):
        if os.path.isfile(os.path.join(folder, name)):
            yield MemoryPage(os.path.join(folder, name), folder, None, trusted=True)
    projects = os.path.join(folder, "projects")
    for name in disk.names(projects):
        yield from _notes(os.path.join(projects, name, "memory"), folders)


def _notes(folder: str, folders: ClaudeFolders) -> Iterator[MemoryPage]:
    project = _noted_project(os.path.dirname(folder), folders)
    for name in disk.names(folder):
        if name.endswith(".md"):
            yield MemoryPage(os.path.join(folder, name), folder, project)


def _of_project(folder: str) -> Iterator[MemoryPage | SkippedItem]:
    project, root = project_of(folder)
    home = os.path.expanduser("~")
    for count, (here, folders, names) in enumerate(os.walk(folder)):
        if count == MOST_FOLDERS:
            yield SkippedItem(
                path_text(here), f"more than {MOST_FOLDERS:,} folders: name a smaller one"
            )
            return
        # In the home folder, only its own files are read.
        inner = [] if _is_same_file(here, home) else sorted(folders)
        folders[:] = [
            name for name in inner if not name.startswith(".") and name not in PASSED_OVER
        ]
        wanted = [name for name in _INSTRUCTIONS if name in names]
        if ".claude" in inner and here != home:
            own = os.path.join(here, ".claude")
            wanted += [f".claude/{name}" for name in ("CLAUDE.md", *_markdown_files(own, "rules"))]
        for name in wanted:
            path = os.path.join(here, name)
            if os.path.isfile(path):
                yield MemoryPage(path, root, project)


def _markdown_files(folder: str, name: str) -> Iterator[str]:
    """The Markdown files below a folder, relative to its parent."""
    for here, folders, names in os.walk(os.path.join(folder, name)):
        folders.sort()
        for file_name in sorted(names):
            if file_name.endswith(".md"):
                yield os.path.relpath(os.path.join(here, file_name), folder)


def _inside_projects(memory: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.dirname(memory))) == "projects"


def _noted_project(folder: str, folders: ClaudeFolders) -> str:
    """The project that a folder of Claude Code belongs to.

    The folder's name is the project's path with dashes for special characters, which cannot be
    reversed. The transcripts in it contain the working directory; otherwise the known project
    folders are compared.
    """
    for name in disk.names(folder)[:20]:
        if name.endswith(".jsonl"):
            try:
                start = disk.read_plain(os.path.join(folder, name), 256 * 1024)
            except OSError:
                continue
            if match := re.search(rb'"cwd"\s*:\s*"((?:[^"\\]|\\.)+)"', start):
                cwd = foreign_items.json_value(b'"' + match[1] + b'"')
                if isinstance(cwd, str) and os.path.basename(cwd.rstrip("/")):
                    return project_of(cwd.rstrip("/"))[0]
    name = os.path.basename(folder)
    for near in folders.near:
        project, root = project_of(near)
        if name in {_DASHED.sub("-", path) for path in (near, root, os.path.realpath(root))}:
            return project
    return name.strip("-") or "unknown"


def _is_same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _read(page: MemoryPage, waiting: list[MemoryPage]) -> Iterator[Item]:
    found = project_pages.read_page(page.path, page.root, is_named=page.trusted)
    if isinstance(found, SkippedItem):
        yield found
        return
    parsed = markdown_sections.parse(found.text)
    is_note = os.path.basename(os.path.dirname(page.path)) == "memory"
    if is_note and "name" in parsed.head:
        whole = MarkdownSection("", (), parsed.first_line, parsed.body.strip())
        yield from _drafts(page, [whole], found.changed_at, parsed)
    else:
        sections = markdown_sections.sections(parsed)
        if os.path.basename(page.path) == _INDEX:
            sections = [_without_index(section, page) for section in sections]
        elif not is_note:
            sections = [section for section in sections if not _only_imports(section.body, page)]
        yield from _drafts(page, sections, found.changed_at, parsed)
    if not is_note:
        yield from _queue_imports(page, parsed.body, waiting)


def _drafts(
    page: MemoryPage,
    sections: Sequence[MarkdownSection],
    changed_at: str,
    parsed: markdown_sections.ParsedMarkdown,
) -> Iterator[Draft | CompletePage]:
    kind = parsed.head.get("type") or parsed.inner_head.get("type")
    project = f"project:{page.project or ''}"
    distinct = markdown_sections.distinct(sections)
    node_ids: set[NodeId] = set()
    for section, only in distinct:
        words = f"{' '.join(section.above)} {parsed.head.get('name', '')} {kind or ''}"
        is_pattern = kind == "feedback" or bool(_PATTERN_WORDS.search(words))
        metadata: dict[str, Any] = {"path": page.path, "line": section.line}
        if section.above:
            metadata["heading"] = " / ".join(section.above)
        if name := parsed.head.get("name"):
            metadata["name"] = name
        node_id = foreign_items.derived_id(
            None, PROGRAM, page.project, page.name, *section.above, only
        )
        node_ids.add(node_id)
        yield Draft(
            node_id,
            "pattern" if is_pattern else "fact",
            section.text,
            changed_at,
            changed_at,
            summary=parsed.head.get("description") if len(distinct) == 1 else None,
            tags=foreign_items.tags(project, f"memory:{kind or ''}", SOURCE, model.REFERENCE),
            metadata=metadata,
        )
    yield CompletePage(page.path, foreign_items.tags(project, SOURCE), frozenset(node_ids))


def _without_index(section: MarkdownSection, page: MemoryPage) -> MarkdownSection:
    """A section without lines that only link to another note: that note is read by itself."""
    folder = os.path.dirname(page.path)

    def points_elsewhere(line: str) -> bool:
        link = _INDEX_LINE.match(line)
        return link is not None and os.path.isfile(os.path.join(folder, link[1]))

    kept = [line for line in section.body.splitlines() if not points_elsewhere(line)]
    return section._replace(body="\n".join(kept).strip())


def _only_imports(body: str, page: MemoryPage) -> bool:
    """Whether a section only names files that are read too."""
    lines = [line for line in body.splitlines() if line.strip()]
    imports = [_IMPORT_LINE.fullmatch(line) for line in lines]
    return page.hops < _MOST_HOPS and all(
        match is not None
        and os.path.isfile(path := _path_of(match[1], page))
        and project_pages.is_inside(path, page.root)
        for match in imports
    )


def _queue_imports(page: MemoryPage, body: str, waiting: list[MemoryPage]) -> Iterator[SkippedItem]:
    """Queue the files that a page names with `@`; those outside its folder are only reported."""
    for target in dict.fromkeys(_IMPORT.findall(markdown_sections.without_code(body))):
        path = _path_of(target, page)
        if not target.endswith(_TEXT) and not os.path.isfile(path):
            continue
        if not project_pages.is_inside(path, page.root):
            yield SkippedItem(f"@{target} in {page.name}", "it is outside of the folder")
        elif not os.path.isfile(path):
            yield SkippedItem(f"@{target} in {page.name}", "there is no such file")
        elif page.hops >= _MOST_HOPS:
            yield SkippedItem(
                f"@{target} in {page.name}", f"more than {_MOST_HOPS} imports lead to it"
            )
        else:
            waiting.append(MemoryPage(path, page.root, page.project, hops=page.hops + 1))


def _path_of(target: str, page: MemoryPage) -> str:
    """The path of a file that a page names."""
    folder = os.path.dirname(page.path)
    return os.path.normpath(os.path.join(folder, os.path.expanduser(target)))
