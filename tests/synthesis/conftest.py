from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.workspace import Memory
from tests.synthesis.test_session_writer import open_writable


@pytest.fixture
def memory(surroundings: Path, repo: Path) -> Iterator[Memory]:
    with open_writable(surroundings, repo) as memory:
        yield memory
