"""A change is all or nothing, says nothing twice, and lets no secret in."""

import sqlite3
import time
from collections.abc import Callable

import pytest

from ctx import clock
from ctx.errors import ContentRefused, NodeNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory.changes import Change, changing
from ctx.memory.graph import Graph
from ctx.memory.model import Evidence
from tests.memory.graphs import WHO, all_records, assert_sound, graph, tables

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def a_node(lived: Graph) -> NodeId:
    with changing(lived, "add", WHO) as change:
        return change.add_node("fact", "One.", summary="1", metadata={"a": 1, "b": "x"})


def test_what_is_so_already_is_not_recorded() -> None:
    with graph() as lived:
        one, two = a_node(lived), a_node(lived)
        with changing(lived, "tag", WHO) as change:
            assert change.tag(one, "a:b")
            assert change.link(one, two, "DEPENDS_ON", Evidence("cli"))
        before = all_records(lived.connection)
        with changing(lived, "again", WHO) as change:
            assert not change.tag(one, "a:b")
            assert not change.untag(two, "a:b")
            assert not change.link(one, two, "depends-on", Evidence("cli"))
            assert not change.unlink(two, one, "DEPENDS_ON")
            assert change.update_node(one, content="One.", summary="1", metadata={"a": 1}) == ()
        assert all_records(lived.connection) == before
        with changing(lived, "both", WHO) as change:
            assert change.tag(two, "c")
            assert not change.tag(two, "c")
            assert change.untag(two, "c")
            assert not change.untag(two, "c")
            assert change.tag(two, "c")
        assert lived.tags_of(two) == ("c",)
        assert_sound(lived.connection)


def test_an_update_says_what_it_changed() -> None:
    with graph() as lived:
        node_id = a_node(lived)
        with changing(lived, "update", WHO) as change:
            changed = change.update_node(
                node_id, node_type="task", content="One.", summary="", metadata={"a": None, "c": []}
            )
            (said,) = change.records
        assert changed == ("type", "summary", "metadata")
        node = lived.node(node_id)
        assert (node.type, node.summary, node.metadata) == ("task", None, {"b": "x", "c": []})
        assert said.body == {
            "type": "task",
            "summary": None,
            "metadata": {"a": None, "c": []},
        }


def test_new_evidence_keeps_the_edge() -> None:
    with graph() as lived:
        one, two = a_node(lived), a_node(lived)
        with changing(lived, "link", WHO) as change:
            change.link(one, two, "CALLS", Evidence("parser", 500))
        first = lived.edge(one, two, "CALLS")
        with changing(lived, "link", WHO) as change:
            assert change.link(one, two, "CALLS", Evidence("cli", reason="seen"))
        second = lived.edge(one, two, "CALLS")
        assert first is not None
        assert second is not None
        assert second.metadata == {"tool": "cli", "confidence": 1000, "reason": "seen"}
        assert (second.id, second.created_at) == (first.id, first.created_at)


def break_off(change: Change, node_id: NodeId, reason: type[BaseException]) -> None:
    change.add_node("fact", "Two.")
    change.delete_node(node_id)
    raise reason("now")


@pytest.mark.parametrize("reason", [KeyboardInterrupt, ContentRefused, sqlite3.OperationalError])
def test_a_change_that_is_broken_off_leaves_nothing(reason: type[BaseException]) -> None:
    with graph() as lived:
        node_id = a_node(lived)
        before = tables(lived.connection), all_records(lived.connection)
        with pytest.raises(reason), changing(lived, "add", WHO) as change:
            break_off(change, node_id, reason)
        assert (tables(lived.connection), all_records(lived.connection)) == before
        assert not lived.connection.in_transaction


def test_stamps_grow_also_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    later = clock.EARLIEST_MS
    with graph() as lived:
        for now in (later + 2_000, later + 1_000, later + 3_000):
            monkeypatch.setattr(time, "time_ns", lambda now=now: now * 1_000_000)
            node_id = a_node(lived)
            with changing(lived, "tag", WHO) as change:
                change.tag(node_id, "a")
                change.tag(node_id, "b")
        stamps = [record.stamp for record in all_records(lived.connection)]
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
def test_no_secret_comes_in(way: Callable[[Change, NodeId], object]) -> None:
    with graph() as lived:
        node_id = a_node(lived)
        with changing(lived, "add", WHO) as change:
            way(change, node_id)
        assert len(change.redacted) == 1
        assert SECRET.encode() not in lived.connection.serialize()


def test_a_tag_with_a_secret_is_refused() -> None:
    with graph() as lived:
        node_id = a_node(lived)
        with pytest.raises(ContentRefused), changing(lived, "tag", WHO) as change:
            change.tag(node_id, f"token:{SECRET}")


def test_what_cannot_be_is_refused() -> None:
    with graph() as lived:
        one, gone = a_node(lived), a_node(lived)
        with changing(lived, "delete", WHO) as change:
            change.delete_node(gone)
        before = all_records(lived.connection)
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
            with pytest.raises(expected), changing(lived, "try", WHO) as change:
                attempt(change)
        assert all_records(lived.connection) == before
