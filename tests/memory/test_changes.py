"""A change is atomic, records nothing twice, and redacts secrets."""

import sqlite3
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from ctx import clock
from ctx.errors import ContentRefused, NodeNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory.changes import Change, changing
from ctx.memory.graph import Graph
from ctx.memory.model import Evidence
from tests import effort, engines
from tests.memory.graphs import (
    STEPS,
    WHO,
    Step,
    all_records,
    assert_sound,
    graph,
    run_steps,
    tables,
)

pytestmark = pytest.mark.usefixtures("engine")

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def a_node(store: Graph) -> NodeId:
    with changing(store, "add", WHO) as change:
        return change.add_node("fact", "One.", summary="1", metadata={"a": 1, "b": "x"})


def test_a_change_without_effect_is_not_recorded() -> None:
    with graph() as store:
        one, two = a_node(store), a_node(store)
        with changing(store, "tag", WHO) as change:
            assert change.tag(one, "a:b")
            assert change.link(one, two, "DEPENDS_ON", Evidence("cli"))
        before = all_records(store.connection)
        with changing(store, "again", WHO) as change:
            assert not change.tag(one, "a:b")
            assert not change.untag(two, "a:b")
            assert not change.link(one, two, "depends-on", Evidence("cli"))
            assert not change.unlink(two, one, "DEPENDS_ON")
            assert change.update_node(one, content="One.", summary="1", metadata={"a": 1}) == ()
        assert all_records(store.connection) == before
        with changing(store, "both", WHO) as change:
            assert change.tag(two, "c")
            assert not change.tag(two, "c")
            assert change.untag(two, "c")
            assert not change.untag(two, "c")
            assert change.tag(two, "c")
        assert store.tags_of(two) == ("c",)
        assert_sound(store.connection)


def test_an_update_records_only_changed_fields() -> None:
    with graph() as store:
        node_id = a_node(store)
        with changing(store, "update", WHO) as change:
            changed = change.update_node(
                node_id, node_type="task", content="One.", summary="", metadata={"a": None, "c": []}
            )
            (said,) = change.records
        assert changed == ("type", "summary", "metadata")
        node = store.node(node_id)
        assert (node.type, node.summary, node.metadata) == ("task", None, {"b": "x", "c": []})
        assert said.body == {
            "type": "task",
            "summary": None,
            "metadata": {"a": None, "c": []},
        }


def test_new_evidence_keeps_the_edge() -> None:
    with graph() as store:
        one, two = a_node(store), a_node(store)
        with changing(store, "link", WHO) as change:
            change.link(one, two, "CALLS", Evidence("parser", 500))
        first = store.edge(one, two, "CALLS")
        with changing(store, "link", WHO) as change:
            assert change.link(one, two, "CALLS", Evidence("cli", reason="seen"))
        second = store.edge(one, two, "CALLS")
        assert first is not None
        assert second is not None
        assert second.metadata == {"tool": "cli", "confidence": 1000, "reason": "seen"}
        assert (second.id, second.created_at) == (first.id, first.created_at)


def change_and_raise(change: Change, node_id: NodeId, reason: type[BaseException]) -> None:
    change.add_node("fact", "Two.")
    change.delete_node(node_id)
    raise reason("now")


@pytest.mark.parametrize("reason", [KeyboardInterrupt, ContentRefused, sqlite3.OperationalError])
def test_an_interrupted_change_leaves_nothing(reason: type[BaseException]) -> None:
    with graph() as store:
        node_id = a_node(store)
        before = tables(store.connection), all_records(store.connection)
        with pytest.raises(reason), changing(store, "add", WHO) as change:
            change_and_raise(change, node_id, reason)
        assert (tables(store.connection), all_records(store.connection)) == before
        assert not store.connection.in_transaction


def test_stamps_increase_although_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    later = clock.EARLIEST_MS
    with graph() as store:
        for now in (later + 2_000, later + 1_000, later + 3_000):
            monkeypatch.setattr(time, "time_ns", lambda now=now: now * 1_000_000)
            node_id = a_node(store)
            with changing(store, "tag", WHO) as change:
                change.tag(node_id, "a")
                change.tag(node_id, "b")
        stamps = [record.stamp for record in all_records(store.connection)]
        assert stamps == sorted(set(stamps))
        assert [clock.stamp_ms(stamp) for stamp in stamps[::3]] == [
            later + 2_000,
            later + 2_000,
            later + 3_000,
        ]


WAYS_IN: list[Callable[[Change, NodeId], object]] = [
    lambda change, _: change.add_node("fact", f"The token is {SECRET}"),
    lambda change, _: change.add_node("fact", "x", summary=SECRET),
    lambda change, _: change.add_node("fact", "x", metadata={"seen": SECRET}),
    lambda change, _: change.add_node("fact", "x", metadata={"deep": [{"in": [SECRET]}]}),
    lambda change, _: change.add_node("fact", "x", metadata={SECRET: 1}),
    lambda change, node: change.update_node(node, content=f"Now {SECRET}"),
    lambda change, node: change.update_node(node, summary=SECRET),
    lambda change, node: change.update_node(node, metadata={"a": SECRET}),
    lambda change, node: change.link(
        node, change.add_node("fact", "y"), "CALLS", Evidence("cli", reason=SECRET)
    ),
    lambda change, _: change.put_view("mine", f"type:fact {SECRET}", None),
]


@pytest.mark.parametrize("way", WAYS_IN)
def test_secrets_are_redacted_in_every_field(way: Callable[[Change, NodeId], object]) -> None:
    with graph() as store:
        node_id = a_node(store)
        with changing(store, "add", WHO) as change:
            way(change, node_id)
        assert len(change.redacted) == 1
        said = all_records(store.connection)
        assert SECRET not in repr((tables(store.connection), said, change.written))
        if engines.server is None:
            assert SECRET.encode() not in store.connection.serialize()


def test_a_tag_with_a_secret_is_refused() -> None:
    with graph() as store:
        node_id = a_node(store)
        with pytest.raises(ContentRefused), changing(store, "tag", WHO) as change:
            change.tag(node_id, f"token:{SECRET}")


def test_invalid_changes_are_refused() -> None:
    with graph() as store:
        one, gone = a_node(store), a_node(store)
        with changing(store, "delete", WHO) as change:
            change.delete_node(gone)
        before = all_records(store.connection)
        attempts: list[tuple[type[Exception], Callable[[Change], object]]] = [
            (UsageError, lambda change: change.link(one, one, "CALLS", {})),
            (UsageError, lambda change: change.link(one, gone, "SINGS", {})),
            (NodeNotFound, lambda change: change.link(one, gone, "CALLS", {})),
            (NodeNotFound, lambda change: change.tag(gone, "a")),
            (NodeNotFound, lambda change: change.update_node(gone, content="x")),
            (UsageError, lambda change: change.add_node("song", "x")),
            (ContentRefused, lambda change: change.add_node("fact", " \n")),
            (ContentRefused, lambda change: change.add_node("fact", "a\0b")),
            (UnicodeEncodeError, lambda change: change.add_node("fact", "\udcff")),
            (UnicodeEncodeError, lambda change: change.update_node(one, metadata={"a": "\udc00"})),
            (UsageError, lambda change: change.tag(one, "with space")),
            (UsageError, lambda change: change.tag(one, "tier:great")),
        ]  # fmt: skip
        for expected, attempt in attempts:
            with pytest.raises(expected), changing(store, "try", WHO) as change:
                attempt(change)
        assert all_records(store.connection) == before


@settings(max_examples=effort.times(4), deadline=None, derandomize=True, database=None)
@given(STEPS)
def test_random_changes_leave_a_sound_graph(steps: list[Step]) -> None:
    with graph() as store:
        run_steps(store, steps)
        assert_sound(store.connection)
