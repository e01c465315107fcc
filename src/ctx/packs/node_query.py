"""The words of a question, weighted by how rare they are in some stores."""

from collections.abc import Iterable, Mapping, Sequence
from math import log
from sqlite3 import Connection
from typing import NamedTuple

from ctx import terms
from ctx.memory.query import node_candidates
from ctx.memory.query.node_candidates import NodeVocabulary
from ctx.search import question as questions

_LEAST_NODES = 200
"""In a smaller store, a word that all nodes contain is not common; it is their topic."""
_MOST_TERMS, _MOST_LOOKED_UP = 32, 256
_MISSPELT_COUNTS, _MOST_MISSPELT = 0.7, 5

_ASKS_WHAT_HAPPENED = frozenset(terms.query("go happen say talk tell went work"))


class NodeQuery(NamedTuple):
    """A question, prepared for comparison with texts."""

    weights: Mapping[str, float]
    """The weight of each term in the question."""
    worth: Mapping[str, float]
    """The same, multiplied by how rare the terms are in the stores."""
    covering: Mapping[str, float]
    """The share of each term in the question."""
    all_of_it: float
    """The sum of the shares, including terms that no node has."""
    rarest: tuple[str, ...]
    """The terms to look for."""


NOTHING = NodeQuery({}, {}, {}, 0.0, ())


def parse_telling(words: str, connections: Sequence[Connection]) -> NodeQuery:
    """Like `parse`, but nothing if the words only ask what happened."""
    question = questions.read(words)
    is_telling = question.is_telling and not question.weights.keys() <= _ASKS_WHAT_HAPPENED
    return parse(words, connections) if is_telling else NOTHING


def parse(words: str, connections: Sequence[Connection]) -> NodeQuery:
    """The weights of the words of a question, by how rare they are in these stores."""
    weights = dict(questions.read(words).weights)
    vocabulary = NodeVocabulary(connections)
    many = max(vocabulary.nodes, _LEAST_NODES)
    counts: dict[str, int] = {}
    all_of_it = 0.0
    misspelt = 0
    for term in sorted(weights, key=lambda term: -weights[term])[:_MOST_LOOKED_UP]:
        counts[term] = vocabulary.count(term)
        all_of_it += weights[term] * rarity(counts[term], many)
        if counts[term] or is_lone(term):
            continue
        del counts[term]
        misspelt += 1
        for meant in vocabulary.alike(term) if misspelt <= _MOST_MISSPELT else ():
            if meant not in weights:
                weights[meant] = _MISSPELT_COUNTS * weights[term]
                counts[meant] = vocabulary.count(meant)
    worth = {term: weights[term] * rarity(counts[term], vocabulary.nodes) for term in counts}
    telling = sorted(worth, key=lambda term: -worth[term])[:_MOST_TERMS]
    return NodeQuery(
        {term: weights[term] for term in telling},
        {term: worth[term] for term in telling},
        {term: weights[term] * rarity(counts[term], many) for term in telling},
        all_of_it,
        _rarest(telling, counts),
    )


def rarity(count: int, nodes: int) -> float:
    return log(1 + (nodes - count + 0.5) / (count + 0.5))


def _rarest(telling: Iterable[str], counts: Mapping[str, int]) -> tuple[str, ...]:
    """The terms to search with: few enough that ranking the nodes that contain them is fast."""
    rarest: list[str] = []
    left = node_candidates.MOST_MATCHES
    for term in sorted(telling, key=lambda term: counts[term]):
        left -= counts[term]
        if left < 0 and rarest:
            break
        rarest.append(term)
    return tuple(rarest)


def is_lone(term: str) -> bool:
    """Whether a term is a single character of a script that is indexed in pairs."""
    return len(term) == 1 and not term.isascii()
