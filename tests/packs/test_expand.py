"""Expansion over edges, and how scores decrease on the way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.code.lookup import Code
from ctx.config.schema import EXPAND_LABELS as LABELS
from ctx.ids import NodeId
from ctx.memory.changes import changing
from ctx.memory.graphs import Graphs
from ctx.memory.model import Evidence
from ctx.packs import expand
from ctx.packs.expand import ExpansionLimits
from tests.memory.graphs import WHO, graph
from tests.packs.packs import packing

FILES = {
    "app/__init__.py": "",
    "app/walk.py": (
        "from app.parse import ping\nfrom app.parse import Tree\n\n\n"
        "def begin(tree: Tree):\n    ping(tree)\n    common()\n\n\n"
        "def common():\n    return last()\n\n\ndef last():\n    return end()\n\n\n"
        "def end():\n    return 1\n\n\ndef lonely():\n    return 2\n"
    ),
    "app/parse.py": (
        "class Tree:\n    pass\n\n\n"
        "def ping(tree):\n    return pong(tree)\n\n\n"
        "def pong(tree):\n    return pang(tree)\n\n\n"
        "def pang(tree):\n    return ping(tree)\n"
    ),
    "app/many.py": "from app.walk import common\n\n\n"
    + "".join(f"def user_{n}():\n    return common()\n\n\n" for n in range(30)),
    "tests/test_walk.py": "from app.walk import begin\n\n\ndef test_begin():\n    begin(None)\n",
}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Code]:
    with packing(tmp_path_factory.mktemp("expand") / "app", FILES) as made:
        assert made.sources.code is not None
        yield made.sources.code


def reached(code: Code, name: str, depth: int = 1, most: int = 50) -> dict[str, tuple[int, str]]:
    """The names of the reached items, best first, with depth and label of the last edge."""
    [start] = code.named(name)
    found = expand.in_code(code, {start.id: 1.0}, ExpansionLimits(depth, LABELS, most, "medium"))
    names = {each.id: each.name for each in code.located(each.id for each in found.items)}
    assert found.condensed is bool(found.items)
    return {names[each.id]: (each.depth, each.label) for each in found.items}


def test_a_cycle_is_one_step(code: Code) -> None:
    found = reached(code, "app.walk.begin")
    assert {name: found[name] for name in found if name.startswith("app.parse.p")} == {
        "app.parse.ping": (1, "CALLS"),
        "app.parse.pong": (1, "CALLS"),
        "app.parse.pang": (1, "CALLS"),
    }
    assert found["app.parse.Tree"] == (1, "USES_TYPE")
    assert found["test_walk.test_begin"] == (1, "<CALLS")
    assert "app.walk.last" not in found
    assert reached(code, "app.walk.begin", depth=2)["app.walk.last"] == (2, "CALLS")
    assert reached(code, "lonely") == {}


def test_widely_used_items_score_low(code: Code) -> None:
    names = list(reached(code, "app.walk.begin"))
    assert names.index("app.parse.ping") < names.index("app.walk.common")
    # Of thirty callers two are enough.
    callers = [name for name in reached(code, "app.walk.common") if "user_" in name]
    assert len(callers) == 2


def test_the_limits_hold(code: Code) -> None:
    assert reached(code, "app.walk.begin", depth=0) == {}
    assert len(reached(code, "app.walk.begin", depth=2, most=2)) == 2
    [start] = code.named("app.walk.begin")
    only = expand.in_code(code, {start.id: 1.0}, ExpansionLimits(1, ("USES_TYPE",), 50, "low"))
    assert [each.label for each in only.items] == ["USES_TYPE"]
    assert expand.in_code(code, {start.id: 1.0}, ExpansionLimits(2, (), 50, "low")).items == ()


def test_memory_is_expanded_in_both_directions_by_the_best_path(tmp_path: Path) -> None:
    with graph() as memory:
        with changing(memory, "add", WHO) as change:
            nodes = [change.add_node("fact", f"fact {number}") for number in range(5)]
            one, two, three, four, alone = nodes
            change.link(one, three, "MENTIONS", Evidence("cli"))
            change.link(two, three, "MENTIONS", Evidence("cli"))
            change.link(four, three, "RELATES_TO", Evidence("cli"))
        limits = ExpansionLimits(2, LABELS, 50, "medium")
        starts: dict[NodeId, float] = {one: 0.5, two: 1.0}
        found = expand.in_memory(Graphs([memory]), starts, limits)
        assert [(each.id, each.depth, each.label, each.previous) for each in found] == [
            (three, 1, "MENTIONS", two),
            (four, 2, "<RELATES_TO", three),
        ]
        assert found[0].score > found[1].score
        assert alone not in {each.id for each in found}
        assert expand.in_memory(Graphs([memory]), starts, limits._replace(depth=0)) == []
        assert len(expand.in_memory(Graphs([memory]), starts, limits._replace(most=1))) == 1
