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


@settings(max_examples=effort.times(40), deadline=None, derandomize=True)
@given(STEPS, st.randoms(use_true_random=False))
def test_a_history_can_be_replayed_in_any_order(steps: list[Step], chance: random.Random) -> None:
    with graph() as store:
        run_steps(store, steps)
        assert_sound(store.connection)
        said = all_records(store.connection)
        there = tables(store.connection)
    assert applied(said, chance) == there


NODES = [Ulid(f"{'0' * 25}{number}") for number in range(1, 5)]
STAMP = st.integers(1, 4).map(lambda ms: ms << clock.COUNTER_BITS)


def generated_record(
    number: int, stamp: int, kind: str, subject: str, key: str, target: str | None, body: Any
) -> Record:
    key = edge_key(key, target) if target else key
    id, change = Ulid(f"7{'0' * 22}{number:03}"), Ulid("7" * 26)
    return Record(id, stamp, change, "put", kind, subject, key, target, body, "cli", "cli")


NOTHING: st.SearchStrategy[dict[str, object]] = st.just({})


def fields(
    kinds: str,
    subjects: list[Any],
    body: st.SearchStrategy[Any] = NOTHING,
    keys: tuple[str, ...] = ("",),
    targets: tuple[Ulid | None, ...] = (None,),
) -> st.SearchStrategy[Any]:
    """The kind, subject, key, target and body of a record."""
    choices = (kinds.split(), subjects, keys, targets)
    return st.tuples(*map(st.sampled_from, choices), body)


def some(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=values)


RECORD_FIELDS: st.SearchStrategy[Any] = st.one_of(
    fields(
        "node.put",
        NODES,
        some(
            type=st.sampled_from(["fact", "task"]),
            content=st.sampled_from(["One.", "Two."]),
            summary=st.sampled_from([None, "Short."]),
            metadata=st.dictionaries(st.sampled_from("ab"), st.sampled_from([None, 1, "x"])),
        ),
    ),
    fields("node.delete node.restore node.unheard_of", NODES),
    fields("tag.add tag.remove", NODES, keys=("a", "b")),
    fields(
        "edge.put edge.delete",
        NODES,
        some(metadata=st.just({"tool": "cli"})),
        ("SUPERSEDES", "CHILD_OF"),
        tuple(NODES),
    ),
    fields(
        "view.put view.delete",
        ["default", "mine"],
        st.fixed_dictionaries({"query": st.sampled_from(["a", "b"])}),
    ),
    fields(
        "task.set",
        ["current_task", "current_task:shop:main"],
        some(task=st.sampled_from(["a", "b"])),
    ),
)


@pytest.mark.slow
@settings(max_examples=effort.times(50), deadline=None, derandomize=True)
@given(st.lists(st.tuples(STAMP, RECORD_FIELDS), max_size=25), st.randoms(use_true_random=False))
def test_concurrent_records_of_several_machines_give_one_graph(
    drawn: list[tuple[int, tuple[str, str, str, str | None, dict[str, object]]]],
    chance: random.Random,
) -> None:
    """Stamps collide, and records refer to nodes that do not exist yet or were deleted."""
    said = [generated_record(number, stamp, *each) for number, (stamp, each) in enumerate(drawn)]
    with graph() as whole:
        with transaction(whole.connection):
            records.insert(whole.connection, said)
            whole.connection.execute("DELETE FROM views")
            materialise_all(whole.connection)
        assert_sound(whole.connection)
        there = tables(whole.connection)
    assert applied(said, chance) == there
