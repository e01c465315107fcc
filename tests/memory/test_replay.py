"""The same records give the same tables, in any order and in any batches."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.ids import Ulid
from ctx.memory import records
from ctx.memory.materialise import materialise, materialise_all
from ctx.memory.records import Record, edge_key
from ctx.sqlite.connection import transaction
from tests import effort
from tests.memory.graphs import STEPS, Step, all_records, assert_sound, graph, run_steps, tables


def applied(said: list[Record], chance: random.Random) -> dict[str, list[tuple[object, ...]]]:
    """The tables after applying all records, shuffled and in batches of any size."""
    shuffled = chance.sample(said, len(said))
    with graph() as fresh:
        while shuffled:
            size = chance.randint(1, len(shuffled))
            part, shuffled = shuffled[:size], shuffled[size:]
            with transaction(fresh.connection):
                records.insert(fresh.connection, part)
                materialise(fresh.connection, part)
        return tables(fresh.connection)


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(STEPS, st.randoms(use_true_random=False))
def test_a_history_can_be_replayed_in_any_order(steps: list[Step], chance: random.Random) -> None:
    with graph() as store:
        run_steps(store, steps)
        assert_sound(store.connection)
        said = all_records(store.connection)
        there = tables(store.connection)
    for _ in range(2):
        assert applied(said, chance) == there


NODES = [Ulid(f"{'0' * 25}{number}") for number in range(1, 5)]
STAMP = st.integers(1, 4).map(lambda ms: ms << clock.COUNTER_BITS)
RECORD_FIELDS: st.SearchStrategy[Any] = st.one_of(
    st.tuples(
        st.just("node.put"),
        st.sampled_from(NODES),
        st.just(""),
        st.none(),
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["fact", "task"]),
                "content": st.sampled_from(["One.", "Two."]),
                "summary": st.sampled_from([None, "Short."]),
                "metadata": st.dictionaries(st.sampled_from("ab"), st.sampled_from([None, 1, "x"])),
            },
        ),
    ),
    st.tuples(
        st.sampled_from(["node.delete", "node.restore", "node.unheard_of"]),
        st.sampled_from(NODES),
        st.just(""),
        st.none(),
        st.just({}),
    ),
    st.tuples(
        st.sampled_from(["tag.add", "tag.remove"]),
        st.sampled_from(NODES),
        st.sampled_from(["a", "b"]),
        st.none(),
        st.just({}),
    ),
    st.tuples(
        st.sampled_from(["edge.put", "edge.delete"]),
        st.sampled_from(NODES),
        st.sampled_from(["SUPERSEDES", "CHILD_OF"]),
        st.sampled_from(NODES),
        st.fixed_dictionaries({}, optional={"metadata": st.just({"tool": "cli"})}),
    ),
    st.tuples(
        st.sampled_from(["view.put", "view.delete"]),
        st.sampled_from(["default", "mine"]),
        st.just(""),
        st.none(),
        st.fixed_dictionaries({"query": st.sampled_from(["a", "b"])}),
    ),
    st.tuples(
        st.just("task.set"),
        st.sampled_from(["current_task", "current_task:shop:main"]),
        st.just(""),
        st.none(),
        st.fixed_dictionaries({}, optional={"task": st.sampled_from(["a", "b"])}),
    ),
)


@pytest.mark.slow
@settings(max_examples=effort.times(80), deadline=None, derandomize=True)
@given(st.lists(st.tuples(STAMP, RECORD_FIELDS), max_size=25), st.randoms(use_true_random=False))
def test_concurrent_records_of_several_machines_give_one_graph(
    drawn: list[tuple[int, tuple[str, str, str, str | None, dict[str, object]]]],
    chance: random.Random,
) -> None:
    """Stamps collide, and records refer to nodes that do not exist yet or were deleted."""
    said = [
        Record(
            Ulid(f"7{'0' * 22}{number:03}"),
            stamp,
            Ulid("7" * 26),
            "put",
            kind,
            subject,
            edge_key(key, target) if target else key,
            target,
            body,
            "cli",
            "cli",
        )
        for number, (stamp, (kind, subject, key, target, body)) in enumerate(drawn)
    ]
    with graph() as whole:
        with transaction(whole.connection):
            records.insert(whole.connection, said)
            whole.connection.execute("DELETE FROM views")
            materialise_all(whole.connection)
        assert_sound(whole.connection)
        there = tables(whole.connection)
    for _ in range(2):
        assert applied(said, chance) == there
