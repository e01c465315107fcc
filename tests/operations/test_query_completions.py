"""What can follow in a query."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.memory.model import NODE_TYPES
from ctx.page.search_api import completions
from ctx.workspace import Memory
from tests.cli.conftest import Add, add
from tests.conftest import Ctx
from tests.operations.test_recall import open_memory_in

__all__ = ["add"]


@pytest.fixture
def memory(surroundings: Path, tmp_path: Path, add: Add, ctx: Ctx) -> Iterator[Memory]:
    add("--type=fact", "One.", "--tag=area:net", "--tag=project:shop")
    add("--type=fact", "Two.", "--tag=area:net", "--tag=area:disk")
    assert ctx("view", "create", "network", "tag:area:net AND type:fact").code == 0
    with open_memory_in(surroundings, tmp_path) as opened:
        yield opened


def offered(memory: Memory, text: str) -> tuple[str, list[str]]:
    """The query with `|` for the position; what is replaced, and by what."""
    at = text.index("|")
    plain = text.replace("|", "")
    found = completions(memory, plain, at)
    return plain[found.start : found.end], [each.value for each in found.candidates]


def test_completions(memory: Memory) -> None:
    assert offered(memory, "t|") == ("t", ["type:", "tag:", "tokens:", "to:"])
    assert offered(memory, "type:|") == ("", list(NODE_TYPES))
    assert offered(memory, "type:f|") == ("f", ["fact", "file"])
    assert offered(memory, "type:f|act AND x") == ("fact", ["fact", "file"])
    assert offered(memory, "NOT (tag:ar|)") == ("ar", ["area:net", "area:disk"])
    assert offered(memory, "project:|") == ("", ["shop"])
    assert offered(memory, "has:s|") == ("s", ["summary", "superseded"])
    assert offered(memory, "created:>|") == (">", [">24h", ">7d", ">30d"])
    assert offered(memory, "net|") == ("net", ["tag:area:net AND type:fact"])
    assert offered(memory, "a question net|") == ("net", [])
    assert offered(memory, "path:s|") == ("s", [])
    assert offered(memory, "nothing:s|") == ("s", [])
    assert offered(memory, 'tag:"area|')[1] == ["area:net", "area:disk"]
    replaced, ids = offered(memory, "from:0|")
    assert replaced == "0"
    assert len(ids) == 2
    network = "tag:area:net AND type:fact"
    for text, has_views in (("|", True), ("type:fact |", False)):
        _, every = offered(memory, text)
        assert (every[:2], network in every) == (["type:", "tag:"], has_views)


def test_any_position_of_any_text_is_answered(memory: Memory) -> None:
    for text in ("", '"', "((", "tag:", 'tag:"x', "a:b:c", "\x00", "𝒳 tag:𝒳", "x" * 20_000):
        for at in (-5, 0, 1, len(text), len(text) + 9):
            found = completions(memory, text, at)
            assert 0 <= found.start <= found.end <= max(len(text), 0)
