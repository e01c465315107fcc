"""Which nodes are superseded: what is brought up to date step by step is what all edges say."""

import random
from itertools import permutations

import pytest

from ctx.ids import NodeId
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.model import Evidence
from tests.memory.graphs import WHO, graph


def expected(lived: Graph) -> dict[str, str | None]:
    """By the plainest reading: the newest edge counts whose beginning is not superseded by it."""
    rows = lived.connection.execute(
        "SELECT from_id, to_id FROM edges WHERE type = 'SUPERSEDES'"
        " ORDER BY created_at, id, from_id"
    ).fetchall()
    reach = {(from_id, to_id) for from_id, to_id in rows}
    while more := {(a, d) for a, b in reach for c, d in reach if b == c} - reach:
        reach |= more
    last = {to_id: from_id for from_id, to_id in rows if (to_id, from_id) not in reach}
    return {node_id: last.get(node_id) for node_id in every(lived)}


def every(lived: Graph) -> list[NodeId]:
    return [row[0] for row in lived.connection.execute("SELECT id FROM nodes")]


@pytest.mark.slow
def test_in_any_order_of_linking_unlinking_deleting_and_restoring() -> None:
    rng = random.Random(7)
    for _ in range(60):
        with graph() as lived:
            with changing(lived, "add", WHO) as change:
                nodes = [change.add_node("fact", name) for name in "abcde"]
            pairs = list(permutations(nodes, 2))
            for _ in range(25):
                with changing(lived, "test", WHO) as change:
                    # Several at once: a circle may open at two places.
                    for from_id, to_id in rng.sample(pairs, rng.randint(1, 3)):
                        if lived.has(from_id) and lived.has(to_id):
                            if lived.edge(from_id, to_id, "SUPERSEDES"):
                                change.unlink(from_id, to_id, "SUPERSEDES")
                            elif rng.random() < 0.6:
                                change.link(from_id, to_id, "SUPERSEDES", Evidence("test"))
                    for node_id in rng.sample(nodes, rng.choice((0, 0, 1, 2))):
                        if lived.has(node_id):
                            change.delete_node(node_id)
                        else:
                            change.restore_node(node_id)
                said = {node.id: node.superseded_by for node in lived.nodes(every(lived))}
                assert said == expected(lived)


def test_the_next_of_a_long_chain_looks_at_its_neighbour_alone() -> None:
    with graph() as lived:
        statements: list[int] = []
        with changing(lived, "add", WHO) as change:
            last = change.add_node("fact", "v0")
        for number in range(1, 120):
            asked: list[str] = []
            lived.connection.set_trace_callback(asked.append)
            with changing(lived, "add", WHO) as change:
                new = change.add_node("fact", f"v{number}")
                change.link(new, last, "SUPERSEDES", Evidence("test"))
            lived.connection.set_trace_callback(None)
            statements.append(len(asked))
            last = new
        assert statements[-1] == statements[5]
