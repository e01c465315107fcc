"""CondensedGraph: members that reach each other form a component, and components are ordered."""

from pathlib import Path

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


@given(graphs)
def test_a_component_has_the_members_that_reach_each_other(edges: list[Pair]) -> None:
    condensed = cycles.condense(edges)
    members = {end for edge in edges for end in edge}
    assert sorted(each for component in condensed.components for each in component) == sorted(
        members
    )
    can_reach, together = reach(edges), condensed.component_of()
    for one in members:
        for other in members - {one}:
            both = (one, other) in can_reach and (other, one) in can_reach
            assert (together[one] == together[other]) == both


@given(graphs)
def test_edges_between_components_point_forward(edges: list[Pair]) -> None:
    condensed = cycles.condense(edges)
    together = condensed.component_of()
    between = {(together[one], together[other]) for one, other in edges}
    assert set(condensed.edges) == {(one, other) for one, other in between if one != other}
    assert all(one < other for one, other in condensed.edges)


@given(graphs, st.randoms(use_true_random=False))
def test_the_order_of_the_edges_does_not_matter(edges: list[Pair], random: object) -> None:
    shuffled = sorted(edges, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert cycles.condense(shuffled) == cycles.condense(edges)


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
            assert not any(
                (one, loop[0]) in edges
                for _, one in edges
                if (loop[0], one) in edges and one != loop[0]
            )


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
