"""Machines that exchange batches in any order end up with the same store."""

import pytest

from tests import effort
from tests.sync.replicas_in_memory import converge, skewed_clock


@pytest.mark.parametrize("seed", range(effort.times(5)))
def test_three_machines_end_up_with_identical_stores(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 random operations on each, an hour of clock skew, lost and repeated batches."""
    converge(seed, 300, skewed_clock(monkeypatch))
