"""One file of the code: its items with callers, its imports, its text, and what memory knows.

The path may come from anywhere, so a file is read only if the index lists it, it is a plain file
inside of the project, and its name is not one of files that hold secrets.
"""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx import disk
from ctx.capture import written_lines
from ctx.code import encoding
from ctx.code.code_graph import CodeEdge
from ctx.code.lookup import IndexedFile, OutlineEntry
from ctx.code.vocabulary import LARGEST_FILE, LOW
from ctx.codebase import freshness
from ctx.codebase.indexing import IndexAge, OpenIndex
from ctx.errors import NodeNotFound
from ctx.ids import NodeId
from ctx.operations import code_queries, code_trouble
from ctx.operations.code_queries import CodeImport, Importer
from ctx.operations.code_trouble import FileMention, Trouble
from ctx.workspace import Memory

_MOST_ITEMS = 400
_MOST_SITES = 5
"""Callers and callees that are listed for each item."""
_MOST_IMPORTERS = 50
_MOST_NODES = 60
_ORDER = ("rule", "correction", "failure", "bugfix", "decision", "pattern")


class CallSite(NamedTuple):
    """An item that calls, or is called."""

    name: str
    path: str
    line: int
    """Of the call for a caller, of the definition for a callee."""
    confidence: str


class FileItem(NamedTuple):
    entry: OutlineEntry
    callers: tuple[CallSite, ...]
    more_callers: int
    callees: tuple[CallSite, ...]
    more_callees: int


class MentioningNode(NamedTuple):
    id: NodeId
    type: str
    kind: str
    """The `kind:` tag without its prefix; empty if it has none."""
    text: str
    created_at: str
    item: str
    """The item of the file that it mentions; empty for the file itself."""


class ShownSource(NamedTuple):
    """A part of a file."""

    first_line: int
    lines: tuple[str, ...]
    total: int


class CodeFile(NamedTuple):
    path: str
    language: str | None
    lines: int
    skipped: str | None
    """Why nothing was read out of it; null: it was."""
    items: tuple[FileItem, ...]
    more_items: int
    imports: tuple[CodeImport, ...]
    importers: tuple[Importer, ...]
    more_importers: int
    trouble: Trouble
    nodes: tuple[MentioningNode, ...]
    """What memory knows about it: rules and failures first, then the newest."""
    more_nodes: int
    source: ShownSource | None
    not_shown: str
    """Why the text is missing; empty if it is there."""
    age: IndexAge


def code_file(memory: Memory, path: str, first_line: int = 1, most_lines: int = 400) -> CodeFile:
    """Describe a file. The index is used as it is."""
    codebase = freshness.codebase_here(memory)
    if codebase is None:
        raise NodeNotFound("There is no code here.", hint="Open the page in a project.")
    with freshness.open_as_it_is(codebase) as opened:
        if opened is None:
            raise NodeNotFound("There is no code index yet.", hint="Run `ctx code index`.")
        file = None if "\0" in path else opened.code.file(path)
        if file is None:
            raise NodeNotFound(f"The code index has no file {path[:200]!r}.", hint="")
        items, more_items = _items(opened, file)
        imports = (
            code_queries.imports(opened, file.path, _MOST_IMPORTERS) if not file.skipped else None
        )
        about = [
            each for each in code_trouble.file_mentions(memory, opened) if each.path == file.path
        ]
        nodes, more_nodes = _nodes(memory, about)
        source, not_shown = _source(opened.root, file.path, first_line, most_lines)
        return CodeFile(
            file.path,
            file.language,
            file.lines,
            file.skipped,
            items,
            more_items,
            imports.imports if imports else (),
            _one_per_file(imports.importers) if imports else (),
            imports.more if imports else 0,
            code_trouble.trouble_by_file(about).get(file.path, code_trouble.NO_TROUBLE),
            nodes,
            more_nodes,
            source,
            not_shown,
            opened.age,
        )


def _one_per_file(importers: Iterable[Importer]) -> tuple[Importer, ...]:
    by_path: dict[str, Importer] = {}
    for each in importers:
        by_path.setdefault(each.path, each)
    return tuple(by_path.values())


def _items(opened: OpenIndex, file: IndexedFile) -> tuple[tuple[FileItem, ...], int]:
    """The outline, with the callers and callees of each item."""
    code = opened.code
    outline = code.outline_with_ids(file)
    ids = [item for item, _ in outline[:_MOST_ITEMS]]
    callers: dict[int, list[CodeEdge]] = {}
    for edge in code.edges_to(ids, ("CALLS",), LOW):
        callers.setdefault(edge.target, []).append(edge)
    callees: dict[int, list[CodeEdge]] = {}
    for edge in code.edges_from(ids, ("CALLS",), LOW):
        callees.setdefault(edge.source, []).append(edge)
    ends = {edge.source for some in callers.values() for edge in some[:_MOST_SITES]}
    ends |= {edge.target for some in callees.values() for edge in some[:_MOST_SITES]}
    by_id = {each.id: each for each in code.located(ends)}

    def sites(edges: Sequence[CodeEdge], *, calling: bool) -> tuple[tuple[CallSite, ...], int]:
        """The first ones, and how many more there are."""
        found = []
        for edge in edges[:_MOST_SITES]:
            item = by_id.get(edge.source if calling else edge.target)
            if item:
                line = edge.line if calling else item.line
                found.append(CallSite(item.name, item.path, line, edge.confidence))
        return tuple(found), len(edges) - len(found)

    made = tuple(
        FileItem(
            entry,
            *sites(callers.get(item, ()), calling=True),
            *sites(callees.get(item, ()), calling=False),
        )
        for item, entry in outline[:_MOST_ITEMS]
    )
    return made, max(0, len(outline) - _MOST_ITEMS)


def _nodes(memory: Memory, about: list[FileMention]) -> tuple[tuple[MentioningNode, ...], int]:
    by_node: dict[NodeId, FileMention] = {}
    for each in about:
        # The item says more than the file.
        if each.item or each.mention.node not in by_node:
            by_node[each.mention.node] = each

    def rank(each: FileMention) -> int:
        kind = each.mention.kind or each.mention.node_type
        return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)

    ordered = sorted(by_node.values(), key=lambda each: each.mention.node, reverse=True)
    ordered.sort(key=rank)
    wanted = ordered[:_MOST_NODES]
    text_of = {
        node.id: node.summary or node.content
        for node in memory.graph.nodes([each.mention.node for each in wanted])
    }
    nodes = tuple(
        MentioningNode(
            each.mention.node,
            each.mention.node_type,
            each.mention.kind,
            text_of[each.mention.node],
            each.mention.created_at,
            each.item,
        )
        for each in wanted
        if each.mention.node in text_of
    )
    return nodes, len(ordered) - len(wanted)


def _source(root: str, path: str, first_line: int, most: int) -> tuple[ShownSource | None, str]:
    """A part of the text of a file, or why it is not shown."""
    if written_lines.is_secret_file(path):
        return None, "Files with this name usually hold secrets."
    whole = os.path.join(root, path)
    # A folder of the path may have become a link after the files were listed.
    if os.path.realpath(whole) != os.path.join(os.path.realpath(root), path):
        return None, "It is behind a symbolic link."
    try:
        data = disk.read_plain(whole, LARGEST_FILE)
    except OSError as error:
        return None, f"It cannot be read: {error.strerror}."
    if len(data) > LARGEST_FILE:
        return None, f"It is larger than {LARGEST_FILE:,} bytes."
    if b"\0" in data[:8_000]:
        return None, "It is not a text."
    text = encoding.decode(data).text.replace("\r\n", "\n")
    # As the index counts them: other characters do not end a line.
    lines = text.removesuffix("\n").split("\n")
    first = max(1, min(first_line, len(lines)))
    part = tuple(lines[first - 1 : first - 1 + most])
    return ShownSource(first, part, len(lines)), ""
