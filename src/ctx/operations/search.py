"""Search memory with one box: words, filters, both, or nothing.

    nothing   the newest nodes, with the types and tags that there are
    filters   the nodes that match, newest first
    words     the best answers with the reasons, as `ctx recall` ranks them; `every` lists all
              nodes that have the words, as `ctx search` does

Each node has an excerpt with the words that matched.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ctx import terms
from ctx.ids import NodeId
from ctx.memory.code_anchors import AnchorState
from ctx.memory.graph import TagCount
from ctx.memory.model import Node
from ctx.memory.query import matched_words
from ctx.memory.query.compile import Scope
from ctx.memory.query.matched_words import TextPart
from ctx.memory.query.query_parser import Query, parse
from ctx.memory.stats import TypeCount, type_counts
from ctx.operations import list as listing
from ctx.operations import query as querying
from ctx.operations import recall
from ctx.operations.visible_nodes import VisibleNodes
from ctx.packs.prompt_pack import Signal
from ctx.workspace import Memory

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
    listed = _newest(memory, options) if query is None else _matching(memory, query, options)
    hidden = 0
    if query is not None and not listed.total and not options.include_superseded:
        every = querying.find(memory.graph, query, Scope(include_superseded=True), 1)
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


def _newest(memory: Memory, options: Options) -> _Listed:
    wanted = listing.Options(
        limit=options.limit,
        include_superseded=options.include_superseded,
        offset=options.offset,
    )
    newest = listing.list_nodes(memory.graph, wanted)
    return _Listed(newest.nodes, newest.short_ids, newest.total, "newest")


def _matching(memory: Memory, query: Query, options: Options) -> _Listed:
    if query.mode == "text" and not options.every and not options.offset:
        visible = VisibleNodes(include_superseded=options.include_superseded)
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
    scope = Scope(include_superseded=options.include_superseded)
    every = querying.find(memory.graph, query, scope, options.limit, offset=options.offset)
    order: Order = "newest" if query.mode == "filters" else "words"
    kind = every.partial, every.beginnings
    return _Listed(every.nodes, every.short_ids, every.total, order, *kind)


def _hit(listed: _Listed, node: Node, rank: int, wanted: frozenset[str]) -> SearchHit:
    text = node.content
    if not wanted and node.summary:
        text = node.summary
    shown = matched_words.excerpt(text, wanted, _EXCERPT, beginnings=listed.beginnings)
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
