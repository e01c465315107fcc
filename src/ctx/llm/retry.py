"""Retries: what a failed attempt means, and how long to wait before the next one."""

import random
from typing import NamedTuple

from ctx.errors import BudgetExceeded, ModelFailure

_LONGEST_WAIT_S = 60.0
"""The longest total wait between the attempts of one request."""


class RetryPolicy(NamedTuple):
    silence_s: float
    """How long a model may send nothing."""
    retries: int
    connect_s: float = 5.0
    pause_s: float = 0.5
    """The approximate wait before the second attempt; it doubles for each further one."""


class AttemptFailed(Exception):
    """A failed attempt: the error, whether its tokens count, and when to retry, if at all."""

    def __init__(
        self, failure: ModelFailure, *, counts: bool, may_repeat: bool, wait_s: float = 0.0
    ) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.counts = counts
        self.may_repeat = may_repeat
        self.wait_s = wait_s


class Backoff:
    """The waits between the attempts of one request."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._left = policy.retries
        self._pause_s = policy.pause_s
        self._left_s = _LONGEST_WAIT_S

    def pause_after(self, failed: AttemptFailed) -> float | None:
        """How long to wait now; None to give up."""
        # Jitter, so that clients that failed together do not retry together.
        pause = max(failed.wait_s, self._pause_s * random.uniform(0.5, 1.0))
        if not failed.may_repeat or not self._left or pause > self._left_s:
            return None
        self._left -= 1
        self._left_s -= pause
        self._pause_s *= 2
        return pause


def with_cause(error: BudgetExceeded, failure: ModelFailure | None) -> BudgetExceeded:
    """A budget error for a retry, with the failure that made the retry necessary."""
    if failure is None:
        return error
    return type(error)(error.message, hint=error.hint, detail=failure.message)
