"""Every reported event has its effect once, whatever happens to the worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import effort
from tests.e2e.event_delivery import PROCESSES, expected_uses, remembered, stored_results, storm
from tests.worker.worker_processes import Workers

EVENTS = effort.times(400)
HOOKS = effort.times(40)
SEED = 8


@pytest.fixture
def workers(surroundings: Path) -> Iterator[Workers]:
    found = Workers(surroundings / ".ctx")
    yield found
    found.close()


def test_a_worker_that_is_killed_repeatedly_loses_nothing(workers: Workers, repo: Path) -> None:
    """Some of the workers run on a full disk."""
    done = storm(workers, repo, EVENTS, HOOKS, SEED)
    assert done.kills > done.full > 0
    found = stored_results(workers)
    each = EVENTS // PROCESSES
    assert found.written == set().union(
        *(expected_uses(number, each) for number in range(PROCESSES))
    )
    assert found.twice == []
    assert found.items == len(found.written)
    assert found.steps >= len(found.written)
    facts = set().union(*(remembered(number, each) for number in range(PROCESSES)))
    assert found.remembered == sorted(facts)
    assert (found.waiting, found.failed, found.left) == (0, 0, {})
