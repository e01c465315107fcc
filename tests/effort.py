"""How far tests go that try many cases at random or one after the other.

`make test` tries enough of them to notice that something broke. `make thorough` tries ten times as
many, and all of what is otherwise only sampled.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EFFORT = float(os.environ.get("CTX_TEST_EFFORT", "1"))
IS_THOROUGH = EFFORT > 1


def times(count: int) -> int:
    """How many cases to try."""
    return max(1, round(count * EFFORT))


def every(step: int) -> int:
    """How far apart the cases are, of those that follow each other."""
    return max(1, round(step / EFFORT))


def some(cases: Sequence[T], number: int) -> Sequence[T]:
    """One of the cases, another one for each number; all, if there is time."""
    return cases if IS_THOROUGH else [cases[number % len(cases)]]
