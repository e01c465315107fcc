import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from ctx.ids import ObjectId
from ctx.objects import commits, trees
from ctx.objects.in_memory import InMemoryStore
from ctx.objects.object_store import typed
from ctx.objects.object_types import Commit


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[list[int], int]], set[int]]:
    """Commits as (parents, seconds since the newest parent), and which of them are heads."""
    count = draw(st.integers(1, 9))
    made = []
    for number in range(count):
        parents = (
            draw(st.lists(st.integers(0, number - 1), unique=True, max_size=3)) if number else []
        )
        made.append((parents, draw(st.integers(0, 2))))
    heads = draw(st.sets(st.integers(0, count - 1), min_size=1))
    return made, heads


def write(
    history: list[tuple[list[int], int]], missing: set[int] | None = None
) -> tuple[InMemoryStore, list[ObjectId]]:
    reader = InMemoryStore()
    reader.write([trees.EMPTY])
    ids: list[ObjectId] = []
    made: list[Commit] = []
    for number, (parents, later) in enumerate(history):
        time = commits.timestamp(0, [made[parent] for parent in parents]) + later
        commit = Commit(tuple(ids[parent] for parent in parents), time, str(number), trees.EMPTY.id)
        made.append(commit)
        ids.append(typed(commit).id)
        if number not in (missing or ()):
            reader.write([typed(commit)])
    return reader, ids


def ancestors(history: list[tuple[list[int], int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = list(history[start][0])
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += history[number][0]
    return found


@settings(deadline=None)
@given(histories())
def test_the_newest_heads_are_those_without_a_descendant(
    drawn: tuple[list[tuple[list[int], int]], set[int]],
) -> None:
    history, heads = drawn
    reader, ids = write(history)
    overtaken = set().union(*(ancestors(history, head) for head in heads))
    expected = {ids[head] for head in heads - overtaken}
    assert set(commits.newest(reader, [ids[head] for head in heads])) == expected


@settings(deadline=None)
@given(histories())
def test_a_walk_visits_every_ancestor_once(
    drawn: tuple[list[tuple[list[int], int]], set[int]],
) -> None:
    history, heads = drawn
    reader, ids = write(history)
    visited = [id for id, _ in commits.walk(reader, [ids[head] for head in heads])]
    reachable = heads.union(*(ancestors(history, head) for head in heads))
    assert sorted(visited) == sorted(ids[number] for number in reachable)
    times = [commit.timestamp_unix for _, commit in commits.walk(reader, visited) if commit]
    assert times == sorted(times, reverse=True)


def test_a_missing_parent_is_a_boundary() -> None:
    history = [([], 0), ([0], 1), ([1], 1), ([2], 1)]
    reader, ids = write(history, missing={1})
    walked = list(commits.walk(reader, [ids[3]]))
    assert [id for id, commit in walked if commit] == [ids[3], ids[2]]
    assert [id for id, commit in walked if commit is None] == [ids[1]]


def test_a_missing_head_counts_until_a_descendant_exists() -> None:
    reader, ids = write([([], 0), ([0], 1), ([0], 1)], missing={2})
    assert set(commits.newest(reader, [ids[1], ids[2]])) == {ids[1], ids[2]}
    reader, ids = write([([], 0), ([0], 1), ([1], 1)], missing={1})
    assert commits.newest(reader, [ids[1], ids[2]]) == (ids[2],)


def test_an_amended_commit_is_not_a_head() -> None:
    reader = InMemoryStore()
    old = typed(Commit((), 1, "old", trees.EMPTY.id))
    new = typed(Commit((), 2, "new", trees.EMPTY.id, amends=old.id))
    reader.write([trees.EMPTY, old, new])
    assert commits.newest(reader, [old.id, new.id]) == (new.id,)


@pytest.mark.parametrize("told", [True, False])
def test_a_repeatedly_amended_commit_contains_its_predecessors(told: bool) -> None:
    """Earlier versions recorded only the last one."""
    made = [typed(Commit((), 1, "first", trees.EMPTY.id))]
    for number in (2, 3):
        before = [each.id for each in reversed(made)]
        commit = Commit((), number, "again", trees.EMPTY.id, amends=before[0])
        made.append(typed(structs.replace(commit, replaced=tuple(before)) if told else commit))
    first, second, third = made
    other = typed(Commit((), 1, "other", trees.EMPTY.id)).id
    reader = InMemoryStore()
    reader.write(made)
    assert commits.contain(reader, [third.id], [first.id, second.id, third.id])
    assert not commits.contain(reader, [third.id], [first.id, other])
    collected = InMemoryStore()
    collected.write([third])
    assert commits.contain(collected, [third.id], [second.id, third.id])
    assert commits.contain(collected, [third.id], [first.id]) == told
    assert not commits.contain(collected, [third.id], [other])


def test_an_earlier_amended_commit_is_not_a_head() -> None:
    reader = InMemoryStore()
    old = typed(Commit((), 1, "old", trees.EMPTY.id))
    between = typed(Commit((), 2, "between", trees.EMPTY.id)).id
    new = typed(Commit((), 3, "new", trees.EMPTY.id, amends=between, replaced=(between, old.id)))
    reader.write([old, new])
    assert commits.newest(reader, [old.id, new.id]) == (new.id,)


def test_a_commit_is_never_older_than_its_parents() -> None:
    parent = Commit((), 500, "from a clock that runs ahead", trees.EMPTY.id)
    assert commits.timestamp(100, [parent]) == 500
    assert commits.timestamp(900, [parent]) == 900
