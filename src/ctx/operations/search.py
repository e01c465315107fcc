"""Search memory with one box: words, filters, both, or nothing.

    nothing   the newest nodes, with the types and tags that there are
    filters   the nodes that match, newest first
    words     the best answers with the reasons, as `ctx recall` ranks them; `every` lists all
              nodes that have the words, as `ctx search` does

Each node has an excerpt with the words that matched.

Search compares terms, which are stems and parts of identifiers, so the words of a text are reduced
to terms in the same way before they are compared.
"""

import heapq
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ctx import terms
from ctx.ids import NodeId
from ctx.memory.code_anchors import AnchorState
from ctx.memory.graph import TagCount
from ctx.memory.model import Node
from ctx.memory.query.query_parser import Query, parse
from ctx.memory.stats import TypeCount, type_counts
from ctx.operations import list as listing
from ctx.operations import query as querying
from ctx.operations import recall
from ctx.operations.visible_nodes import VisibleNodes, list_scope
from ctx.packs.prompt_pack import Signal
from ctx.workspace import Memory

_WORD = re.compile(r"[\w-]+")
_LONGEST = 20_000
"""The characters of a text that are searched for words."""
_BEFORE = 60
"""The characters that an excerpt has before its first word."""


class TextPart(NamedTuple):
    text: str
    is_match: bool


class MatchExcerpt(NamedTuple):
    """A piece of a text around the words that matched."""

    parts: tuple[TextPart, ...]
    words: tuple[str, ...]
    """The different words that matched, in lower case."""


class _Span(NamedTuple):
    start: int
    end: int


PAGE = 50
_EXCERPT = 280
_MOST_TAGS = 24
_HIDDEN_TAGS = ("session:", "tier:")
"""Namespaces that are no topics."""

Order = Literal["newest", "answers", "words"]


class Options(NamedTuple):
    query: str = ""
    limit: int = PAGE
    offset: int = 0
    every: bool = False
    """Whether to list all nodes with the words instead of the best answers."""
    include_superseded: bool = False
    all_projects: bool = False


class SearchHit(NamedTuple):
    node: Node
    short_id: str
    rank: int
    """Its place in the whole list, from 1."""
    excerpt: tuple[TextPart, ...]
    words: tuple[str, ...]
    """The words in it that matched."""
    score: float | None
    """How well it answers, the best with 1; None if the nodes are not ranked so."""
    signals: tuple[Signal, ...]
    """What makes up the score."""
    anchors: tuple[AnchorState, ...]
    """What has become of the code that the node is about."""


class SearchResult(NamedTuple):
    query: str
    order: Order
    """`newest` first, the best `answers` first, or the best matching `words` first."""
    hits: tuple[SearchHit, ...]
    total: int
    offset: int
    partial: bool
    """Whether no node has all the words, so that these have only some of them."""
    beginnings: bool
    """Whether no node has any of the words, so that these have words that begin with them."""
    other_projects: int
    """How many more match in other projects."""
    superseded: int
    """How many superseded nodes match, if nothing else does."""
    scopes: tuple[str, ...]


class Facets(NamedTuple):
    """What there is to filter by, and how often."""

    types: tuple[TypeCount, ...]
    tags: tuple[TagCount, ...]


class _Listed(NamedTuple):
    """Nodes before they get their excerpts."""

    nodes: Sequence[Node]
    short_ids: Mapping[NodeId, str]
    total: int
    order: Order
    partial: bool = False
    beginnings: bool = False
    other_projects: int = 0
    scores: Mapping[NodeId, float] = {}
    signals: Mapping[NodeId, tuple[Signal, ...]] = {}
    anchors: Mapping[NodeId, tuple[AnchorState, ...]] = {}


def search(memory: Memory, options: Options) -> SearchResult:
    query = parse(options.query) if options.query.strip() else None
    visible = VisibleNodes(None, options.all_projects, options.include_superseded)
    if query is None:
        listed = _newest(memory, visible, options)
    else:
        listed = _matching(memory, query, visible, options)
    hidden = 0
    if query is not None and not listed.total and not options.include_superseded:
        scope = list_scope(memory, visible._replace(include_superseded=True))
        every = querying.find(memory.graph, query, scope, 1)
        hidden = 0 if every.partial else every.total
    wanted = frozenset(terms.query(query.words)) if query and query.words else frozenset()
    return SearchResult(
        options.query,
        listed.order,
        tuple(
            _hit(listed, node, options.offset + place, wanted)
            for place, node in enumerate(listed.nodes, 1)
        ),
        listed.total,
        options.offset,
        listed.partial,
        listed.beginnings,
        listed.other_projects,
        hidden,
        memory.graph.scopes,
    )


def facets(memory: Memory) -> Facets:
    tags = [each for each in memory.graph.tag_counts() if not each.tag.startswith(_HIDDEN_TAGS)]
    most_used = heapq.nsmallest(_MOST_TAGS, tags, key=lambda each: (-each.nodes, each.tag))
    return Facets(type_counts(memory.graph), tuple(most_used))


def _newest(memory: Memory, visible: VisibleNodes, options: Options) -> _Listed:
    wanted = listing.Options(limit=options.limit, offset=options.offset, visible=visible)
    newest = listing.list_nodes(memory, wanted)
    return _Listed(
        newest.nodes,
        newest.short_ids,
        newest.total,
        "newest",
        other_projects=newest.other_projects,
    )


def _matching(memory: Memory, query: Query, visible: VisibleNodes, options: Options) -> _Listed:
    if query.mode == "text" and not options.every and not options.offset:
        best = recall.recall(memory, recall.Options(query.text, options.limit, visible=visible))
        if best.nodes:
            about = best.scores, best.signals, best.anchors
            return _Listed(
                best.nodes,
                best.short_ids,
                best.total,
                "answers",
                best.partial,
                False,
                best.other_projects,
                *about,
            )
    scope = list_scope(memory, visible)
    every = querying.find(memory.graph, query, scope, options.limit, offset=options.offset)
    order: Order = "newest" if query.mode == "filters" else "words"
    kind = every.partial, every.beginnings, every.other_projects
    return _Listed(every.nodes, every.short_ids, every.total, order, *kind)


def _hit(listed: _Listed, node: Node, rank: int, wanted: frozenset[str]) -> SearchHit:
    text = node.content
    if not wanted and node.summary:
        text = node.summary
    shown = excerpt(text, wanted, _EXCERPT, beginnings=listed.beginnings)
    return SearchHit(
        node,
        listed.short_ids[node.id],
        rank,
        shown.parts,
        shown.words,
        listed.scores.get(node.id),
        listed.signals.get(node.id, ()),
        listed.anchors.get(node.id, ()),
    )


def excerpt(
    text: str, wanted: Collection[str], most: int, *, beginnings: bool = False
) -> MatchExcerpt:
    """The piece of a text with the most different matching words, on one line.

    `wanted` are terms; with `beginnings`, words that begin with one of them match too.
    """
    line = " ".join(text[:_LONGEST].split())
    spans = list(_spans(line, wanted, beginnings=beginnings)) if wanted else []
    start = _best_start(line, spans, most)
    end = min(len(line), start + most)
    parts: list[TextPart] = [TextPart("… ", False)] if start else []
    place = start
    for span in spans:
        if start <= span.start and span.end <= end:
            parts += [TextPart(line[place : span.start], False)]
            parts += [TextPart(line[span.start : span.end], True)]
            place = span.end
    parts.append(TextPart(line[place:end], False))
    if end < len(line) or len(text) > _LONGEST:
        parts.append(TextPart(" …", False))
    words = dict.fromkeys(line[span.start : span.end].lower() for span in spans)
    return MatchExcerpt(tuple(part for part in parts if part.text), tuple(words))


def _spans(line: str, wanted: Collection[str], *, beginnings: bool) -> Iterator[_Span]:
    known: dict[str, bool] = {}
    for match in _WORD.finditer(line):
        word = match.group()
        if word not in known:
            known[word] = _is_match(word, wanted, beginnings=beginnings)
        if not known[word]:
            continue
        # In scripts without spaces, the word is a whole clause: only what matched is marked.
        pieces = [] if word.isascii() else _pieces(match, wanted)
        yield from pieces or [_Span(*match.span())]


def _is_match(word: str, wanted: Collection[str], *, beginnings: bool) -> bool:
    own = terms.extract(word)
    if any(term in wanted for term in own):
        return True
    return beginnings and any(term.startswith(tuple(wanted)) for term in own)


def _pieces(match: re.Match[str], wanted: Collection[str]) -> list[_Span]:
    """The matching characters of a word without spaces, joined where they overlap."""
    word = match.group().lower()
    if len(word) != len(match.group()):
        return []
    pieces: list[_Span] = []
    for place in range(len(word)):
        ends = [place + len(term) for term in wanted if term and word.startswith(term, place)]
        if not ends:
            continue
        start, end = match.start() + place, match.start() + max(ends)
        if pieces and start <= pieces[-1].end:
            pieces[-1] = _Span(pieces[-1].start, max(end, pieces[-1].end))
        else:
            pieces.append(_Span(start, end))
    return pieces


def _best_start(line: str, spans: list[_Span], most: int) -> int:
    """Where the excerpt begins: at the beginning, unless another piece has more of the words."""
    if len(line) <= most or not spans:
        return 0
    best, best_words = 0, _words_between(line, spans, 0, most)
    for span in spans[:200]:
        start = min(max(0, span.start - _BEFORE), len(line) - most)
        start = line.rfind(" ", 0, start) + 1
        words = _words_between(line, spans, start, most)
        if words > best_words:
            best, best_words = start, words
    return best


def _words_between(line: str, spans: list[_Span], start: int, most: int) -> int:
    inside = (span for span in spans if start <= span.start and span.end <= start + most)
    return len({line[span.start : span.end].lower() for span in inside})
