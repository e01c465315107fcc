"""Reads a folder of Basic Memory: Markdown notes with observations and relations.

    - [decision] We use SQLite #storage (measured)
    - depends_on [[Storage layer]]

A note becomes a node, without these lines. An observation becomes a node of its own, a child of the
note, and a relation becomes an edge to the note that has the name, the permalink or the path.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ctx.exchange.foreign import foreign_items, markdown_sections, project_pages
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, SkippedItem
from ctx.exchange.foreign.project_pages import ProjectPage
from ctx.ids import NodeId, Ulid
from ctx.memory.model import Draft, Edge, Evidence

PROGRAM = "basic-memory"
SOURCE = f"source:{PROGRAM}"

_ITEM = re.compile(r"\s*[-*+][ \t]+(.*)")
# `[ ]`, `[x]` and `[/]` are tasks, `[00:01:30]` is a time, `[text](url)` is a link.
_OBSERVATION = re.compile(r"\[(?![\W\dx_]\]|[\d:., -]+\])([^\[\]()]+)\]\s+(\S.*)", re.IGNORECASE)
_CONTEXT = re.compile(r"(.*\S)\s*\(([^()]*)\)")
_RELATION = re.compile(r"""([^\s"'\[\]]+|"[^"]+"|'[^']+')\s*\[\[([^\[\]]+)\]\]\s*(?:\([^()]*\))?""")
_HASHTAG = re.compile(r"(?<!\S)#([\w/-]+)")
_TAG_LIST = re.compile(r"^tags:[ \t]*\n((?:[ \t]*-[ \t]+.*\n)+)", re.MULTILINE)
_TYPES = {
    "note": "fact",
    "tech": "fact",
    "method": "pattern",
    "technique": "pattern",
    "tip": "pattern",
}


class _Line(NamedTuple):
    text: str
    level: int
    """The level of a heading; 0 for other lines."""


class _Relation(NamedTuple):
    page: str
    note: NodeId
    type: str
    target: str


@contextmanager
def reading(path: str, project: str | None = None) -> Iterator[ForeignSource]:
    folder = os.path.abspath(path)
    project_pages.require_folder(folder)
    yield ForeignSource(PROGRAM, 0, _items(folder, project))


def _items(folder: str, project: str | None) -> Iterator[Item]:
    notes: dict[str, NodeId] = {}
    relations: list[_Relation] = []
    for file in project_pages.find_files(folder, lambda name: name.endswith(".md")):
        page = file if isinstance(file, SkippedItem) else project_pages.read_page(file, folder)
        if isinstance(page, SkippedItem):
            yield page
        else:
            yield from _note(page, os.path.basename(folder), project, notes, relations)
    for relation in dict.fromkeys(relations):
        yield _edge(relation, notes)


def _note(
    page: ProjectPage,
    folder: str,
    project: str | None,
    notes: dict[str, NodeId],
    relations: list[_Relation],
) -> Iterator[Draft]:
    parsed = markdown_sections.parse(page.text)
    stem = page.name.removesuffix(".md")
    title = parsed.head.get("title") or os.path.basename(stem)
    permalink = parsed.head.get("permalink") or stem
    note_id = foreign_items.derived_id(None, PROGRAM, project or folder, permalink)
    for name in (title, permalink, stem, os.path.basename(stem)):
        notes.setdefault(name.lower(), note_id)
    tags = foreign_items.tags(*([f"project:{project}"] if project else []), SOURCE)
    created = foreign_items.iso(foreign_items.moment(parsed.head.get("created"))) or page.changed_at
    body: list[_Line] = []
    observations: list[tuple[int, re.Match[str]]] = []
    for number, line, is_code in markdown_sections.numbered_lines(parsed):
        item = None if is_code else _ITEM.fullmatch(line)
        if item and (found := _RELATION.fullmatch(item[1].strip())):
            relations.append(_Relation(page.name, note_id, found[1].strip("\"'"), found[2].strip()))
        elif item and (found := _OBSERVATION.fullmatch(item[1].strip())):
            observations.append((number, found))
        else:
            body.append(_Line(line, 0 if is_code else _level(line)))
    node_type, original = _node_type(parsed.head.get("type") or "note")
    yield Draft(
        note_id,
        node_type,
        _content(title, body),
        created,
        page.changed_at,
        tags=foreign_items.tags(*tags, *_tags(page.text, parsed.head.get("tags", ""))),
        metadata={"path": page.path, "permalink": permalink, "title": title, **original},
    )
    for number, found in observations:
        yield _observation(found, note_id, page, number, created, tags)


def _observation(
    found: re.Match[str],
    note_id: NodeId,
    page: ProjectPage,
    number: int,
    created: str,
    tags: Sequence[str],
) -> Draft:
    category, text = found[1].strip(), found[2].strip()
    node_type, original = _node_type(category)
    metadata = {"path": page.path, "line": number, "category": category, **original}
    if context := _CONTEXT.fullmatch(text):
        text, metadata["context"] = context[1], context[2].strip()
    return Draft(
        foreign_items.derived_id(None, PROGRAM, note_id, category, text),
        node_type,
        text,
        created,
        page.changed_at,
        tags=foreign_items.tags(*tags, *_HASHTAG.findall(text)),
        metadata=metadata,
        edges=(("CHILD_OF", note_id),),
    )


def _node_type(word: str) -> tuple[str, dict[str, str]]:
    named = word.strip().lower()
    if named in _TYPES:
        return _TYPES[named], {}
    node_type, original = foreign_items.node_type(word)
    return ("fact" if original and node_type == "observation" else node_type), original


def _content(title: str, body: Sequence[_Line]) -> str:
    """The text of a note under its title, without headings that have nothing below them."""
    kept: list[_Line] = []
    for line in (*body, _Line("", 1)):
        if line.level:
            while kept and (not kept[-1].text.strip() or kept[-1].level >= line.level):
                kept.pop()
            kept += [_Line("", 0), line]
        else:
            kept.append(line)
    text = "\n".join(line.text for line in kept).strip()
    is_titled = text.startswith(f"# {title}\n")
    return text.removeprefix("# ") if is_titled else f"{title}\n\n{text}".strip()


def _level(line: str) -> int:
    marks = len(line) - len(line.lstrip("#"))
    return marks if line[marks:].startswith(" ") else 0


def _tags(text: str, inline: str) -> list[str]:
    if listed := _TAG_LIST.search(text):
        words = [line.strip().removeprefix("-") for line in listed[1].splitlines()]
    else:
        words = inline.strip("[]").split(",")
    return [word.strip(" \t\"'#") for word in words]


def _edge(relation: _Relation, notes: dict[str, NodeId]) -> Edge | SkippedItem:
    # `[[Target|shown text]]` and `[[Target#Section]]` lead to the same note.
    target = notes.get(re.split(r"[|#]", relation.target)[0].strip().lower())
    if target is None:
        what = f"[[{relation.target[:80]}]] in {relation.page}"
        return SkippedItem(what, "there is no such note")
    edge_id = foreign_items.derived_id(None, PROGRAM, relation.note, relation.type, target)
    evidence = Evidence(PROGRAM, reason=relation.type).metadata()
    edge_type = foreign_items.edge_type(relation.type)
    return Edge(Ulid(edge_id), relation.note, target, edge_type, "", evidence)
