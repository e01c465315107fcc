"""Fixtures of the tests of commands about nodes."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ctx

Add = Callable[..., str]
Piped = Callable[[bytes], None]

_WITHOUT_CHOICE = ("task", "file", "command")


def ageless(text: str) -> str:
    """Ages grow while a test runs."""
    return re.sub(r" \d+ s(?=  )", " 0 s", text)


@pytest.fixture
def add(ctx: Ctx) -> Add:
    """Adds a node and gives the id that was shown. It has a tier only if the words name one."""

    def add_node(*words: str) -> str:
        has_choice = any("tier" in word for word in words) or words[0] in _WITHOUT_CHOICE
        ran = ctx("add", *words, *([] if has_choice else ["--no-tier"]))
        assert ran.code == 0, ran.err
        return ran.out.split()[1]

    return add_node


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    """A git repository with a project store."""
    assert ctx("init").code == 0
    return repo


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Piped:
    """Puts bytes on stdin."""

    def put(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put
