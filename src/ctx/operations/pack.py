"""Build a pack: what an agent with a task should read, within a budget. It leaves a receipt."""

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, tokens
from ctx.codebase import anchor_check, freshness
from ctx.codebase.freshness import AvailableCode
from ctx.codebase.indexing import Codebase
from ctx.ids import NodeId, Ulid
from ctx.memory import lookups, model, pending, receipts
from ctx.memory.model import ANCHOR_TYPES, Node
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.filters import PathFilter, TagFilter, TypeFilter
from ctx.memory.query.query_parser import And, Expression, Not, Or, Query
from ctx.memory.receipts import (
    PackedChunk,
    PackReceipt,
    Reason,
    Receipt,
    ReceiptOmission,
)
from ctx.operations import keep_receipt
from ctx.operations.visible_nodes import VisibleNodes, read_query, scope_of
from ctx.packs import pack_pipeline
from ctx.packs.chunks import NarrativeSection
from ctx.packs.expand import InSight
from ctx.packs.pack_pipeline import RetrievalConfig, Sources
from ctx.packs.prompt_pack import PromptPack, Signal
from ctx.project import project_index_state
from ctx.redaction import redact
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.operations.passages import Kind
    from ctx.packs.node_ranking import RankedNode

USUAL_BUDGET = 4_000
"""Tokens of a pack if nothing else is asked for; `retrieval.default_budget` is a limit."""
FEW_NODES = 200
"""Among so many, a pack finds by words alone."""

_NODE_SECTIONS = ("› Changes", "› Decisions")
"""How the parts of a log are headed that list nodes, which are found themselves."""
_NARRATIVE: "tuple[Kind, ...]" = ("narrative",)
_LONGEST = 200
"""Characters of a title in a receipt."""
_LONGEST_TASK = 2_000
_LONGEST_SCANNED = 20_000
"""Characters that are checked for secrets before a title is made."""
_BETWEEN = "\n\0\n"
_PLACES = 4


class Options(NamedTuple):
    query: str
    """The task in words, with filters that must hold for everything that is found."""
    budget: int | None = None
    """None: `USUAL_BUDGET`, or all that the settings allow with `more`."""
    depth: int | None = None
    """Steps along edges, with 0 none. None: as the settings say, and so for the next one."""
    narrative: bool | None = None
    limit: int = 0
    """Chunks at most; with 0 as many as fit."""
    code: bool = True
    """Whether the code is looked at, and not memory alone."""
    visible: VisibleNodes = VisibleNodes()
    more: bool = False
    """Also code that the task is unlikely to change."""


def pack(memory: Memory, options: Options) -> PromptPack:
    """What is worth reading for a task, found in the code and in memory."""
    query = read_query(options.query, options.visible)
    task = query.words.strip() or query.text
    now = clock.now_ms()
    config = _config(memory, options, query)

    def build(at_hand: AvailableCode) -> PromptPack:
        sources = _sources(memory, options, query, at_hand)
        return pack_pipeline.build(task, sources, config, now)

    built = freshness.with_code(_codebase(memory, options, query), query.words, build)
    return built._replace(
        # Who pastes a log has it already, and a budget is there to be kept.
        task=task if len(task) <= _LONGEST_TASK else f"{task[:_LONGEST_TASK]}…",
        receipt=keep_receipt.keep(memory, _receipt(memory, built)),
        withheld=memory.withheld is not None,
    )


def _config(memory: Memory, options: Options, query: Query) -> RetrievalConfig:
    config = pack_pipeline.retrieval_config(memory.config)
    wanted = options.narrative if options.narrative is not None else config.include_narrative
    usual = config.budget if options.more else min(USUAL_BUDGET, config.budget)
    return config._replace(
        budget=usual if options.budget is None else options.budget,
        more=options.more,
        depth=config.depth if options.depth is None else options.depth,
        # A filter is about nodes: no prose of a file can have a type or a tag.
        include_narrative=wanted and query.tree is None,
        limit=options.limit,
    )


def _codebase(memory: Memory, options: Options, query: Query) -> Codebase | None:
    """The code of the current project, unless another is requested."""
    if not options.code or not _may_be_code(query.tree, memory.project):
        return None
    return freshness.codebase_here(memory)


def _sources(memory: Memory, options: Options, query: Query, at_hand: AvailableCode) -> Sources:
    scope = scope_of(memory, options.visible)
    project = memory.project
    beside = memory.project_memory
    tree = query.tree
    return Sources(
        graphs=memory.graph,
        remembered=_node_ranker(memory, query, scope),
        code=at_hand.code,
        root=at_hand.root,
        allows=None if tree is None else lambda path: _holds(tree, path, project),
        sections=_sections(memory) if beside and tree is None else None,
        narrative=beside.narrative if beside else None,
        task=_task(memory),
        touched=freshness.recently_edited(at_hand.code, clock.wall_ms()) if at_hand.code else (),
        project_tag=memory.project_tag or "",
        in_sight=_in_sight(memory, query, scope),
        head_commit=_head(memory),
        state=at_hand.state,
        anchor_states=lambda nodes: anchor_check.check(memory, nodes, at_hand),
    )


def _in_sight(memory: Memory, query: Query, scope: Scope) -> InSight:
    """Which nodes a pack may tell of, when they are named or an edge leads to them."""
    from ctx.memory.query import node_candidates

    # Superseded nodes are marked as such. Filters do not apply to anchors of the code: they are not
    # results, but lead to some.
    wide = scope._replace(include_superseded=True)
    types: tuple[Expression, ...] = tuple(map(TypeFilter, ANCHOR_TYPES))
    anchors = query._replace(tree=Or(types), names_project=False, names_task=False)
    asked = [query] if query.tree is None else [query, anchors]

    connections = memory.graph.connections
    wrong = {node_id for each in connections for node_id in lookups.with_tag(each, model.WRONG)}

    def in_sight(node_ids: Collection[NodeId]) -> set[NodeId]:
        now = clock.now_ms()
        found = (
            node_candidates.visible_nodes(connections, each, wide, now, node_ids) for each in asked
        )
        return set().union(*found) - wrong

    return in_sight


def _node_ranker(
    memory: Memory, query: Query, scope: Scope
) -> "Callable[[str, int], Sequence[RankedNode]]":
    """What ranks the nodes for a question; filters hold for all of them."""
    from ctx.packs import node_ranking

    def rank(question: str, limit: int) -> "Sequence[RankedNode]":
        asked = query._replace(words=question)
        nearness = None
        if _are_many(memory, query, scope):
            from ctx.packs import node_vectors

            nearness = node_vectors.nearness(memory, question)
        return node_ranking.rank(memory.graph, asked, scope, clock.now_ms(), limit, nearness)

    def newest(_question: str, limit: int) -> "Sequence[RankedNode]":
        found = execute.matching(
            memory.graph.connections, query, scope, clock.now_ms(), limit=limit
        )
        nodes = list(memory.graph.nodes(found.ids))
        scores = [1 - place / (2 * len(nodes)) for place in range(len(nodes))]
        return [
            node_ranking.RankedNode(node, score, (Signal("filters", score),), 0.0, 0.0)
            for node, score in zip(nodes, scores, strict=True)
        ]

    return newest if query.mode == "filters" else rank


def _are_many(memory: Memory, query: Query, scope: Scope) -> bool:
    """Whether there are so many nodes that words alone do not tell them apart.

    What vectors need takes as long to load as all the rest of an answer.
    """
    anchors = Not(Or(tuple(map(TypeFilter, ANCHOR_TYPES))))
    tree = anchors if query.tree is None else And((query.tree, anchors))
    every = query._replace(mode="filters", tree=tree, words="")
    found = execute.matching(
        memory.graph.connections, every, scope, clock.now_ms(), limit=FEW_NODES + 1
    )
    return sum(1 for _ in found.ids) > FEW_NODES


def _sections(memory: Memory) -> Callable[[str, int], Sequence[NarrativeSection]]:
    """A search for matching sections of the narrative."""
    from ctx.operations import passages

    def find(question: str, limit: int) -> Sequence[NarrativeSection]:
        found = passages.find_passages(memory, question, _NARRATIVE).passages
        return [
            NarrativeSection(
                each.id,
                each.title,
                each.text,
                each.first_line or 1,
                each.last_line or 1,
                each.score,
                each.signals,
            )
            for each in found
            if not ("/log/" in each.id and each.title.endswith(_NODE_SECTIONS))
        ][:limit]

    return find


def _task(memory: Memory) -> Node | None:
    """The node of what is being worked on."""
    if pending.current_task(memory.user, memory.place.task_key) is None:
        return None
    from ctx.operations import task

    current = task.current(memory).task
    if current is None or current.id is None:
        return None
    return next(iter(memory.graph.nodes([current.id])), None)


def _head(memory: Memory) -> str | None:
    """The commit that the project's memory is at; of several one, always the same."""
    if memory.project_memory is None:
        return None
    return min(project_index_state.state(memory.project_memory.project).heads, default=None)


# What filters say of a file


def _may_be_code(tree: Expression | None, project: str | None) -> bool:
    """Whether anything but a node can be what the filters ask for."""
    return tree is None or _has_path(tree) or _holds(tree, "", project)


def _has_path(expression: Expression) -> bool:
    match expression:
        case And(parts) | Or(parts):
            return any(map(_has_path, parts))
        case Not(part):
            return _has_path(part)
        case _:
            return isinstance(expression, PathFilter)


def _holds(expression: Expression, path: str, project: str | None) -> bool:
    """Whether filters hold for a file of the project: it has a path, and nothing else."""
    match expression:
        case And(parts):
            return all(_holds(part, path, project) for part in parts)
        case Or(parts):
            return any(_holds(part, path, project) for part in parts)
        case Not(part):
            return not _holds(part, path, project)
        case PathFilter(pattern):
            return _is_at(path, pattern)
        case TagFilter(tag):
            return tag == f"project:{project}"
        case _:
            return False


def _is_at(path: str, pattern: str) -> bool:
    """A `path:` filter, applied to a file."""
    wanted = "*" if pattern == "." else pattern.removeprefix("./").rstrip("/")
    if path == wanted or path.startswith(f"{wanted}/"):
        return True
    patterns = (wanted, wanted.replace("**/", "").replace("**", "*"))
    return any(fnmatchcase(path, each) for each in patterns)


# The receipt


def _receipt(memory: Memory, built: PromptPack) -> Receipt:
    told = _titles(
        [
            built.task,
            *(text for chunk in built.retrieved for text in (chunk.title, *chunk.via)),
            *(each.title for each in built.left_out),
        ]
    )
    budget = built.token_budget
    packed = PackReceipt(
        told[built.task],
        budget.total,
        budget.reserved_for_response,
        built.confidence,
        built.code_index.state,
        tuple(
            PackedChunk(
                told[chunk.title],
                chunk.chunk_kind,
                chunk.tokens,
                round(chunk.relevance_score, _PLACES),
                tuple(Reason(each.name, round(each.value, _PLACES)) for each in chunk.signals),
                tuple(told[each] for each in chunk.via),
            )
            for chunk in built.retrieved
        ),
        tuple(
            ReceiptOmission(
                told[each.title], each.tokens, round(each.relevance_score, _PLACES), each.reason
            )
            for each in built.left_out
        ),
        built.more_left_out,
        tokens.estimate(built.recent_narrative),
    )
    # The nodes among the chunks.
    costs = {
        NodeId(Ulid(chunk.object_id)): chunk.tokens
        for chunk in built.retrieved
        if chunk.path is None
    }
    items = keep_receipt.receipt_items(memory, list(memory.graph.nodes(costs)), costs)
    return keep_receipt.new_receipt(memory, receipts.QUERY, budget.used, items, packed)


def _titles(texts: Iterable[str]) -> dict[str, str]:
    """Texts as a receipt keeps them: the beginning of each in one line, without secrets."""
    wanted = list(dict.fromkeys(texts))
    # A secret is known by all of it, so nothing is cut before.
    looked_at = [text[:_LONGEST_SCANNED] for text in wanted]
    kept = redact(_BETWEEN.join(looked_at)).text.split(_BETWEEN)
    if len(kept) != len(wanted):
        # Something that goes over several lines began in one of them and ended in another.
        kept = [redact(text).text for text in looked_at]
    lines = [" ".join(text.split()) for text in kept]
    return {
        text: line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
        for text, line in zip(wanted, lines, strict=True)
    }
