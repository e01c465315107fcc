"""Whatever happens to the worker, what was reported has its effect, and has it once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import effort
from tests.e2e.nothing_lost import PROCESSES, kept, remembered, storm, written
from tests.worker.running import Workers

EVENTS = effort.times(800)
HOOKS = effort.times(80)
SEED = 8


@pytest.fixture
def workers(surroundings: Path) -> Iterator[Workers]:
    found = Workers(surroundings / ".ctx")
    yield found
    found.close()


def test_a_worker_that_is_killed_again_and_again(workers: Workers, repo: Path) -> None:
    """Some of them on a disk that is full."""
    done = storm(workers, repo, EVENTS, HOOKS, SEED)
    assert done.kills > done.full > 0
    found = kept(workers)
    each = EVENTS // PROCESSES
    assert found.written == set().union(*(written(number, each) for number in range(PROCESSES)))
    assert found.twice == []
    assert found.items == len(found.written)
    assert found.steps >= len(found.written)
    facts = set().union(*(remembered(number, each) for number in range(PROCESSES)))
    assert found.remembered == sorted(facts)
    assert (found.waiting, found.failed, found.left) == (0, 0, {})
