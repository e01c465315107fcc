"""What a graph answers, asked as commands ask it."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import ids
from ctx.errors import AmbiguousId, NodeNotFound, UsageError, ViewNotFound
from ctx.ids import NodeId, Ulid
from ctx.memory.changes import changing
from ctx.memory.graph import Graph, TagCount
from tests import effort
from tests.memory.graphs import WHO, graph


def add(
    lived: Graph, *contents: str, node_type: str = "fact", tags: Sequence[str] = ()
) -> list[NodeId]:
    with changing(lived, "add", WHO) as change:
        made = [change.add_node(node_type, content) for content in contents]
        for node_id in made:
            for tag in tags:
                change.tag(node_id, tag)
    return made


def named(lived: Graph, *names: str) -> list[NodeId]:
    """Nodes whose ids begin with these characters."""
    found = [NodeId(Ulid(f"{name:0<26}")) for name in names]
    with changing(lived, "add", WHO) as change:
        for node_id in found:
            change.add_node("fact", f"I am {node_id}.", node_id=node_id)
    return found


def test_a_node_is_found_by_the_beginning_of_its_id() -> None:
    with graph() as lived:
        first, second, third = named(lived, "01ABCDEFGH1", "01ABCDEFGH2", "01XYZ")
        assert (
            lived.find(third[:4]) == lived.find(third.lower()) == lived.find(f" {third} ") == third
        )
        assert lived.find("01abcdefgh2") == second
        with pytest.raises(AmbiguousId) as several:
            lived.find("01ABCD")
        assert several.value.detail.split() == [
            *f"{first} fact I am {first}.".split(),
            *f"{second} fact I am {second}.".split(),
        ]
        for text in ("01Q", "", "01X!", "01XY_", "01АБ", "%%%%", "' OR 1"):
            with pytest.raises(NodeNotFound):
                lived.find(text)


def test_a_deleted_node_is_named_with_the_way_back() -> None:
    with graph() as lived:
        (one,) = add(lived, "A long time ago.")
        with pytest.raises(UsageError, match="not deleted"):
            lived.find_deleted(one)
        with changing(lived, "delete", WHO) as change:
            change.delete_node(one)
        with pytest.raises(NodeNotFound, match="was deleted") as gone:
            lived.find(one)
        assert gone.value.hint == f"`ctx restore {one[:12]}` restores it."
        assert lived.find_deleted(one) == one
        with pytest.raises(NodeNotFound, match="No deleted node"):
            lived.find_deleted("7ZZZZZ")


@settings(max_examples=effort.times(40), deadline=None)
@given(st.lists(st.text("01AB", min_size=1, max_size=14), min_size=1, max_size=12, unique=True))
def test_a_shown_id_names_one_node_and_no_more_is_shown_than_needed(names: list[str]) -> None:
    with graph() as lived:
        made = named(lived, *{f"{name:0<26}": None for name in names})
        shown = lived.shown(made)
        for node_id in made:
            assert lived.find(shown[node_id]) == node_id
            shorter = shown[node_id][:-1]
            assert len(shown[node_id]) == ids.SHOWN_LENGTH or sum(
                other.startswith(shorter) for other in made
            ) > 1  # fmt: skip


def test_the_newest_nodes_of_a_kind() -> None:
    with graph() as lived:
        facts = add(lived, "1", "2", "3", tags=["a", "b"])
        tasks = add(lived, "4", "5", node_type="task", tags=["a"])
        with changing(lived, "link", WHO) as change:
            change.link(tasks[1], facts[0], "SUPERSEDES", {})
        newest_first = [*reversed(tasks), *reversed(facts)]
        assert lived.newest((), [], None, None) == (newest_first[:-1], 4)
        assert lived.newest((), [], None, None, include_superseded=True) == (newest_first, 5)
        assert lived.newest((), ["a"], None, 2) == ([tasks[1], tasks[0]], 4)
        assert lived.newest(["fact"], ["a", "b"], None, 1) == ([facts[2]], 2)
        assert lived.newest(["fact"], ["c"], None, 9) == ([], 0)
        assert lived.newest((), [], "2999-01-01T00:00:00Z", None) == ([], 0)
        assert lived.newest((), [], "1999-01-01T00:00:00Z", 1) == ([tasks[1]], 4)


def test_nodes_come_in_the_order_that_was_asked_for_however_many() -> None:
    with graph() as lived:
        made = add(lived, *(f"Node {number}." for number in range(1200)))
        asked = [*made[::-2], NodeId(Ulid("7" * 26)), made[0]]
        found = [node.id for node in lived.nodes(asked)]
        assert found == [*made[::-2], made[0]]


def test_edges_by_side_and_type() -> None:
    with graph() as lived:
        one, two, three = add(lived, "1", "2", "3")
        with changing(lived, "link", WHO) as change:
            change.link(one, two, "CALLS", {})
            change.link(one, three, "DEPENDS_ON", {"tool": "cli"})
            change.link(three, one, "CALLS", {})

        def seen(*arguments: str) -> list[tuple[str, str, str]]:
            found = lived.edges(one, *arguments)  # type: ignore[arg-type]
            return [(edge.from_id, edge.type, edge.to_id) for edge in found]

        out = [(one, "CALLS", two), (one, "DEPENDS_ON", three)]
        assert seen() == [*out, (three, "CALLS", one)]
        assert seen("out") == out
        assert seen("in") == [(three, "CALLS", one)]
        assert seen("both", "CALLS") == [(one, "CALLS", two), (three, "CALLS", one)]
        edge = lived.edge(one, three, "DEPENDS_ON")
        assert edge is not None
        assert edge.metadata == {"tool": "cli"}
        assert lived.edge(three, one, "DEPENDS_ON") is None


def test_tags_and_how_often_they_are_given() -> None:
    with graph() as lived:
        one, two = add(lived, "1", "2", tags=["b:1", "a", "b:2"])
        with changing(lived, "untag", WHO) as change:
            change.untag(two, "b:2")
        assert lived.tags_of(one) == ("a", "b:1", "b:2")
        assert lived.tag_counts() == [TagCount("a", 2), TagCount("b:1", 2), TagCount("b:2", 1)]
        assert lived.tag_counts("b:") == [TagCount("b:1", 2), TagCount("b:2", 1)]
        assert lived.node(two).tags == ("a", "b:1")


def test_views_by_name() -> None:
    with graph() as lived:
        with changing(lived, "view", WHO) as change:
            change.put_view("mine", "type:fact", 500)
        assert [view.name for view in lived.views()] == ["default", "mine"]
        assert (lived.view("mine").query, lived.view("mine").budget) == ("type:fact", 500)
        with pytest.raises(ViewNotFound):
            lived.view("other")


def test_the_history_of_a_node_has_the_edges_that_end_there() -> None:
    with graph() as lived:
        one, two = add(lived, "1", "2", tags=["a"])
        with changing(lived, "link", WHO) as change:
            change.link(one, two, "CALLS", {})
        with changing(lived, "delete", WHO) as change:
            change.delete_node(two)
        told = [(record.kind, record.subject) for record in lived.history(two)]
        assert told == [
            ("node.put", two),
            ("tag.add", two),
            ("edge.put", one),
            ("node.delete", two),
        ]
