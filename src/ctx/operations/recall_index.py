"""Recall in two steps, so that an agent reads little: an index first, then the texts it chooses.

The index has one line per result, with the tokens that its text takes. Both answers leave a
receipt, and contain nothing of other projects or of a store that is not trusted.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ctx import tokens
from ctx.codebase import anchor_check
from ctx.errors import AmbiguousId, NodeNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory.graph import PROJECT
from ctx.memory.model import Node
from ctx.memory.query.query_parser import refuse_unknown_types
from ctx.operations import keep_receipt, recall
from ctx.operations.passages import KINDS, Passage
from ctx.operations.recall import RecallResult
from ctx.operations.visible_nodes import VisibleNodes, is_visible, list_scope, visible_to_agent
from ctx.packs.node_ranking import Nearness
from ctx.project import authors
from ctx.redaction import redact
from ctx.workspace import Memory

DEFAULT_LIMIT = 10
LARGEST_LIMIT = 50
MOST_TOKENS = 8_000
"""Of the texts in one answer."""
MOST_IDS = 50

_LONGEST_TITLE = 120
_INDEX_EVENT = "recall"
_TEXT_EVENT = "recall ids"


class Options(NamedTuple):
    query: str
    limit: int = DEFAULT_LIMIT
    start: int = 0
    """How many results to skip."""


class IndexEntry(NamedTuple):
    """A result in one line."""

    id: str
    """The short id of a node, the path of a file or a section, or the hash of a commit."""
    kind: str
    """The type of a node, `narrative`, `commit` or `file`."""
    title: str
    tokens: int
    """What the whole text of a node takes; 0 if the result is not a node."""
    source: str
    """Who said it; empty if the result is not a node."""
    at: str
    """The date of a node or a commit."""


class RecallIndex(NamedTuple):
    """The index of an answer."""

    query: str
    entries: tuple[IndexEntry, ...]
    total: int
    """How many nodes match."""
    next_start: int | None
    """Where the next page starts; None if this is the last."""
    partial: bool
    """Whether no node has all the words, so that these have only some of them."""
    receipt: str | None


class RecalledText(NamedTuple):
    id: NodeId
    short_id: str
    type: str
    source: str
    at: str
    text: str
    """As markdown, with the tags, the rationale and what has become of the code."""
    is_shortened: bool


class RecallTexts(NamedTuple):
    """The texts of nodes."""

    texts: tuple[RecalledText, ...]
    missing: tuple[str, ...]
    """Ids that name no node, or none of this project."""
    left_out: tuple[str, ...]
    """Ids that are left for another call, because the answer would be too long."""
    receipt: str | None


def index(memory: Memory, options: Options, nearness: Nearness | None = None) -> RecallIndex:
    """The results of a question, as lines. The first page also has files, commits and sections."""
    refuse_unknown_types(options.query)
    limit = max(1, min(options.limit, LARGEST_LIMIT))
    end = options.start + limit
    visible = visible_to_agent(memory)
    wanted = recall.Options(options.query, end, None, visible, counts_others=False)
    kinds = KINDS if options.start == 0 else ()
    found = recall.recall_everything(memory, wanted, kinds, nearness)
    nodes = found.nodes[options.start :]
    lines = [_node_line(found, node) for node in nodes]
    entries = (*lines, *map(_passage_line, found.beside))
    costs = {node.id: tokens.estimate(line.title) for node, line in zip(nodes, lines, strict=True)}
    receipt = keep_receipt.keep_nodes(memory, _INDEX_EVENT, nodes, costs, sum(costs.values()))
    more = end if found.total > end else None
    return RecallIndex(found.query, entries, found.total, more, found.partial, receipt)


def texts(memory: Memory, ids: Sequence[str]) -> RecallTexts:
    """The whole texts of nodes, as many as fit into one answer."""
    if len(ids) > MOST_IDS:
        raise UsageError(f"More than {MOST_IDS} ids.", hint="Ask for the texts that you need.")
    found, missing = _visible_nodes(memory, ids)
    shown = _as_result(memory, found)
    given: list[RecalledText] = []
    left_out: list[str] = []
    left = MOST_TOKENS
    for node in found:
        text, is_shortened = recall.items(shown._replace(nodes=(node,)))[0], False
        if tokens.estimate(text) > left and not given:
            cut = shown._replace(nodes=(node,), shortened=(node.id,))
            text, is_shortened = recall.items(cut)[0], True
        cost = tokens.estimate(text)
        if cost > left:
            left_out.append(shown.short_ids[node.id])
            continue
        left -= cost
        place = node.id, shown.short_ids[node.id], node.type, node.source, node.created_at[:10]
        given.append(RecalledText(*place, text, is_shortened))
    costs = {each.id: tokens.estimate(each.text) for each in given}
    kept = [node for node in found if node.id in costs]
    receipt = keep_receipt.keep_nodes(memory, _TEXT_EVENT, kept, costs, sum(costs.values()))
    return RecallTexts(tuple(given), tuple(missing), tuple(left_out), receipt)


def find_visible(memory: Memory, text: str) -> NodeId:
    """The node that an agent means by the beginning of its id. Others do not exist for it."""
    node_id = memory.graph.find(text)
    if not _is_visible(memory, memory.graph.node(node_id)):
        raise NodeNotFound(f"No node has the id {text[:40]!r}.", hint="`recall` shows ids.")
    return node_id


def _visible_nodes(memory: Memory, ids: Sequence[str]) -> tuple[list[Node], list[str]]:
    found: dict[NodeId, Node] = {}
    missing: list[str] = []
    for text in dict.fromkeys(ids):
        try:
            node_id = find_visible(memory, text)
        except (NodeNotFound, AmbiguousId, UsageError):
            missing.append(text[:40])
        else:
            found[node_id] = memory.graph.node(node_id)
    return list(found.values()), missing


def _is_visible(memory: Memory, node: Node) -> bool:
    visible: VisibleNodes = visible_to_agent(memory)._replace(include_superseded=True)
    # A task that is not the current one hides its working notes from lists, not from questions.
    return is_visible(node, list_scope(memory, visible))


def _as_result(memory: Memory, nodes: Sequence[Node]) -> RecallResult:
    projects = [graph.connection for graph in memory.graph.graphs if graph.scope == PROJECT]
    ids = [node.id for node in nodes]
    return RecallResult(
        "",
        tuple(nodes),
        memory.graph.shown(ids),
        (),
        len(nodes),
        False,
        0,
        False,
        memory.graph.scopes,
        authors.strangers(projects, ids),
        anchors=anchor_check.check(memory, nodes),
    )


def _node_line(found: RecallResult, node: Node) -> IndexEntry:
    title = node.metadata.get("title")
    text = title if isinstance(title, str) and title else node.summary or node.content
    author = found.authors.get(node.id)
    title = _title(f"(by {author}) {text}" if author else text)
    cost = tokens.estimate(node.content)
    return IndexEntry(
        found.short_ids[node.id], node.type, title, cost, node.source, node.created_at[:10]
    )


def _passage_line(passage: Passage) -> IndexEntry:
    place = passage.id
    if passage.path is not None and passage.first_line is not None:
        place = f"{passage.path}:{passage.first_line}"
    elif passage.path is None:
        place = passage.id[:12]
    title = "" if passage.kind == "file" else _title(passage.title)
    return IndexEntry(place, passage.kind, title, 0, "", (passage.at or "")[:10])


def _title(text: str) -> str:
    # Commit messages and files of the narrative were not redacted when they were written.
    line = " ".join(redact(text[: _LONGEST_TITLE * 8]).text.split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1].rstrip()}…"
