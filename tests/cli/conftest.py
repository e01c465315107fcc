"""Fixtures of the tests of commands about nodes."""

import re
from collections.abc import Callable

import pytest

from tests.conftest import Ctx

Add = Callable[..., str]


def ageless(text: str) -> str:
    """Ages grow while a test runs."""
    return re.sub(r" \d+ s(?=  )", " 0 s", text)


@pytest.fixture
def add(ctx: Ctx) -> Add:
    """Adds a node and gives the id that was shown."""

    def add_node(*words: str) -> str:
        ran = ctx("add", *words)
        assert ran.code == 0, ran.err
        return ran.out.split()[1]

    return add_node
