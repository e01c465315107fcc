"""Turn parts of files, nodes and sections into chunks: titles, kinds, and token costs."""

from collections.abc import Mapping
from typing import NamedTuple

from ctx import tokens
from ctx.memory.code_anchors import AnchorState
from ctx.memory.model import Node
from ctx.memory.sources import REPOSITORY
from ctx.packs import pack_text
from ctx.packs.budget import ChunkOffer
from ctx.packs.item_ranking import FilePart
from ctx.packs.prompt_pack import Chunk, ChunkKind, Signal

_KINDS: Mapping[str, ChunkKind] = {"decision": "Decision", "diagnostic": "DiagnosticOutput"}
_TYPES = ("struct", "class", "enum", "trait", "interface", "type_alias")
_LONGEST_TITLE = 100
_BRIEF = 60
"""Tokens of a node in brief."""
_COVERAGE = 0.5


class NarrativeSection(NamedTuple):
    """A section of a narrative document that matches a question."""

    path: str
    """Relative to the project's root."""
    title: str
    text: str
    first_line: int
    last_line: int
    score: float
    signals: tuple[Signal, ...]


Why = tuple[float, tuple[Signal, ...], tuple[str, ...]]
"""The score, the signals it consists of, and the path through the graph."""


def by_coverage(covered: float) -> float:
    """The weight of a score by how much of the task the text covers. Code that hardly covers the
    task ranks below a node of memory that does, and vice versa."""
    return 1 - _COVERAGE + _COVERAGE * covered


def part_offer(part: FilePart, name: str, why: Why, probability: float | None) -> ChunkOffer:
    """A part of a file. Its brief version is its signature."""
    kind: ChunkKind = "SymbolDefinition" if part.kind in _TYPES else "FileContent"
    title = f"File: {part.path}" if not part.name else f"{part.path}: {part.name}"
    place = part.path, part.first_line, part.last_line, name or part.path
    whole = pack_text.with_cost(
        Chunk(title, part.hash, part.snippet, why[0], kind, 0, *place, *why[1:], REPOSITORY)
    )
    brief = part.signature or part.snippet.partition("\n")[0]
    if len(brief) >= len(part.snippet):
        return ChunkOffer(whole, None, probability)
    return ChunkOffer(whole, brief, probability)


def node_offer(
    node: Node, author: str, why: Why, most: int, states: tuple[AnchorState, ...] = ()
) -> ChunkOffer:
    """A node of memory. The title names the author if it is somebody else."""
    first, _, rest = node.content.strip().partition("\n")
    label = f"{node.type.replace('-', ' ').capitalize()}{f' by {author}' if author else ''}"
    title = f"{label}: {_cut_title(first)}"
    kind = _KINDS.get(node.type, "Memory")
    rationale = node.metadata.get("rationale")
    # The snippet does not repeat the title.
    content = (
        rest.strip() if rest.strip() and len(first) <= _LONGEST_TITLE else node.content.strip()
    )
    if isinstance(rationale, str) and rationale.strip():
        content = f"{content}\n\nRationale: {rationale.strip()}"
    shape = None, None, None, node.id, *why[1:], node.source, states
    whole = pack_text.with_cost(
        Chunk(title, node.id, _fit_text(content, most), why[0], kind, 0, *shape)
    )
    if not rest and tokens.estimate(content) <= _BRIEF:
        return ChunkOffer(whole)
    return ChunkOffer(whole, _fit_text(content, _BRIEF))


def section_offer(section: NarrativeSection, why: Why, most: int) -> ChunkOffer:
    place = section.path, section.first_line, section.last_line, section.title
    snippet = _fit_text(section.text, most)
    title = f"Narrative: {section.title}"
    shape = *place, *why[1:], REPOSITORY
    chunk = Chunk(title, section.path, snippet, why[0], "NarrativeExcerpt", 0, *shape)
    return ChunkOffer(pack_text.with_cost(chunk))


def _cut_title(line: str) -> str:
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"


def _fit_text(text: str, most: int) -> str:
    """A text, or the first paragraphs, else the first lines, of a long one."""
    if tokens.estimate(text) <= most:
        return text
    for joint in ("\n\n", "\n", " "):
        kept, left = [], most - 2
        for part in text.split(joint):
            left -= tokens.estimate(f"{part}{joint}")
            if left < 0:
                break
            kept.append(part)
        if kept and any(part.strip() for part in kept):
            return f"{joint.join(kept).rstrip()}{joint if joint != ' ' else ' '}…"
    return f"{text[: max(1, most)]}…"
