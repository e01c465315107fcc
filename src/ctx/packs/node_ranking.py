"""The nodes of memory that answer a question, the best first, with reasons.

A few hundred candidates come from the text index and, if there are vectors, from the vectors. Their
score is a sum of signals that were measured to help (`python -m bench recall` can disable each):

* `text`: the words of the question; rare words count more (BM25).
* `beginning`: the same for the first words of a node. A long text states its topic first.
* `vectors`: similarity of meaning, even without a word in common.
* `beside`: what was said just before and after in the same session. A short note says little by
  itself, and the answer often follows the words of the question. The longer a node is, the less
  its neighbours count.
* `session`: the words of the question in all that its session says. Of several sessions, the best
  nodes come first.
* `time`: what happened at the time that the question names (`node_times.py`). If it asks for that
  time, common words count less and long nodes count more: "What did we do yesterday?" has no words
  that would tell the important nodes of a day from the others.

A superseded node counts half, if it is included at all.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple, TypeVar

from ctx.ids import NodeId
from ctx.memory.graphs import Graphs
from ctx.memory.model import WRONG, Node
from ctx.memory.query import node_candidates
from ctx.memory.query.compile import Scope
from ctx.memory.query.node_candidates import NodeText, NodeVocabulary
from ctx.memory.query.query_parser import Query, parse_words
from ctx.packs import node_query, node_times
from ctx.packs.node_query import NodeQuery
from ctx.packs.node_times import DatedQuestion
from ctx.packs.prompt_pack import Signal

TEXT, BEGINNING, VECTORS, BESIDE = "text", "beginning", "vectors", "beside"
SESSION = "session"
TIME, SUPERSEDED = "time", "superseded"

Nearness = Callable[[Collection[NodeId] | None], Mapping[NodeId, float]]
"""The similarity of nodes to the question, from 0 to 1: of the given nodes, or of the nearest of
all."""

_Key = TypeVar("_Key", bound=str)
_WEIGHTS = {TEXT: 0.2, BEGINNING: 0.4, VECTORS: 0.4}
_K1, _B = 1.2, 0.75
_BEGINNING = 60
"""The number of words at the beginning of a node."""
_STEPS = {1: 0.4, 2: 0.2}
"""What a neighbour's score adds, by distance in steps."""
_SHORT = 100
"""For a node with this many words, neighbours count half."""
_ENOUGH = 8
"""This many nodes are enough to estimate the usual similarity."""
_ALMOST_ALL = 0.95
"""The share of the nodes found by words that must have a vector for vectors to count."""
_SESSION_ADDS = 0.2
"""What the best session adds to its best node; half of that to the second, a third to the third."""
_CANDIDATES = 200
_WITH_NEIGHBOURS = 100
"""The number of best nodes that are scored together with their neighbours."""
_SUPERSEDED_LOSES = 0.5
_SAME_TIME, _SAME_TIME_SHARE = 1.0, 0.5
"""What the right time adds to a score, and which share of the rest."""
_TIME_RAISES = 0.2
"""Which share of the rest the right time adds if the time is not what the question asks for."""
_LONG, _LONG_ADDS = 60, 0.5
"""The number of words of a long node, and what that adds at the right time."""
_RELEVANT, _VERY_NEAR = 0.35, 0.5
_COVERAGE_COUNTS, _ANSWERED = 0.4, 0.41
"""What coverage counts beside nearness, and the minimum of both for an answer. Most questions about
something else stay below it, and hardly any with an answer."""
_FEW_NODES = 80
_USUALLY_NEAR = 0.33
"""The nearness to assume without vectors."""


class RankedNode(NamedTuple):
    """A node with its score and the reasons for it."""

    node: Node
    score: float
    """The best node has 1."""
    signals: tuple[Signal, ...]
    """The components of the score."""
    coverage: float
    """How much of the question its own words cover, from 0 to 1; rare words count more. 1 if the
    question names only a time."""
    nearness: float
    """The similarity of meaning, from 0 to 1; 0 if it was not computed."""


def relevant(ranked: Sequence[RankedNode]) -> list[RankedNode]:
    """Drop the nodes that are much weaker than the best one.

    A node that only vectors support is dropped too, unless it is very near: some node is always the
    nearest. The bounds were chosen where precision rises and hardly any evidence is lost.
    """
    return [node for node in ranked if node.score >= _RELEVANT and _is_match_itself(node)]


def _is_match_itself(node: RankedNode) -> bool:
    return node.coverage > 0 or node.nearness >= _VERY_NEAR or _has(node, BESIDE, TIME)


def is_answered(connections: Sequence[Connection], ranked: Sequence[RankedNode]) -> bool:
    """Whether the words and meanings of the nodes together are near enough to the question.

    Few nodes do not show which words are common, so among them every match counts.
    """
    has_vectors = any(node.nearness for node in ranked)
    is_near = any(
        _COVERAGE_COUNTS * node.coverage + (node.nearness if has_vectors else _USUALLY_NEAR)
        >= _ANSWERED
        # What is from the time that the question names is an answer.
        or _has(node, TIME)
        for node in ranked
    )
    return is_near or NodeVocabulary(connections).nodes < _FEW_NODES


def _has(node: RankedNode, *names: str) -> bool:
    return any(name in names for name, _ in node.signals)


class _NodeScores(NamedTuple):
    text: float
    beginning: float
    covered: float
    words: int


def rank(
    graphs: Graphs,
    question: Query | str,
    scope: Scope,
    now_ms: int,
    limit: int,
    nearness: Nearness | None = None,
    without: Collection[str] = (),
) -> list[RankedNode]:
    """The nodes that answer best; a limit of 0 means no limit. `without` disables signals."""
    query = parse_words(question) if isinstance(question, str) else question
    connections = graphs.connections
    dated = (
        DatedQuestion(node_query.parse(query.words, connections))
        if TIME in without
        else node_times.read(connections, query, scope, now_ms)
    )
    words = dated.words
    candidates = node_candidates.best_by_terms(
        connections, query, scope, now_ms, words.rarest, _CANDIDATES
    )
    if dated.asks_for_time:
        then = node_times.candidates(connections, query, scope, now_ms, dated)
        candidates = list(dict.fromkeys((*candidates, *then)))
    near: dict[NodeId, float] = {}
    if nearness is not None and VECTORS not in without:
        having = nearness(candidates)
        # While vectors are being computed, they would favour the nodes that already have one.
        if len(having) >= _ALMOST_ALL * len(candidates):
            nearest = nearness(None)
            others = nearest.keys() - set(candidates)
            visible_others = node_candidates.visible_nodes(
                connections, query, scope, now_ms, others
            )
            candidates += sorted(visible_others)
            near = {**having, **{node_id: nearest[node_id] for node_id in visible_others}}
    texts = {text.id: text for text in node_candidates.texts(connections, candidates)}
    compared, counted = _score_nodes(words, texts.values())
    parts = _parts(compared, near, without)
    if SESSION not in without and not dated.asks_for_time:
        _add_sessions(words, texts, counted, parts)
    if BESIDE not in without:

        def visible(node_ids: Collection[NodeId]) -> set[NodeId]:
            return node_candidates.visible_nodes(connections, query, scope, now_ms, node_ids)

        _add_neighbours(connections, visible, texts, compared, parts)
    if dated.spans:
        fits = node_times.fits(connections, texts, dated.spans)
        if dated.asks_for_time:
            _add_time(parts, compared, fits, dated.words_count)
        else:
            for node_id, fit in fits.items():
                if compared[node_id].covered:
                    parts[node_id][TIME] = _TIME_RAISES * fit * sum(parts[node_id].values())
    for node_id, text in texts.items():
        if text.is_superseded and SUPERSEDED not in without:
            parts[node_id][SUPERSEDED] = -_SUPERSEDED_LOSES * sum(parts[node_id].values())
    return _best(graphs, parts, compared, near, limit)


class _CountedText(NamedTuple):
    words: int
    terms: Mapping[str, int]
    """How often each term of the question occurs, if it does."""


def _score_nodes(
    query: NodeQuery, texts: Iterable[NodeText]
) -> tuple[dict[NodeId, _NodeScores], dict[NodeId, _CountedText]]:
    whole: dict[NodeId, _CountedText] = {}
    beginnings: dict[NodeId, _CountedText] = {}
    lone = [term for term in query.weights if node_query.is_lone(term)]
    for text in texts:
        words = text.terms.split()
        whole[text.id] = counted = _counted(query.weights, lone, words)
        if len(words) > _BEGINNING:
            counted = _counted(query.weights, lone, words[:_BEGINNING])
        beginnings[text.id] = counted
    # A term that is rare in texts may be common in their beginnings.
    worth = _rarity_among(query, beginnings.values())
    scores, first = _scores(query.worth, whole), _scores(worth, beginnings)
    return {
        node_id: _NodeScores(scores[node_id], first[node_id], _coverage(query, text), text.words)
        for node_id, text in whole.items()
    }, whole


def _counted(wanted: Iterable[str], lone: Iterable[str], words: Sequence[str]) -> _CountedText:
    there = set(words)
    counts = {term: words.count(term) for term in wanted if term in there}
    for term in lone:
        if times := sum(word.startswith(term) for word in words):
            counts[term] = times
    return _CountedText(len(words), counts)


def _scores(worth: Mapping[str, float], texts: Mapping[_Key, _CountedText]) -> dict[_Key, float]:
    """BM25 of each text, with the weight of each term."""
    average = sum(text.words for text in texts.values()) / max(1, len(texts)) or 1.0
    scores: dict[_Key, float] = {}
    for key, text in texts.items():
        length = _K1 * (1 - _B + _B * text.words / average)
        scores[key] = sum(
            worth[term] * count * (_K1 + 1) / (count + length) for term, count in text.terms.items()
        )
    return scores


def _coverage(query: NodeQuery, text: _CountedText) -> float:
    """How much of the question the words of a text cover."""
    if query == node_query.NOTHING:
        return 1.0
    return sum(query.covering[term] for term in text.terms) / (query.all_of_it or 1.0)


def _parts(
    compared: Mapping[NodeId, _NodeScores], near: Mapping[NodeId, float], without: Collection[str]
) -> dict[NodeId, dict[str, float]]:
    """What each signal adds to the score of each node, relative to the best."""
    # All texts are somewhat similar, so only what exceeds the usual similarity counts.
    usual = max(0.0, _median(near.values())) if len(near) >= _ENOUGH else 0.0
    values: dict[str, Mapping[NodeId, float]] = {
        TEXT: {node_id: scores.text for node_id, scores in compared.items()},
        BEGINNING: {node_id: scores.beginning for node_id, scores in compared.items()},
        VECTORS: {node_id: max(0.0, near.get(node_id, 0.0) - usual) for node_id in compared},
    }
    parts: dict[NodeId, dict[str, float]] = {node_id: {} for node_id in compared}
    for name, scores in values.items():
        best = max(scores.values(), default=0.0)
        if best > 0 and name not in without:
            for node_id, score in scores.items():
                if score:
                    parts[node_id][name] = _WEIGHTS[name] * score / best
    return parts


def _add_sessions(
    query: NodeQuery,
    texts: Mapping[NodeId, NodeText],
    counted: Mapping[NodeId, _CountedText],
    parts: Mapping[NodeId, dict[str, float]],
) -> None:
    """Add the score of each session, by all that its candidates say, to the best of them."""
    sessions: dict[str, list[NodeId]] = {}
    for node_id in sorted(parts, key=lambda node_id: -sum(parts[node_id].values())):
        if session := texts[node_id].session:
            sessions.setdefault(session, []).append(node_id)
    merged: dict[str, _CountedText] = {}
    for session, node_ids in sessions.items():
        times: Counter[str] = Counter()
        for node_id in node_ids:
            times.update(counted[node_id].terms)
        merged[session] = _CountedText(sum(counted[each].words for each in node_ids), times)
    scores = _scores(_rarity_among(query, merged.values()), merged)
    best = max(scores.values(), default=0.0)
    if len(sessions) > 1 and best > 0:
        for session, node_ids in sessions.items():
            for place, node_id in enumerate(node_ids, 1):
                parts[node_id][SESSION] = _SESSION_ADDS * scores[session] / best / place


def _rarity_among(query: NodeQuery, texts: Collection[_CountedText]) -> dict[str, float]:
    """The weight of each term by how rare it is among these texts."""
    having = Counter(term for text in texts for term in text.terms)
    return {
        term: weight * node_query.rarity(having[term], len(texts))
        for term, weight in query.weights.items()
    }


def _median(values: Collection[float]) -> float:
    """Like `statistics.median`, which takes too long to import."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _add_neighbours(
    connections: Sequence[Connection],
    visible: Callable[[Collection[NodeId]], set[NodeId]],
    texts: dict[NodeId, NodeText],
    compared: dict[NodeId, _NodeScores],
    parts: dict[NodeId, dict[str, float]],
) -> None:
    """Add the scores of a node's neighbours in its session, and include such neighbours."""
    own = {node_id: sum(values.values()) for node_id, values in parts.items()}
    best = sorted(own, key=lambda node_id: -own[node_id])[:_WITH_NEIGHBOURS]
    sessions = {node_id: texts[node_id].session for node_id in best if texts[node_id].session}
    near = node_candidates.session_neighbours(connections, sessions, max(_STEPS))
    others = {node_id for neighbours in near.values() for node_id, _ in neighbours} - texts.keys()
    for text in node_candidates.texts(connections, visible(others)):
        texts[text.id] = text
        compared[text.id] = _NodeScores(0.0, 0.0, 0.0, len(text.terms.split()))
        parts[text.id] = {}
    for node_id, neighbours in near.items():
        for neighbour, steps in neighbours:
            if neighbour in parts:
                share = 1 / (1 + (compared[neighbour].words / _SHORT) ** 2)
                added = share * _STEPS[steps] * own[node_id]
                parts[neighbour][BESIDE] = parts[neighbour].get(BESIDE, 0.0) + added


def _add_time(
    parts: dict[NodeId, dict[str, float]],
    compared: Mapping[NodeId, _NodeScores],
    fits: Mapping[NodeId, float],
    words_count: float,
) -> None:
    """Add the score for the right time, and reduce the rest if it has only common words."""
    for node_id, signals in parts.items():
        for name in signals:
            signals[name] *= words_count
        if fit := fits.get(node_id, 0.0):
            length = min(1.0, compared[node_id].words / _LONG)
            rest = _SAME_TIME_SHARE * sum(signals.values())
            signals[TIME] = fit * (_SAME_TIME + rest + _LONG_ADDS * length)


def _best(
    graphs: Graphs,
    parts: Mapping[NodeId, Mapping[str, float]],
    compared: Mapping[NodeId, _NodeScores],
    near: Mapping[NodeId, float],
    limit: int,
) -> list[RankedNode]:
    scores = {node_id: sum(values.values()) for node_id, values in parts.items()}
    # For equal scores the newest first: ids increase with time.
    ordered = sorted(
        (node_id for node_id, score in scores.items() if score > 0),
        key=lambda node_id: (scores[node_id], node_id),
        reverse=True,
    )[: limit or None]
    most = scores[ordered[0]] if ordered else 1.0
    return [
        RankedNode(
            node,
            scores[node.id] / most,
            tuple(Signal(name, value / most) for name, value in parts[node.id].items()),
            compared[node.id].covered,
            near.get(node.id, 0.0),
        )
        for node in graphs.nodes(ordered)
        if WRONG not in node.tags
    ]
