"""The candidates from memory: nodes that search finds, nodes that the task names, and their
neighbours."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctx import terms
from ctx.ids import NodeId
from ctx.memory import code_anchors, documents_by_number
from ctx.memory.graph import PROJECT
from ctx.memory.model import Node
from ctx.packs import chunks, expand, seeds
from ctx.packs.budget import ChunkOffer
from ctx.packs.code_candidates import MemoryPointer
from ctx.packs.node_ranking import RankedNode
from ctx.packs.prompt_pack import LeftOutChunk, Signal
from ctx.project import authors
from ctx.search.entities import Entities
from ctx.search.question import SearchQuestion

if TYPE_CHECKING:
    from ctx.packs.pack_pipeline import RetrievalConfig, Sources

_NODES = 20
_SECTIONS = 8
_FROM = 8
"""The number of nodes whose edges are followed."""
_NAMED = 1.0
_AT_HAND = 0.3
"""The score of the active task if nothing else matches."""
_ALSO = 0.05
"""If a node was found in two ways, the share of the weaker score. It breaks ties."""
_SECTION = 0.7
"""The weight of a section compared with a node: it says the same less precisely."""
_OF_A_DOCUMENT = 2
_ANCHORED = 0.8
_LEAST_COVERAGE, _LEAST_NEARNESS = 0.1, 0.5
_PARTS, _SMALLEST, _LARGEST = 6, 60, 800
_PLACES = ("file", "item", "package")


class _NodeCandidate(NamedTuple):
    node: Node
    score: float
    signals: tuple[Signal, ...]
    via: tuple[str, ...] = ()


class MemoryCandidates:
    """The candidates from memory for one task."""

    def __init__(
        self,
        sources: "Sources",
        config: "RetrievalConfig",
        question: SearchQuestion,
        entities: Entities,
        room: int,
    ) -> None:
        self._sources = sources
        self._question = question
        self._limits = expand.ExpansionLimits(
            config.depth, config.labels, config.max_expanded_nodes, config.min_confidence
        )
        self._most = min(max(room // _PARTS, _SMALLEST), _LARGEST)
        self._known: dict[NodeId, _NodeCandidate] = {}
        self._replaced: dict[NodeId, LeftOutChunk] = {}
        self._reached: dict[NodeId, Node] = {}
        self._seeds: dict[NodeId, Node] = {}
        ranked = list(sources.remembered(question.cleaned or question.text, _NODES))
        self._ranked = [node for node in ranked if _matches_question(node)]
        for ranked_node in self._ranked:
            scale = chunks.by_coverage(_question_coverage(ranked_node))
            signals = tuple(Signal(one.name, one.value * scale) for one in ranked_node.signals)
            self._add_candidate(
                _NodeCandidate(ranked_node.node, ranked_node.score * scale, signals)
            )
        self._add_named(seeds.in_memory(sources.graphs, entities))
        best = [known.node for known in list(self._known.values())[:_FROM]]
        self._seeds.update((node.id, node) for node in best)
        self._add_active_task(sources.task)
        self._sections = (
            list(sources.sections(question.cleaned or question.text, _SECTIONS))
            if sources.sections and config.include_narrative
            else []
        )

    @property
    def sureness(self) -> tuple[float, float] | None:
        """The lead of the first node over the second, as a share of its score, and how much of the
        question it covers; None without nodes."""
        if not self._ranked or not self._ranked[0].score:
            return None
        first, second = self._ranked[0], self._ranked[1].score if len(self._ranked) > 1 else 0.0
        return (first.score - second) / first.score, _question_coverage(first)

    @property
    def seed_names(self) -> list[str]:
        return self._names(self._seeds)

    @property
    def reached_names(self) -> list[str]:
        """The names of the reached nodes, without the starting nodes, to which edges may lead
        back."""
        return self._names(
            {id: node for id, node in self._reached.items() if id not in self._seeds}
        )

    @property
    def superseded(self) -> list[LeftOutChunk]:
        return list(self._replaced.values())

    def led_to_code(self) -> list[MemoryPointer]:
        """The files and items that the best nodes mention."""
        # Anchors that were found by name are skipped: the code search finds these better.
        nodes = [known for known in self._known.values() if known.node.type not in _PLACES]
        best = sorted(nodes, key=lambda known: -known.score)[:_FROM]
        starts = {known.node.id: known.score for known in best}
        starts.update((node_id, left.relevance_score) for node_id, left in self._replaced.items())
        task = self._sources.task
        if task is not None and task.id in self._seeds:
            starts.setdefault(task.id, _AT_HAND)
        return self._follow(starts)

    def look_at(self, anchored: Mapping[tuple[str, str], float]) -> None:
        """Find what memory says about files and items."""
        anchors = expand.anchors(anchored, self._sources.project_tag)
        scores = {name: score for (_, name), score in anchored.items()}
        there = [node.id for node in self._sources.graphs.nodes(anchors)]
        self._follow({node_id: _ANCHORED * scores[anchors[node_id]] for node_id in there})

    def offers(self) -> list[ChunkOffer]:
        shown = [
            known
            for known in self._known.values()
            if known.node.type not in _PLACES and known.score > 0
        ]
        check = self._sources.anchor_states
        states = check([known.node for known in shown]) if check else {}
        for known in list(shown):
            is_gone = code_anchors.is_gone(states.get(known.node.id, ()))
            if is_gone and code_anchors.can_be_left_out(known.node.source, known.node.tags):
                shown.remove(known)
                self._leave_out(known.node, known.score, "its code is gone")
        graphs = self._sources.graphs
        projects = [graph.connection for graph in graphs.graphs if graph.scope == PROJECT]
        written_by = authors.strangers(projects, [known.node.id for known in shown])
        nodes = [
            chunks.node_offer(
                known.node,
                written_by.get(known.node.id, ""),
                (known.score, known.signals, known.via),
                self._most,
                states.get(known.node.id, ()),
            )
            for known in shown
        ]
        return [*nodes, *self._of_sections()]

    def _of_sections(self) -> Iterator[ChunkOffer]:
        weights = self._question.weights
        every = sum(weights.values()) or 1.0
        of_document: dict[str, int] = {}
        for section in self._sections:
            number = of_document[section.path] = of_document.get(section.path, 0) + 1
            if number > _OF_A_DOCUMENT:
                continue
            # The title of a document is repeated above each section and is not part of its text.
            counts = terms.counts(section.text)
            covered = sum(weight for term, weight in weights.items() if term in counts) / every
            scale = _SECTION * chunks.by_coverage(covered)
            signals = tuple(Signal(one.name, one.value * scale) for one in section.signals)
            yield chunks.section_offer(section, (scale * section.score, signals, ()), self._most)

    def _add_named(self, named: Sequence[NodeId]) -> None:
        for node in self._sources.graphs.nodes(self._in_sight(named)):
            self._seeds[node.id] = node
            if node.superseded_by is None or node.id in self._known:
                self._add_candidate(_NodeCandidate(node, _NAMED, (Signal("named", _NAMED),)))
            else:
                # If a superseded node is named, its replacement is meant, which an edge leads to.
                self._leave_out(node, _NAMED)

    def _add_active_task(self, task: Node | None) -> None:
        if task is not None and task.superseded_by is None and self._in_sight([task.id]):
            self._seeds[task.id] = task
            self._add_candidate(_NodeCandidate(task, _AT_HAND, (Signal("active", _AT_HAND),)))

    def _in_sight(self, node_ids: Sequence[NodeId]) -> Sequence[NodeId]:
        if self._sources.in_sight is None:
            return node_ids
        visible = self._sources.in_sight(node_ids)
        return [node_id for node_id in node_ids if node_id in visible]

    def _names(self, nodes: Mapping[NodeId, Node]) -> list[str]:
        """Names for nodes: anchors by name, documents by number, all others by type and id."""
        shown = self._sources.graphs.shown(nodes)
        return [
            _display_name(node)
            if node.type in _PLACES
            else documents_by_number.name(node) or f"{node.type}:{shown[node.id]}"
            for node in nodes.values()
        ]

    def _add_candidate(self, known: _NodeCandidate) -> None:
        """Add a node. If it was found in two ways, it has two reasons, and the weaker score counts
        in part."""
        before = self._known.get(known.node.id)
        if before is None:
            self._known[known.node.id] = known
            return
        weaker, stronger = sorted((before, known), key=lambda one: one.score)
        named = {signal.name for signal in stronger.signals}
        also = tuple(
            Signal(signal.name, _ALSO * signal.value)
            for signal in weaker.signals
            if signal.name not in named
        )
        score = min(stronger.score + sum(signal.value for signal in also), 1.0)
        self._known[known.node.id] = stronger._replace(
            score=score, signals=(*stronger.signals, *also)
        )

    def _follow(self, starts: Mapping[NodeId, float]) -> list[MemoryPointer]:
        """Follow the edges, and collect the anchors on the way."""
        graphs = self._sources.graphs
        steps = expand.in_memory(graphs, starts, self._limits, self._sources.in_sight)
        every = [*starts, *(step.id for step in steps)]
        nodes = {node.id: node for node in graphs.nodes(every)}
        by_id = {step.id: step for step in steps}
        pointers: list[MemoryPointer] = []
        for step in steps:
            node = nodes.get(step.id)
            if node is None:
                continue
            via = _path_to_node(step, by_id, nodes)
            self._reached.setdefault(node.id, node)
            if node.type in ("file", "item"):
                pointers.append(MemoryPointer(node.type, _display_name(node), step.score, via))
            elif node.superseded_by is not None:
                if node.id not in self._known:
                    self._leave_out(node, step.score)
            else:
                self._add_candidate(
                    _NodeCandidate(node, step.score, (Signal("graph", step.score),), via)
                )
        return pointers

    def _leave_out(self, node: Node, score: float, reason: str = "superseded") -> None:
        title = f"{node.type.capitalize()}: {_display_name(node)}"
        self._replaced.setdefault(node.id, LeftOutChunk(title, score, 0, reason))


def _matches_question(ranked: RankedNode) -> bool:
    """Whether a node matches the question. Scores are relative to the best node, which may not
    match at all. A node without words or vectors to compare was selected by filters."""
    is_weak = ranked.coverage < _LEAST_COVERAGE and ranked.nearness < _LEAST_NEARNESS
    return not (is_weak and (ranked.coverage or ranked.nearness))


def _question_coverage(ranked: RankedNode) -> float:
    """How much of the question a node covers, by words or by meaning."""
    return min(max(ranked.coverage, ranked.nearness), 1.0)


def _path_to_node(
    step: expand.ExpandedNode,
    by_id: Mapping[NodeId, expand.ExpandedNode],
    nodes: Mapping[NodeId, Node],
) -> tuple[str, ...]:
    def called(node_id: NodeId) -> str:
        return _display_name(nodes[node_id]) if node_id in nodes else node_id

    way = [called(step.id)]
    at: expand.ExpandedNode | None = step
    while at is not None and len(way) < 20:
        way[:0] = [called(at.previous), at.label]
        at = by_id.get(at.previous)
    return tuple(way)


def _display_name(node: Node) -> str:
    """A readable name for a node: its first line, or the name of an anchor."""
    name = node.metadata.get("path") or node.metadata.get("name")
    if node.type in _PLACES and isinstance(name, str):
        return name
    return node.content.strip().partition("\n")[0][:120]
