"""Recall: what memory has to say to a question, in a form that can be given to an agent."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, tokens
from ctx.codebase import anchor_check
from ctx.codebase.index_state import IndexState
from ctx.context.compose import ContextEntry, OmittedNodes, item, short_item
from ctx.errors import BudgetExceeded
from ctx.ids import NodeId
from ctx.markdown import code, flat
from ctx.memory import code_anchors, model, sources
from ctx.memory.code_anchors import AnchorState
from ctx.memory.graph import PROJECT
from ctx.memory.model import Node
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import Query, parse
from ctx.operations.compose import of_other_projects
from ctx.operations.query import query_exact_first
from ctx.operations.visible_nodes import VisibleNodes, read_query, scope_of
from ctx.packs import node_ranking
from ctx.packs.node_ranking import Nearness, RankedNode
from ctx.packs.prompt_pack import Signal
from ctx.project import authors
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.operations.passages import Kind, Passage

DEFAULT_LIMIT = 10
NODES = "nodes"

_MOST_RANKED = 50
"""Of a question, so many are compared with the best to tell how many answer it."""
_EVERYTHING = 0.999
_PLACES = ("file", "item", "package")
"""What stands for code says nothing by itself; the code is found as such."""


class Options(NamedTuple):
    query: str
    """Filters, words, or both."""
    limit: int = DEFAULT_LIMIT
    """0 is no limit."""
    budget: int | None = None
    """Tokens that the answer takes as markdown; None is no limit."""
    visible: VisibleNodes = VisibleNodes()
    asked_ms: int | None = None
    """The time of a question with words, for `yesterday`; None is now."""
    counts_others: bool = True
    """Whether matching nodes of other projects are counted."""


class RecallResult(NamedTuple):
    """The answer of `ctx recall`."""

    query: str
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    shortened: tuple[NodeId, ...]
    """Those of the nodes that fit into the budget only by their beginning."""
    total: int
    """How many match, of which the first are here."""
    partial: bool
    """Whether no node has all the words, so that these have only some of them."""
    other_projects: int
    """How many more match in other projects. Very many are not all counted."""
    more_other_projects: bool
    """Whether there are more than that."""
    scopes: tuple[str, ...]
    """The stores that were asked: `project`, `user`, or both."""
    authors: Mapping[NodeId, str] = {}
    """The authors of nodes that other people wrote."""
    scores: Mapping[NodeId, float] = {}
    """How well the nodes answer a question, the best with 1; filters alone rank nothing."""
    signals: Mapping[NodeId, tuple[Signal, ...]] = {}
    """What makes up these scores."""
    beside: "tuple[Passage, ...]" = ()
    """Other results: sections of the narrative, commits, files."""
    code_index: IndexState | None = None
    """The age of the results about commits and files; None if they were not searched."""
    kinds: tuple[str, ...] = (NODES,)
    """What was searched: `nodes`, `narrative`, `commits`, `files`."""
    anchors: Mapping[NodeId, tuple[AnchorState, ...]] = {}
    """What has become of the code that the nodes are about."""


class _Answer(NamedTuple):
    nodes: tuple[Node, ...]
    total: int
    partial: bool
    scores: Mapping[NodeId, float] = {}
    signals: Mapping[NodeId, tuple[Signal, ...]] = {}


def recall(memory: Memory, options: Options, nearness: Nearness | None = None) -> RecallResult:
    """The nodes that answer best, or all that match where there are only filters."""
    query = read_query(options.query, options.visible)
    scope = scope_of(memory, options.visible)
    now_ms = clock.now_ms() if options.asked_ms is None else options.asked_ms
    if query.mode == "filters":
        best = query_exact_first(memory.graph, query, scope, options.limit)
        answer = _Answer(best.nodes, best.total, best.partial)
    else:
        answer = _answer(memory, query, scope, now_ms, options.limit, nearness)
    others = OmittedNodes(0)
    if options.counts_others:
        others = of_other_projects(memory.graph.connections, query, scope, now_ms)
    projects = [graph.connection for graph in memory.graph.graphs if graph.scope == PROJECT]
    shown = [node.id for node in answer.nodes]
    anchors = anchor_check.check(memory, answer.nodes[:_MOST_RANKED])
    gone = [node.id for node in answer.nodes if _is_gone(node, anchors)]
    nodes = tuple(node for node in answer.nodes if node.id not in gone)
    found = RecallResult(
        query.text,
        nodes,
        memory.graph.shown(shown),
        (),
        answer.total - len(gone),
        answer.partial,
        *others,
        memory.graph.scopes,
        authors.strangers(projects, shown),
        answer.scores,
        answer.signals,
        anchors=anchors,
    )
    return found if options.budget is None else _fit_nodes(found, options.budget)


def recall_everything(
    memory: Memory,
    options: Options,
    kinds: "Collection[Kind]",
    nearness: Nearness | None = None,
) -> RecallResult:
    """The same, with passages of some kinds that are not nodes.

    Filters apply only to nodes, and files of another project are elsewhere: then only nodes are
    searched.
    """
    from ctx.operations import passages

    found = recall(memory, options, nearness)._replace(kinds=(NODES, *kinds))
    query = parse(options.query)
    is_here = options.visible.project in (None, memory.project)
    if query.mode == "filters" or query.tree is not None or not is_here:
        return found
    beside, code_index = passages.find_passages(memory, query.words, kinds)
    return found._replace(beside=beside, code_index=code_index)


def _answer(
    memory: Memory,
    query: Query,
    scope: Scope,
    now_ms: int,
    limit: int,
    nearness: Nearness | None,
) -> _Answer:
    """What answers a question, as far as relevance goes."""
    most = max(limit, _MOST_RANKED) if limit else 0
    found = node_ranking.rank(memory.graph, query, scope, now_ms, most, nearness)
    answers = node_ranking.relevant(found if query.tree else _without_places(found))
    # Filters say what is wanted, however far the words are from it.
    if query.tree is None and not node_ranking.is_answered(memory.graph.connections, answers):
        answers = []
    best = answers[: limit or None]
    return _Answer(
        tuple(each.node for each in best),
        len(answers),
        bool(answers) and max(each.coverage for each in answers) < _EVERYTHING,
        {each.node.id: each.score for each in best},
        {each.node.id: each.signals for each in best},
    )


def _without_places(found: Sequence[RankedNode]) -> list[RankedNode]:
    """The results that are good enough, compared with the best."""
    said = [each for each in found if each.node.type not in _PLACES]
    most = said[0].score if said else 1.0
    return [
        each._replace(
            score=each.score / most,
            signals=tuple(Signal(name, value / most) for name, value in each.signals),
        )
        for each in said
    ]


def _is_gone(node: Node, anchors: Mapping[NodeId, tuple[AnchorState, ...]]) -> bool:
    """Whether a node is left out because nothing is left of its code."""
    can_go = code_anchors.can_be_left_out(node.source, node.tags)
    return can_go and code_anchors.is_gone(anchors.get(node.id, ()))


def as_markdown(recalled: RecallResult, beside: Sequence[str] = ()) -> str:
    """The block that is put into a prompt. What is no node stands below the nodes."""
    return _block(recalled, [*items(recalled), *beside])


def items(recalled: RecallResult) -> list[str]:
    """The nodes of that block, each by itself."""
    return [_item(recalled, node) for node in recalled.nodes]


def frame(recalled: RecallResult) -> tuple[str, str]:
    """What stands above the nodes in that block, and what below."""
    head, _, tail = _block(recalled, ["\0"]).partition("\0\n\n")
    return head, tail


def _fit_nodes(found: RecallResult, budget: int) -> RecallResult:
    """As many of the nodes as fit, the first ones first, shortened where they must be."""
    # The frame is reckoned as if there were more than can be shown, which takes most to say.
    longest = found._replace(total=max(found.total, len(found.nodes) + 1))
    left = budget - tokens.estimate(_block(longest if found.nodes else found, ()))
    if left < 0:
        raise BudgetExceeded(
            f"A budget of {budget:,} tokens is too small: without a node it takes"
            f" {budget - left:,}.",
            hint=f"Give a budget of {budget - left:,} tokens or more.",
        )
    nodes: list[Node] = []
    shortened: list[NodeId] = []
    for node in found.nodes:
        whole = tokens.estimate(f"{_item(found, node)}\n\n")
        if whole <= left:
            left -= whole
            nodes.append(node)
            continue
        cost = tokens.estimate(f"{_item(found._replace(shortened=(node.id,)), node)}\n\n")
        if cost <= left:
            left -= cost
            nodes.append(node)
            shortened.append(node.id)
    return found._replace(nodes=tuple(nodes), shortened=tuple(shortened))


def _item(recalled: RecallResult, node: Node) -> str:
    rationale = node.metadata.get("rationale")
    source, is_data = sources.mark(node.source)
    entry = ContextEntry(
        f"{node.type}:{recalled.short_ids[node.id]}",
        node.type,
        model.tier(node.tags),
        node.content,
        node.tags,
        rationale if isinstance(rationale, str) else "",
        author=recalled.authors.get(node.id, ""),
        source=source,
        is_data=is_data,
    )
    shown = short_item if node.id in recalled.shortened else item
    text = shown(entry, with_tags=True)
    changed = code_anchors.describe(recalled.anchors.get(node.id, ()))
    return f"{text}\n  - Code: {flat(changed)}" if changed else text


def _block(recalled: RecallResult, nodes: Iterable[str]) -> str:
    told = [_heading(recalled)] if NODES in recalled.kinds else []
    parts = ["## Recall Results", f"Query: {code(recalled.query)}", *told, *nodes, "---"]
    return "\n\n".join(parts) + "\n"


def _heading(recalled: RecallResult) -> str:
    if not recalled.total:
        return "No matching nodes found."
    nodes = "1 node" if recalled.total == 1 else f"{recalled.total:,} nodes"
    if not recalled.nodes:
        return f"Found {nodes}, but none fits."
    if recalled.total > len(recalled.nodes):
        nodes += f", here the first {len(recalled.nodes):,}"
    if recalled.partial:
        return f"No node has all of these words. Found {nodes} with some of them:"
    return f"Found {nodes}:"
