"""What the user decides about nodes: to accept, hide and show them again."""

import os
from pathlib import Path

import pytest

from ctx.ids import NodeId
from ctx.operations import undo, visibility
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import Ctx
from tests.packs.session_store import learning, node
from tests.page.filled_project import environment_of


@pytest.fixture
def environment(repo: Path, ctx: Ctx) -> Environment:
    ctx("list")
    return environment_of(Path(os.environ["HOME"], ".ctx"), repo)


def imported(memory: Memory, *tags: str) -> NodeId:
    return node(memory.user, "fact", "Use tabs", tags, source="repository")


def test_an_accepted_node_is_the_users_and_is_given(environment: Environment) -> None:
    with open_memory(environment, writing=True, author="page") as memory:
        plain, observed = imported(memory), imported(memory, "kind:rule")
        visibility.accept(memory, [plain, observed])
        nodes = {each.id: each for each in memory.graph.nodes([plain, observed])}
        assert {each.source for each in nodes.values()} == {"user"}
        # An observation has a layer of its own, and needs no tier.
        assert nodes[plain].tags == ("tier:reference",)
        assert nodes[observed].tags == ("kind:rule",)
        undo.undo_change(memory, None, dry_run=False)
        assert {each.source for each in memory.graph.nodes([plain, observed])} == {"repository"}


def test_an_agent_cannot_vouch_as_the_user(environment: Environment) -> None:
    inside = environment._replace(in_agents_shell=True)
    with open_memory(inside, writing=True, author="page") as memory:
        plain = imported(memory)
        visibility.accept(memory, [plain])
        assert memory.graph.node(plain).source == "agent"


def test_a_hidden_node_is_listed_until_it_is_shown_again(environment: Environment) -> None:
    with open_memory(environment, writing=True, author="page") as memory:
        pinned = imported(memory, "tier:pinned")
        elsewhere = imported(memory, "tier:off-context", "project:other")
        learned = learning(memory.user, "gotcha", "Redis must run")
        visibility.hide(memory, [pinned, learned])
        hidden = visibility.hidden(memory, 1)
        assert hidden.more
        every = {each.id: each for each in visibility.hidden(memory, 10).nodes}
        assert set(every) == {pinned, learned}
        assert elsewhere not in every
        assert every[pinned].tags == ("tier:off-context",)
        assert every[learned].metadata["rejected"] is True
        visibility.reveal(memory, pinned)
        visibility.reveal(memory, learned)
        assert visibility.hidden(memory, 10).nodes == ()
        assert memory.graph.node(pinned).tags == ("tier:reference",)
