"""Fixtures of the tests of commands about nodes."""

from collections.abc import Callable

import pytest

from tests.conftest import Ctx

Add = Callable[..., str]


@pytest.fixture
def add(ctx: Ctx) -> Add:
    """Adds a node and gives the id that was shown."""

    def add_node(*words: str) -> str:
        ran = ctx("add", *words)
        assert ran.code == 0, ran.err
        return ran.out.split()[1]

    return add_node
