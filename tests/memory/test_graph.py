"""The queries of a graph that commands use."""

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

pytestmark = pytest.mark.usefixtures("engine")


def add(
    store: Graph, *contents: str, node_type: str = "fact", tags: Sequence[str] = ()
) -> list[NodeId]:
    with changing(store, "add", WHO) as change:
        made = [change.add_node(node_type, content) for content in contents]
        for node_id in made:
            for tag in tags:
                change.tag(node_id, tag)
    return made


def add_with_id_prefixes(store: Graph, *names: str) -> list[NodeId]:
    """Add nodes whose ids begin with these characters."""
    found = [NodeId(Ulid(f"{name:0<26}")) for name in names]
    with changing(store, "add", WHO) as change:
        for node_id in found:
            change.add_node("fact", f"I am {node_id}.", node_id=node_id)
    return found


def test_a_node_is_found_by_a_prefix_of_its_id() -> None:
    with graph() as store:
        first, second, third = add_with_id_prefixes(store, "01ABCDEFGH1", "01ABCDEFGH2", "01XYZ")
        assert (
            store.find(third[:4]) == store.find(third.lower()) == store.find(f" {third} ") == third
        )
        assert store.find("01abcdefgh2") == second
        with pytest.raises(AmbiguousId) as several:
            store.find("01ABCD")
        assert several.value.detail.split() == [
            *f"{first} fact I am {first}.".split(),
            *f"{second} fact I am {second}.".split(),
        ]
        for text in ("01Q", "", "01X!", "01XY_", "01АБ", "%%%%", "' OR 1"):
            with pytest.raises(NodeNotFound):
                store.find(text)


def test_the_error_about_a_deleted_node_names_the_way_to_restore_it() -> None:
    with graph() as store:
        (one,) = add(store, "A long time ago.")
        with pytest.raises(UsageError, match="not deleted"):
            store.find_deleted(one)
        with changing(store, "delete", WHO) as change:
            change.delete_node(one)
        with pytest.raises(NodeNotFound, match="was deleted") as gone:
            store.find(one)
        assert gone.value.hint == f"`ctx restore {one[:12]}` restores it."
        assert store.find_deleted(one) == one
        with pytest.raises(NodeNotFound, match="No deleted node"):
            store.find_deleted("7ZZZZZ")


@pytest.mark.sqlite
@settings(max_examples=effort.times(40), deadline=None)
@given(st.lists(st.text("01AB", min_size=1, max_size=14), min_size=1, max_size=12, unique=True))
def test_a_shown_id_is_unique_and_as_short_as_possible(names: list[str]) -> None:
    with graph() as store:
        made = add_with_id_prefixes(store, *{f"{name:0<26}": None for name in names})
        shown = store.shown(made)
        for node_id in made:
            assert store.find(shown[node_id]) == node_id
            shorter = shown[node_id][:-1]
            assert len(shown[node_id]) == ids.SHOWN_LENGTH or sum(
                other.startswith(shorter) for other in made
            ) > 1  # fmt: skip


def test_the_newest_nodes_of_a_type_are_listed() -> None:
    with graph() as store:
        facts = add(store, "1", "2", "3", tags=["a", "b"])
        tasks = add(store, "4", "5", node_type="task", tags=["a"])
        with changing(store, "link", WHO) as change:
            change.link(tasks[1], facts[0], "SUPERSEDES", {})
        newest_first = [*reversed(tasks), *reversed(facts)]
        assert store.newest((), [], None, None) == (newest_first[:-1], 4)
        assert store.newest((), [], None, None, include_superseded=True) == (newest_first, 5)
        assert store.newest((), ["a"], None, 2) == ([tasks[1], tasks[0]], 4)
        assert store.newest(["fact"], ["a", "b"], None, 1) == ([facts[2]], 2)
        assert store.newest(["fact"], ["c"], None, 9) == ([], 0)
        assert store.newest((), [], "2999-01-01T00:00:00Z", None) == ([], 0)
        assert store.newest((), [], "1999-01-01T00:00:00Z", 1) == ([tasks[1]], 4)


def test_nodes_are_returned_in_the_requested_order() -> None:
    with graph() as store:
        made = add(store, *(f"Node {number}." for number in range(600)))
        asked = [*made[::-2], NodeId(Ulid("7" * 26)), made[0]]
        found = [node.id for node in store.nodes(asked)]
        assert found == [*made[::-2], made[0]]


def test_edges_are_selected_by_direction_and_type() -> None:
    with graph() as store:
        one, two, three = add(store, "1", "2", "3")
        with changing(store, "link", WHO) as change:
            change.link(one, two, "CALLS", {})
            change.link(one, three, "DEPENDS_ON", {"tool": "cli"})
            change.link(three, one, "CALLS", {})

        def edges_of(*arguments: str) -> list[tuple[str, str, str]]:
            found = store.edges(one, *arguments)  # type: ignore[arg-type]
            return [(edge.from_id, edge.type, edge.to_id) for edge in found]

        out = [(one, "CALLS", two), (one, "DEPENDS_ON", three)]
        assert edges_of() == [*out, (three, "CALLS", one)]
        assert edges_of("out") == out
        assert edges_of("in") == [(three, "CALLS", one)]
        assert edges_of("both", "CALLS") == [(one, "CALLS", two), (three, "CALLS", one)]
        edge = store.edge(one, three, "DEPENDS_ON")
        assert edge is not None
        assert edge.metadata == {"tool": "cli"}
        assert store.edge(three, one, "DEPENDS_ON") is None


def test_tags_are_listed_with_their_counts() -> None:
    with graph() as store:
        one, two = add(store, "1", "2", tags=["b:1", "a", "b:2"])
        with changing(store, "untag", WHO) as change:
            change.untag(two, "b:2")
        assert store.tags_of(one) == ("a", "b:1", "b:2")
        assert store.tag_counts() == [TagCount("a", 2), TagCount("b:1", 2), TagCount("b:2", 1)]
        assert store.tag_counts("b:") == [TagCount("b:1", 2), TagCount("b:2", 1)]
        assert store.node(two).tags == ("a", "b:1")


def test_views_are_listed_by_name() -> None:
    with graph() as store:
        with changing(store, "view", WHO) as change:
            change.put_view("mine", "type:fact", 500)
        assert [view.name for view in store.views()] == ["default", "mine"]
        assert (store.view("mine").query, store.view("mine").budget) == ("type:fact", 500)
        with pytest.raises(ViewNotFound):
            store.view("other")


def test_the_history_of_a_node_contains_its_incoming_edges() -> None:
    with graph() as store:
        one, two = add(store, "1", "2", tags=["a"])
        with changing(store, "link", WHO) as change:
            change.link(one, two, "CALLS", {})
        with changing(store, "delete", WHO) as change:
            change.delete_node(two)
        told = [(record.kind, record.subject) for record in store.history(two)]
        assert told == [
            ("node.put", two),
            ("tag.add", two),
            ("edge.put", one),
            ("node.delete", two),
        ]


@pytest.mark.sqlite
def test_nodes_with_proposals_are_read_from_an_index() -> None:
    with graph() as store:
        with changing(store, "add", WHO) as change:
            change.add_node("fact", "Nobody proposes anything.", metadata={"a": 1})
            proposed = change.add_node(
                "fact", "Forget it.", metadata={"proposed": {"forget": True}}
            )
        statements: list[str] = []
        store.connection.set_trace_callback(statements.append)
        assert store.with_proposals() == [proposed]
        store.connection.set_trace_callback(None)
        (statement,) = statements
        (plan,) = store.connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        assert plan[3].startswith("SCAN nodes USING")
        assert plan[3].endswith(" INDEX idx_nodes_proposed")
