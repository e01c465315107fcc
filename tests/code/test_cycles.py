"""CondensedGraph: members that reach each other form a component, and components are ordered."""

import itertools
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ctx.code import cycles
from ctx.code.cycles import VERSION, CondensedGraph, CycleView, Pair

ends = st.integers(0, 9)
graphs = st.lists(st.tuples(ends, ends), max_size=30)


def reach(edges: list[Pair]) -> set[Pair]:
    """The pairs that can reach each other, by brute force."""
    found = set(edges)
    while True:
        longer = {(a, d) for a, b in found for c, d in found if b == c} | found
        if longer == found:
            return found
        found = longer


@given(graphs, st.randoms(use_true_random=False))
def test_components_have_the_members_that_reach_each_other_in_order(
    edges: list[Pair], random: Random
) -> None:
    condensed = cycles.condense(edges)
    members = {end for edge in edges for end in edge}
    assert sorted(itertools.chain(*condensed.components)) == sorted(members)
    can_reach, together = reach(edges), condensed.component_of()
    for one, other in itertools.permutations(members, 2):
        both = {(one, other), (other, one)} <= can_reach
        assert (together[one] == together[other]) == both
    between = {(together[one], together[other]) for one, other in edges}
    assert set(condensed.edges) == {(one, other) for one, other in between if one != other}
    assert all(one < other for one, other in condensed.edges)
    shuffled = sorted(edges, key=lambda _: random.random())
    assert cycles.condense(shuffled) == condensed


@given(graphs)
def test_a_loop_follows_edges_and_is_the_shortest(edges: list[Pair]) -> None:
    condensed = cycles.condense(edges)
    inside = cycles.edges_in_cycles(condensed, edges)
    for members in condensed.cycles:
        loop = cycles.shortest_loop(members, inside[members[0]])
        assert loop[0] == members[0]
        steps = list(zip(loop, [*loop[1:], loop[0]], strict=True))
        assert all(step in edges for step in steps)
        assert len(loop) == len(set(loop)) >= 2
        assert set(loop) <= set(members)
        # A loop of two is the shortest there is; else no neighbour leads straight back.
        if len(loop) > 2:
            back = {one for one, other in edges if other == loop[0]} - {loop[0]}
            assert not any((loop[0], one) in edges for one in back)


def test_a_long_chain_needs_no_recursion() -> None:
    length = 20_000
    chain = [(number, number + 1) for number in range(length)]
    assert cycles.condense(chain).cycles == []
    assert cycles.condense([*chain, (length, 0)]).cycles == [tuple(range(length + 1))]


A_VIEW = CycleView(VERSION, CondensedGraph(((1, 2), (3,)), ((0, 1),)), CondensedGraph((), ()))


def test_a_view_is_stored_once_under_its_hash(tmp_path: Path) -> None:
    folder = str(tmp_path / "DERIVED")
    assert cycles.latest(folder) is None
    name = cycles.write_view(folder, A_VIEW)
    assert cycles.latest(folder) == A_VIEW
    assert (tmp_path / "DERIVED" / "scc_latest").read_text() == f"{name}\n"
    assert cycles.write_view(folder, A_VIEW) == name
    other = CycleView(VERSION, CondensedGraph((), ()), CondensedGraph((), ()))
    assert cycles.write_view(folder, other) != name
    assert cycles.latest(folder) == other
    assert len(list((tmp_path / "DERIVED").iterdir())) == 2
    assert (tmp_path / "DERIVED" / "scc_latest").stat().st_mode & 0o777 == 0o600


def test_a_damaged_view_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "DERIVED"
    name = cycles.write_view(str(folder), A_VIEW)
    for content in (b"", b"\xff" * 40, (folder / f"scc-{name}").read_bytes() + b"\x00"):
        (folder / f"scc-{name}").write_bytes(content)
        assert cycles.latest(str(folder)) is None
    for pointer in (b"../../secret\n", b"\xff", b"0" * 32):
        (folder / "scc_latest").write_bytes(pointer)
        assert cycles.latest(str(folder)) is None
