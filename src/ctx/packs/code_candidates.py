"""The candidates from the code: ranked files, their parts, and what the graph adds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from math import fsum, inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

from ctx import terms
from ctx.code import file_roles
from ctx.code.vocabulary import CONFIDENCES, CONTAINERS, LABELS, file_of, item_id
from ctx.packs import chunks, expand, file_ranking, item_ranking, seeds
from ctx.packs.budget import ChunkOffer
from ctx.packs.file_excerpts import FileTexts
from ctx.packs.file_ranking import RankedFile
from ctx.packs.item_ranking import ItemCandidate, ItemQuery
from ctx.packs.prompt_pack import Chunk, PackFile, RelatedItem, Signal
from ctx.search.entities import Entities
from ctx.search.question import SearchQuestion

if TYPE_CHECKING:
    from ctx.packs.pack_pipeline import RetrievalConfig, Sources

_FEWEST, _MOST, _TOKENS_A_FILE = 6, 20, 2_000
"""The number of files to search. It grows with the budget."""
_MOST_PARTS, _TOKENS_A_PART = 100, 100
"""The number of parts to offer. It grows with the budget."""
_SMALLEST_PART, _PARTS = 100, 2
"""A part that takes more than half of the budget is shown as an excerpt."""
_SURELY = 20
"""The number of parts to offer, however unlikely they are."""

# The components of a part's score.
_APART = 0.7
"""The factor for a file that is connected to none of the others. Connected files rank higher."""
_WEIGHT_EXPONENT = 3
"""Among connected files, the best ones count far more than the rest."""
_NAMED = 0.15
_TOUCHED = 0.05
_BESIDE = 0.35
"""The factor for tests and documentation, unless the task is about them."""
_LEADING, _CALLED = 12, 0.2
"""What so many of the likeliest items call in their file is likely, as a share of their own
probability."""
_SHARED = ("CALLS", "REFERENCES", "USES_TYPE")
_MOST_INSIDE = 20
_ANCHORED = 12
_LONGEST_WAY = 20


class MemoryPointer(NamedTuple):
    """A file or item that memory refers to."""

    kind: str
    """`file` or `item`."""
    name: str
    score: float
    via: tuple[str, ...]


class _ScoredCandidate(NamedTuple):
    candidate: ItemCandidate
    score: float
    signals: tuple[Signal, ...]
    via: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.candidate.row is None


class CodeCandidates:
    """The candidates from the code for one task."""

    def __init__(
        self,
        sources: "Sources",
        config: "RetrievalConfig",
        question: SearchQuestion,
        entities: Entities,
        room: int,
    ) -> None:
        assert sources.code is not None
        self._code = sources.code
        self._sources = sources
        self._config = config
        self._question = question
        self._texts = FileTexts(sources.code.connection, sources.root)
        self._named = seeds.in_code(sources.code, entities)
        part = max(room // _PARTS, _SMALLEST_PART)
        self._query = ItemQuery(question.weights, self._named.items, entities.quoted, part)
        self._most = min(_MOST, _FEWEST + max(room, 0) // _TOKENS_A_FILE)
        self._most_parts = min(_MOST_PARTS, _FEWEST + max(room, 0) // _TOKENS_A_PART)
        ranked = file_ranking.rank(
            sources.code.connection, question, self._named.files, self._named.items
        )
        self.files = [file for file in ranked if self._allows(file.path)]
        self._touched = frozenset(sources.touched)
        self._scored: dict[int, _ScoredCandidate] = {}
        self._best_score = self._best_probability = 1.0
        self._names: dict[int, str] = {}
        self.seed_names: list[str] = []
        self.reached_names: list[str] = []
        self.condensed = False
        self.unlikely = 0
        """How many parts are too unlikely to be offered."""

    def look_at(self, pointers: Sequence[MemoryPointer]) -> None:
        """Search the files, including those that memory refers to."""
        looked_at = [*self.files[: self._most]]
        known = {file.path for file in looked_at}
        by_memory = self._referenced_items(pointers)
        wanted = {
            **{item: pointer.score for item, pointer in by_memory.items()},
            **self._named.items,
        }
        self._query = self._query._replace(named=wanted)
        for located in self._code.located(wanted):
            if located.path not in known and self._allows(located.path):
                known.add(located.path)
                looked_at.append(RankedFile(file_of(located.id), located.path, 0.0, ()))
        self._score(looked_at, by_memory)
        own = [item for item, scored in self._scored.items() if not scored.via]
        self._learn_names([*self._named.items, *self._scored])
        self.seed_names = [self._name(item) for item in [*self._named.items, *own][:_ANCHORED]]

    def offers(self) -> list[ChunkOffer]:
        offers = [
            chunks.part_offer(
                item_ranking.candidate_part(scored.candidate, self._query),
                self._name(item),
                (scored.score, scored.signals, scored.via),
                # What memory refers to is not judged by its words.
                None if scored.via else self._probability(scored.score),
            )
            for item, scored in self._scored.items()
        ]
        # An empty file has nothing to read, even if it is the right one.
        return [offer for offer in offers if offer.chunk.snippet.strip()]

    def ranked(self) -> Iterator[PackFile]:
        """The files in order, with their scores."""
        least = inf
        for file in self.files:
            # A test ranks below everything that it may test, whatever words it contains.
            least = min(least, file.score)
            factor = least / file.score if file.score else 1.0
            signals = tuple(Signal(signal.name, signal.value * factor) for signal in file.signals)
            yield PackFile(file.path, least, signals)

    @property
    def confidence(self) -> float | None:
        """The probability that the first file is right; None without files."""
        weights = list(map(self._file_weight, self.files))
        return file_ranking.confidence(weights) if any(weights) else None

    def anchors(self) -> dict[tuple[str, str], float]:
        """What memory may refer to: the best items and files, with their scores."""
        anchors: dict[tuple[str, str], float] = {}
        # Items that memory pointed to are excluded: they would only lead back to the same nodes.
        own = [(item, scored) for item, scored in self._scored.items() if not scored.via]
        for item, scored in own[:_ANCHORED]:
            anchors.setdefault(("file", scored.candidate.searched.file.path), scored.score)
            inside = self._code.within([item])[:_MOST_INSIDE] if scored.is_whole else [item]
            for one in inside:
                anchors.setdefault(("item", self._name(one)), scored.score)
        return anchors

    # Scores

    def _score(
        self, looked_at: Sequence[RankedFile], pointers: Mapping[int, MemoryPointer]
    ) -> None:
        weights = self._relative_weights(looked_at)
        self._query = self._query._replace(file_weights=weights)
        candidates = self._with_called(
            item_ranking.candidates(self._code, self._texts, looked_at, self._query)
        )
        best = max((candidate.probability for candidate in candidates), default=1.0)
        scale = self._scale(candidates)
        scored = [
            self._scored_one(candidate, scale * sqrt(candidate.probability / best), pointers)
            for candidate in candidates
        ]
        scored = [item for item in scored if item.score > 0]
        scored.sort(key=lambda item: (-item.score, item.candidate.id))
        # What the task names may score higher than any search result.
        most = max(scored[0].score, 1.0) if scored else 1.0
        self._best_score = scored[0].score / most if scored else 1.0
        self._best_probability = best
        for place, item in enumerate(scored[: self._most_parts]):
            score = item.score / most
            if place < _SURELY or item.via or self._probability(score) >= self._config.least:
                signals = tuple(Signal(one.name, one.value / most) for one in item.signals)
                self._scored[item.candidate.id] = item._replace(score=score, signals=signals)
            else:
                self.unlikely += 1

    def _with_called(self, candidates: Sequence[ItemCandidate]) -> list[ItemCandidate]:
        """The candidates, and what likely ones call or use in the same file: it is likely too."""
        labels = [label for label in _SHARED if label in self._config.labels]
        if not self._config.depth or not labels:
            return [*candidates]
        by_id = {candidate.id: candidate for candidate in candidates}
        likely = nlargest(_LEADING, by_id.values(), key=lambda candidate: candidate.probability)
        least = CONFIDENCES.index(self._config.min_confidence)
        for edge in self._code.edges_from([each.id for each in likely], labels, least):
            source, known = by_id[edge.source], by_id.get(edge.target)
            row = source.searched.rows.get(edge.target)
            probability = _CALLED * source.probability
            if (
                row
                and row.kind not in CONTAINERS
                and not (known and known.probability >= probability)
            ):
                covered = known.covered if known else frozenset()
                by_id[row.id] = ItemCandidate(source.searched, row, probability, covered)
        return [*by_id.values()]

    def _scored_one(
        self, candidate: ItemCandidate, score: float, pointers: Mapping[int, MemoryPointer]
    ) -> _ScoredCandidate:
        file = candidate.searched.file
        shown = self._items_shown_by(candidate)
        factor = score / file.score if file.score else 0.0
        by_name = {signal.name: signal.value * factor for signal in file.signals}
        if sure := max((self._named.items.get(item, 0.0) for item in shown), default=0.0):
            by_name["named"] = by_name.get("named", 0.0) + _NAMED * sure
        if file.path in self._touched:
            by_name["touched"] = _TOUCHED
        signals = [Signal(name, value) for name, value in by_name.items()]
        score = sum(signal.value for signal in signals)
        by_memory = max(
            (pointers[item] for item in shown if item in pointers),
            key=lambda pointer: pointer.score,
            default=None,
        )
        if by_memory and by_memory.score > score:
            signals = [Signal("graph", by_memory.score)]
            return _ScoredCandidate(candidate, by_memory.score, tuple(signals), by_memory.via)
        return _ScoredCandidate(candidate, score, tuple(signals))

    def _probability(self, score: float) -> float:
        """The probability that the task changes something. Scores grow with its root."""
        return self._best_probability * min(score / self._best_score, 1.0) ** 2

    def _items_shown_by(self, candidate: ItemCandidate) -> list[int]:
        """The wanted items that a candidate shows: all of them if it is a whole file."""
        if candidate.row is not None:
            return [candidate.id]
        wanted = self._query.named
        file_id = candidate.searched.file.id
        return [candidate.id, *(item for item in wanted if file_of(item) == file_id)]

    def _file_weight(self, file: RankedFile) -> float:
        """The weight of a file by its role in the project."""
        if file_roles.role_of(file.path) != file_roles.BESIDE:
            return file.score
        is_wanted = self._question.is_about_tests and file_roles.is_test(file.path)
        # A test repeats the words of the code it tests and may contain more of them.
        return file.score if is_wanted else _BESIDE * min(file.score, 1.0)

    def _relative_weights(self, looked_at: Sequence[RankedFile]) -> dict[int, float]:
        """The weight of each file, compared with the best."""
        shares = self._connected_file_weights(looked_at)
        weights = {file.id: self._file_weight(file) * shares[file.id] for file in looked_at}
        best = max(weights.values(), default=0.0) or 1.0
        return {id: weight / best for id, weight in weights.items()}

    def _connected_file_weights(self, looked_at: Sequence[RankedFile]) -> dict[int, float]:
        """The weight of each file, by how much of the total score is in it or in files connected to
        it."""
        every = dict.fromkeys((file.id for file in looked_at), 1.0)
        labels = [label for label in LABELS if label in self._config.labels]
        if not self._config.depth or not labels:
            return every
        least = CONFIDENCES.index(self._config.min_confidence)
        joined = self._code.joined_files(every, labels, least)
        if not any(joined.values()):
            # Nothing is resolved yet, or no files are connected.
            return every
        fits = {file.id: self._file_weight(file) ** _WEIGHT_EXPONENT for file in looked_at}
        around = {id: fsum((fits[id], *map(fits.__getitem__, joined[id]))) for id in every}
        most = max(around.values()) or 1.0
        return {id: _APART + (1 - _APART) * around[id] / most for id in every}

    def _scale(self, candidates: Sequence[ItemCandidate]) -> float:
        """How much of the task the best file covers."""
        weights = self._question.weights
        every = sum(weights.values())
        covered: dict[str, set[str]] = {}
        best = {file.path for file in self.files[:3]}
        for candidate in candidates:
            path = candidate.searched.file.path
            if path in best:
                covered.setdefault(path, set(terms.extract(path))).update(candidate.covered)
        most = max(
            (fsum(weights.get(term, 0.0) for term in own) for own in covered.values()),
            default=0.0,
        )
        return chunks.by_coverage(most / every if every else 0.0)

    def _referenced_items(self, pointers: Sequence[MemoryPointer]) -> dict[int, MemoryPointer]:
        """The items that memory refers to. For a file, it is the item of the file itself."""
        by_item: dict[int, MemoryPointer] = {}
        for pointer in pointers:
            if pointer.kind == "file":
                file = self._code.file(pointer.name)
                meant = [item_id(file.id, 0)] if file else []
            else:
                meant = [item.id for item in seeds.items_named(self._code, pointer.name)]
            for item in meant:
                if item not in by_item or by_item[item].score < pointer.score:
                    by_item[item] = pointer
        return by_item

    # The graph

    def related(self, shown: Sequence[Chunk]) -> list[RelatedItem]:
        """What the shown parts call and use, and what calls them, the nearest first."""
        titles = {(chunk.path, chunk.name) for chunk in shown}
        starts: dict[int, float] = {}
        for item, scored in self._scored.items():
            path = scored.candidate.searched.file.path
            if (path, self._name(item) or path) in titles:
                starts[item] = scored.score
                # A file that is shown whole leads to everything that its items lead to.
                inside = self._code.within([item])[:_MOST_INSIDE] if scored.is_whole else ()
                starts.update((each, scored.score) for each in inside if each not in starts)
        limits = expand.ExpansionLimits(
            self._config.depth,
            self._config.labels,
            self._config.max_expanded_nodes,
            self._config.min_confidence,
        )
        expansion = expand.in_code(self._code, starts, limits)
        by_id = {reached.id: reached for reached in expansion.items}
        located = {item.id: item for item in self._code.located(by_id)}
        self._learn_names(starts)
        self._names.update((there.id, there.name) for there in located.values())
        ranges = [(chunk.path, chunk.first_line or 0, chunk.last_line or 0) for chunk in shown]
        related = [
            RelatedItem(
                there.path,
                there.line,
                there.name,
                there.signature,
                self._path_to_item(reached, by_id),
            )
            for reached in expansion.items
            if (there := located.get(reached.id))
            and self._allows(there.path)
            and there.kind != "module"
            # What else a caller or a test uses says nothing about the task.
            and not (reached.previous in by_id and by_id[reached.previous].label.startswith("<"))
            and not any(
                path == there.path and first <= there.line <= last for path, first, last in ranges
            )
        ]
        self.reached_names = [each.name for each in related]
        self.condensed = expansion.condensed and bool(related)
        return related

    def _path_to_item(
        self, reached: expand.ReachedItem, by_id: Mapping[int, expand.ReachedItem]
    ) -> tuple[str, ...]:
        """The path from a seed to an item: names, with the edges between them."""
        way = [self._name(reached.id)]
        at: expand.ReachedItem | None = reached
        while at is not None and len(way) < _LONGEST_WAY:
            way[:0] = [self._name(at.previous), at.label]
            at = by_id.get(at.previous)
        return tuple(way)

    def _learn_names(self, items: Iterable[int]) -> None:
        """Look up names in one batch, which is faster than one by one."""
        unknown = [item for item in items if item not in self._names]
        self._names.update((item.id, item.name) for item in self._code.located(unknown))

    def _name(self, item: int) -> str:
        if item not in self._names:
            located = self._code.located([item])
            self._names[item] = located[0].name if located else ""
        return self._names[item]

    def _allows(self, path: str) -> bool:
        return self._sources.allows is None or self._sources.allows(path)
