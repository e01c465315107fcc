"""Build a pack for a task: seeds → expand → rank → budget → compose.

    seeds     what the task names, what search finds, the active task, recently edited files
    expand    what memory connects with these
    rank      files first, then their parts; memory beside code
    budget    choose what is likely enough and worth its tokens
    compose   list related code, add the log and the active task, and estimate the confidence

Nothing here writes. The caller opens the sources and stores the receipt.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ctx.code.lookup import Code
from ctx.codebase.index_state import IndexState
from ctx.config.schema import EXPAND_LABELS
from ctx.errors import BudgetExceeded
from ctx.ids import NodeId
from ctx.memory.code_anchors import AnchorState
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.narrative.narrative_scan import GivenNarrative
from ctx.packs import budget, pack_text, recent_work, seeds
from ctx.packs.chunks import NarrativeSection
from ctx.packs.code_candidates import CodeCandidates
from ctx.packs.expand import InSight
from ctx.packs.memory_candidates import MemoryCandidates
from ctx.packs.node_ranking import RankedNode
from ctx.packs.prompt_pack import (
    GraphContext,
    PromptPack,
    TokenBudget,
)
from ctx.packs.recent_work import RecentWork
from ctx.search import entities
from ctx.search import question as questions

if TYPE_CHECKING:
    from ctx.config.resolve import Config

NOWHERE = IndexState("none", None, 0, 0)

_NARRATIVE_SHARE = 6
"""The share of the budget for recent work: one sixth."""
_RELATED_SHARE = 10
"""The share of the budget for the list of related items: one tenth."""
_MOST_NAMED = 20
_MOST_LEFT_OUT = 30
_MOST_FILES = 20

# How often the first result is right if it leads by this margin.
_MARGINS = ((0.0, 0.2), (0.025, 0.27), (0.1, 0.5), (0.225, 0.71), (0.4, 0.87), (1.0, 0.95))
_MEMORY_ALONE = 0.5
"""Without a file, a margin among nodes says less."""


class RetrievalConfig(NamedTuple):
    """How far to search, and how much to return."""

    budget: int = 16_000
    reserved_for_response: int = 0
    depth: int = 2
    """Steps along edges; 0: none."""
    labels: tuple[str, ...] = EXPAND_LABELS
    max_expanded_nodes: int = 50
    min_confidence: str = "medium"
    include_narrative: bool = True
    narrative_days: int = 7
    limit: int = 0
    """The maximum number of chunks; 0: as many as fit."""
    more: bool = False
    """Whether unlikely code is included too."""

    @property
    def least(self) -> float:
        """Code that the task changes less likely than this is left out."""
        return 0.0 if self.more else pack_text.LEAST_PROBABILITY


AnchorStates = Callable[[Sequence[Node]], Mapping[NodeId, tuple[AnchorState, ...]]]


class Sources(NamedTuple):
    """What a pack is built from."""

    graphs: Graphs
    remembered: Callable[[str, int], Sequence[RankedNode]]
    """Returns the nodes of memory that answer a question best, up to a limit."""
    code: Code | None = None
    root: str = ""
    allows: Callable[[str], bool] | None = None
    """Which files may be in the answer; None: all."""
    sections: Callable[[str, int], Sequence[NarrativeSection]] | None = None
    """Returns the sections of narrative documents that answer best."""
    narrative: GivenNarrative | None = None
    task: Node | None = None
    """The active task."""
    touched: Sequence[str] = ()
    """Recently edited files, the newest first."""
    project_tag: str = ""
    """For a project without its own store."""
    in_sight: InSight | None = None
    """Filters nodes that are named or reached to those that may be shown; None: all."""
    head_commit: str | None = None
    state: IndexState = NOWHERE
    """The state of the code index."""
    anchor_states: AnchorStates | None = None
    """Returns what has become of the code that nodes are about; None: it is not checked."""


def retrieval_config(config: "Config") -> RetrievalConfig:
    """The configuration from the settings."""
    return RetrievalConfig(
        config.integer("retrieval.default_budget"),
        config.integer("retrieval.reserved_for_response"),
        config.integer("retrieval.default_depth"),
        tuple(config.texts("retrieval.expand_labels")),
        config.integer("retrieval.max_expanded_nodes"),
        config.text("retrieval.min_edge_confidence"),
        config.flag("retrieval.include_narrative"),
        config.integer("retrieval.narrative_days"),
    )


def build(task: str, sources: Sources, config: RetrievalConfig, now_ms: int) -> PromptPack:
    """Build the pack for a task. E010 if the budget is too small for anything."""
    room = config.budget - config.reserved_for_response
    question = questions.read(task)
    mentioned = entities.find(task)
    memory = MemoryCandidates(sources, config, question, mentioned, room)
    code = None
    if sources.code:
        specific = question.without(seeds.project_words(sources.code))
        code = CodeCandidates(sources, config, specific, mentioned, room)
    pointers = memory.led_to_code()
    if code:
        code.look_at(pointers)
        memory.look_at(code.anchors())
    offers = [*(code.offers() if code else ()), *memory.offers()]
    offers.sort(key=lambda offer: -offer.chunk.relevance_score)
    lately = RecentWork("", "")
    if config.include_narrative:
        share = room // _NARRATIVE_SHARE
        lately = recent_work.recent_work(
            sources.narrative, sources.task, config.narrative_days, now_ms, share
        )
    empty = PromptPack(
        task,
        sources.head_commit,
        (),
        GraphContext((), (), config.depth, scc_dag_used=False),
        lately.text,
        TokenBudget(config.budget, room, config.reserved_for_response),
        _confidence(code, memory) if question.is_telling else 0.0,
        tuple(islice(code.ranked(), _MOST_FILES)) if code else (),
        (),
        sources.state,
        None,
    )
    titles = [offer.chunk.title for offer in offers]
    # Chunks that are left out are listed below the others, and it is not known yet which ones.
    taken = pack_text.most_for_frame(empty, titles)
    if taken + budget.smallest(offers) > room and lately.text:
        # If space is short, recent work is dropped first.
        lately = RecentWork("", "")
        empty = empty._replace(recent_narrative="")
        taken = pack_text.most_for_frame(empty, titles)
    if (smallest := taken + budget.smallest(offers)) > room:
        raise _too_small(smallest, config)
    for_related = min(room // _RELATED_SHARE, room - smallest) if room >= pack_text.ROOMY else 0
    filled = budget.fill(offers, room - taken - for_related, config.limit, config.least)
    related = code.related(filled.chunks) if code else []
    left_out = (*filled.left_out, *memory.superseded)
    pack = empty._replace(
        retrieved=filled.chunks,
        graph_context=_graph_context(code, memory, config),
        related=pack_text.fit_related(related, for_related),
        unlikely=(code.unlikely if code else 0)
        + sum(each.reason == pack_text.UNLIKELY for each in filled.left_out),
        recent_narrative=recent_work.without_chunks(lately, sources.task, filled.chunks),
        left_out=left_out[:_MOST_LEFT_OUT],
        more_left_out=max(0, len(left_out) - _MOST_LEFT_OUT),
    )
    used = pack_text.cost_of_frame(pack) + sum(chunk.tokens for chunk in filled.chunks)
    return pack._replace(token_budget=empty.token_budget._replace(used=used))


def _too_small(smallest: int, config: RetrievalConfig) -> BudgetExceeded:
    reserved = config.reserved_for_response
    needed = f"a budget of {smallest + reserved:,} tokens or more"
    message = f"A budget of {config.budget:,} tokens is too small: the smallest pack needs"
    if not reserved:
        return BudgetExceeded(f"{message} {smallest:,}.", hint=f"Give {needed}.")
    return BudgetExceeded(
        f"{message} {smallest:,}, and {reserved:,} are reserved for the response.",
        hint=f"Give {needed}, or lower `retrieval.reserved_for_response`.",
    )


def _graph_context(
    code: CodeCandidates | None, memory: MemoryCandidates, config: RetrievalConfig
) -> GraphContext:
    seeds = [*(code.seed_names if code else ()), *memory.seed_names]
    reached = [*(code.reached_names if code else ()), *memory.reached_names]
    beyond = dict.fromkeys(name for name in reached if name not in seeds)
    return GraphContext(
        tuple(dict.fromkeys(seeds))[:_MOST_NAMED],
        tuple(beyond)[: config.max_expanded_nodes],
        config.depth,
        code.condensed if code else False,
    )


def _confidence(code: CodeCandidates | None, memory: MemoryCandidates) -> float:
    """The probability that the first file is right; without files, that the first node is."""
    of_files = code.confidence if code else None
    if of_files is not None:
        return round(of_files, 2)
    if memory.sureness is None:
        return 0.0
    margin, answered = memory.sureness
    return round(_MEMORY_ALONE * _probability(margin) * answered, 2)


def _probability(margin: float) -> float:
    for (low, at_low), (high, at_high) in pairwise(_MARGINS):
        if margin <= high:
            return at_low + (at_high - at_low) * (margin - low) / (high - low)
    return _MARGINS[-1][1]
