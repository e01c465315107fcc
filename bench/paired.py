"""How far a figure can be relied on, and whether a difference is more than chance.

Both sides of a comparison answered the same questions, so what counts is where they differ.
"""

import random
from collections.abc import Sequence
from math import comb
from typing import NamedTuple

ROUNDS = 2_000
_SEED = 7
_TAIL = 0.025


class Interval(NamedTuple):
    """A mean, and what it lies between in 95 of 100 samples like this one."""

    mean: float
    low: float
    high: float


class Differing(NamedTuple):
    """Questions that only one side got right."""

    won: int
    lost: int

    @property
    def p(self) -> float:
        """How likely so uneven a split is if neither is better: the exact test of McNemar."""
        count = self.won + self.lost
        if not count:
            return 1.0
        tail = sum(comb(count, k) for k in range(max(self.won, self.lost), count + 1))
        return min(1.0, 2.0 * tail / (1 << count))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float], rounds: int = ROUNDS) -> Interval:
    """By the bootstrap: drawn again and again, with the same seed in every run."""
    if not values:
        return Interval(0.0, 0.0, 0.0)
    chance = random.Random(_SEED)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(rounds))
    return Interval(mean(values), means[int(rounds * _TAIL)], means[-1 - int(rounds * _TAIL)])


def gain(ours: Sequence[float], theirs: Sequence[float], rounds: int = ROUNDS) -> Interval:
    """By how much ours is better, question by question."""
    return interval([our - their for our, their in zip(ours, theirs, strict=True)], rounds)


def differing(ours: Sequence[float], theirs: Sequence[float]) -> Differing:
    pairs = list(zip(ours, theirs, strict=True))
    return Differing(
        sum(our > their for our, their in pairs), sum(our < their for our, their in pairs)
    )
