"""Machines that exchange batches in any order end up with the same store."""

import pytest

from ctx.memory.changes import changing
from ctx.sync.replicate import Replication
from tests import effort
from tests.memory.graphs import WHO, graph
from tests.sync.replicas_in_memory import KEYS, Machine, converge, skewed_clock


@pytest.mark.parametrize("seed", range(effort.times(5)))
def test_three_machines_end_up_with_identical_stores(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 random operations on each, an hour of clock skew, lost and repeated batches."""
    converge(seed, 300, skewed_clock(monkeypatch))


def test_a_batch_is_applied_as_a_whole() -> None:
    with graph() as ours, graph() as theirs:
        one, other = Machine(ours, "one", 0), Machine(theirs, "other", 0)
        with changing(ours, "add", WHO) as change:
            change.add_node("fact", "Here.")
        one.sync()

        def fail(*_: object) -> None:
            assert [*theirs.of_type("fact")] == []

        with pytest.raises(AssertionError):
            Replication(other.connection, "shared", one.folder, KEYS, other.replica, fail).run()
        assert [*theirs.of_type("fact")] == []
