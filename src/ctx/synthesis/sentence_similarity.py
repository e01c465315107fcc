"""Whether two sentences mean the same or contradict each other."""

import re
from functools import lru_cache
from typing import NamedTuple

from ctx import terms
from ctx.synthesis import dedupe

_LEAST_SIMILARITY = 0.6
_LONGEST = 960
_COMMON = frozenset(
    terms.extract(
        "the a an and or of to in on for with is are be as at by it its this that we i you should"
        " must use used using will from not no always never only instead because so than then"
    )
)
_CODE = re.compile(r"`([^`]{1,100})`")
_OPPOSITE = re.compile(
    r"\b(?:no longer|not any ?more|stop|don'?t|do not|never|instead of|rather than|avoid|wrong)\b",
    re.IGNORECASE,
)


class Meaning(NamedTuple):
    subject: frozenset[str]
    """The terms of the sentence, without stop words."""
    says_no: bool
    names: frozenset[str]
    """Code names in backticks."""
    numbers: frozenset[str]


# Cached: hundreds of sentences are compared, each with all others.
@lru_cache(maxsize=4_096)
def meaning_of(text: str) -> Meaning:
    head = text[:_LONGEST]
    return Meaning(
        frozenset(terms.extract(head)) - _COMMON,
        _OPPOSITE.search(head) is not None,
        frozenset(_CODE.findall(text)),
        dedupe.sense(text).numbers,
    )


def is_similar(one: str, other: str) -> bool:
    """Whether two sentences mean the same in different words."""
    first, second = meaning_of(one), meaning_of(other)
    if first.says_no != second.says_no or first.numbers != second.numbers:
        return False
    if first.names and second.names and first.names.isdisjoint(second.names):
        # That the query in `report` is slow does not apply to `export`.
        return False
    return _overlap(first.subject, second.subject) >= _LEAST_SIMILARITY and not dedupe.is_opposite(
        one, other
    )


def contradicts(said: str, learning: str) -> bool:
    """Whether a sentence contradicts a learning: same subject, opposite polarity."""
    if dedupe.is_opposite(said, learning):
        return True
    known, now = meaning_of(learning), meaning_of(said)
    if now.says_no == known.says_no or not known.subject:
        return False
    return len(known.subject & now.subject) / len(known.subject) >= _LEAST_SIMILARITY


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
