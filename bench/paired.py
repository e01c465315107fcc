"""How reliable a figure is, and whether a difference is more than chance.

Both sides of a comparison answered the same questions, so only their differences count.
"""

import random
from collections.abc import Sequence
from math import comb
from typing import NamedTuple

ROUNDS = 2_000
_SEED = 7
_TAIL = 0.025


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


class Differing(NamedTuple):
    """Questions that only one side got right."""

    won: int
    lost: int

    @property
    def p(self) -> float:
        """The probability of such an uneven split if neither is better: McNemar's exact test."""
        count = self.won + self.lost
        if not count:
            return 1.0
        tail = sum(comb(count, k) for k in range(max(self.won, self.lost), count + 1))
        return min(1.0, 2.0 * tail / (1 << count))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float], rounds: int = ROUNDS) -> Interval:
    """A bootstrap interval, with the same seed in every run."""
    if not values:
        return Interval(0.0, 0.0, 0.0)
    chance = random.Random(_SEED)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(rounds))
    return Interval(mean(values), means[int(rounds * _TAIL)], means[-1 - int(rounds * _TAIL)])


def gain(ours: Sequence[float], theirs: Sequence[float], rounds: int = ROUNDS) -> Interval:
    """The mean difference over all questions."""
    return interval([our - their for our, their in zip(ours, theirs, strict=True)], rounds)


def differing(ours: Sequence[float], theirs: Sequence[float]) -> Differing:
    pairs = list(zip(ours, theirs, strict=True))
    return Differing(
        sum(our > their for our, their in pairs), sum(our < their for our, their in pairs)
    )


COLUMNS = ("before", "after", "gain", "won, lost")


def row(before: Sequence[float], after: Sequence[float]) -> list[str]:
    """Two runs on the same questions as cells of a table, in percent."""
    change, apart = gain(after, before), differing(after, before)
    return [
        f"{100 * mean(before):.1f}",
        f"{100 * mean(after):.1f}",
        f"{100 * change.mean:+.1f} ({100 * change.low:+.1f} to {100 * change.high:+.1f})",
        f"{apart.won}, {apart.lost}",
    ]
