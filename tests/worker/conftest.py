from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.worker_processes import Workers


@pytest.fixture
def workers(surroundings: Path) -> Iterator[Workers]:
    found = Workers(surroundings / ".ctx")
    yield found
    found.close()
