"""Concurrent changes of the same field are found, and no others."""

import os
import tempfile
from contextlib import closing
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.ids import NodeId, ObjectId, Ulid
from ctx.memory.conflicts import find_conflicts
from ctx.memory.graph import PROJECT, Graph
from ctx.memory.records import Record
from ctx.objects.object_store import Object, typed
from ctx.objects.object_types import Commit
from ctx.objects.trees import EMPTY
from ctx.project import batches, project_index
from ctx.project.project_index_state import ProjectState
from tests import effort
from tests.project.repositories import repository_at

NODES = [NodeId(Ulid(f"01{'A' * 23}{number}")) for number in range(2)]
WRITES = st.tuples(
    st.sampled_from(NODES),
    st.sampled_from(["content", "summary", "metadata k", "node"]),
    st.sampled_from(["x", "y"]),
)


class Drawn(NamedTuple):
    """A commit: its parents, and the fields of nodes that it writes."""

    parents: tuple[int, ...]
    writes: list[tuple[NodeId, str, str]]
    amends: int | None = None
    """Whose words it has too."""


@st.composite
def histories(draw: st.DrawFn) -> list[Drawn]:
    made = [Drawn((), [(node, "content", "first") for node in NODES])]
    for number in range(1, draw(st.integers(2, 7))):
        amends = draw(st.none() | st.integers(0, number - 1))
        parents = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=2))
        before = made[amends].parents if amends is not None else tuple(sorted(parents))
        made.append(Drawn(before, draw(st.lists(WRITES, max_size=3)), amends))
    return made


def holders(drawn: list[Drawn]) -> list[set[int]]:
    """For each commit, the commits that contain its records: itself and those that amend it."""
    found = [{number} for number in range(len(drawn))]
    for number, commit in enumerate(drawn):
        for held in found if commit.amends is not None else ():
            if commit.amends in held:
                held.add(number)
    return found


def body(field: str, value: str) -> dict[str, Any]:
    if field == "metadata k":
        return {"metadata": {"k": value}}
    return {field: value, **({"type": "fact"} if value == "first" else {})}


def records_by_commit(drawn: list[Drawn]) -> list[list[Record]]:
    """The records of each commit, in the order of time."""
    every: list[list[Record]] = []
    stamp = 0
    for commit in drawn:
        part = []
        for node, field, value in commit.writes:
            stamp += 1 << 20
            kind = "node.delete" if field == "node" else "node.put"
            fields = {} if field == "node" else body(field, value)
            ids = Ulid(f"7{'0' * 21}{stamp >> 20:04}"), Ulid("7" * 26)
            part.append(
                Record(ids[0], stamp, ids[1], "t", kind, node, "", None, fields, "cli", "cli")
            )
        every.append(part)
    return every


def expected(drawn: list[Drawn], every: list[list[Record]]) -> set[tuple[str, str, frozenset[str]]]:
    """The conflicting nodes, fields and records, by comparing all pairs."""
    before: list[set[int]] = []
    for commit in drawn:
        before.append({each for p in commit.parents for each in (p, *before[p])})
    held = holders(drawn)
    told: dict[tuple[str, str], list[tuple[Record, int, str]]] = {}
    for number, part in enumerate(every):
        for record in part:
            if record.kind == "node.delete":
                told.setdefault((record.subject, "node"), []).append((record, number, "gone"))
                continue
            told.setdefault((record.subject, "node"), []).append((record, number, "there"))
            for name, value in record.body.items():
                field = "metadata k" if name == "metadata" else name
                words = told.setdefault((record.subject, field), [])
                words.append((record, number, str(value)))
    dead = {node for (node, name), words in told.items() if any(w[2] == "gone" for w in words)}
    found: set[tuple[str, str, frozenset[str]]] = set()
    for (node, name), words in told.items():
        if (node in dead) != (name == "node"):
            continue
        unknown = [
            (record, value)
            for record, at, value in words
            if not any(
                other.stamp > record.stamp
                if held[at] & held[later]
                else any(held[at] & before[mine] for mine in held[later])
                for other, later, _ in words
            )
        ]
        if len({value for _, value in unknown}) > 1:
            found.add((node, name, frozenset(record.id for record, _ in unknown)))
    return found


@settings(max_examples=effort.times(25), deadline=None)
@given(histories())
def test_conflicts_equal_those_of_comparing_all_pairs(drawn: list[Drawn]) -> None:
    every = records_by_commit(drawn)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/.ctx")
        repository = repository_at(folder)
        commits: list[ObjectId] = []
        objects: list[Object] = []
        named: list[tuple[ObjectId, ...]] = []
        for number, (commit, part) in enumerate(zip(drawn, every, strict=True)):
            batch = [batches.encode_batch(part)] if part else []
            amended = named[commit.amends] if commit.amends is not None else ()
            named.append((*amended, *(each.id for each in batch)))
            made = typed(
                Commit(
                    parents=tuple(commits[each] for each in commit.parents),
                    timestamp_unix=number,
                    message=f"{number}",
                    root_tree=EMPTY.id,
                    record_batches=named[number],
                    amends=commits[commit.amends] if commit.amends is not None else None,
                )
            )
            objects += [*batch, made]
            commits.append(made.id)
        repository.objects.write(objects)
        with closing(
            project_index.in_memory(repository, ProjectState(tuple(commits), ())).connection
        ) as opened:
            found = find_conflicts(Graph(opened, PROJECT))
    wanted = expected(drawn, every)
    assert {(each.node_id, each.field) for each in found} == {each[:2] for each in wanted}
    among = {each[:2]: each[2] for each in wanted}
    for each in found:
        # One version of each value; the first is what holds.
        assert {version.record.id for version in each.versions} <= among[each.node_id, each.field]
        values = [version.value for version in each.versions]
        assert len(set(values)) == len(values) > 1
        if each.field != "node":
            assert each.versions[0].record == max(
                (version.record for version in each.versions), key=lambda r: r.order
            )
