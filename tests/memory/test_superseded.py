"""Superseded nodes: incremental updates give the same result as evaluating all edges."""

import random
from itertools import permutations

import pytest

from ctx.ids import NodeId
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.model import Evidence
from tests import engines
from tests.memory.graphs import WHO, graph

pytestmark = pytest.mark.usefixtures("engine")


def expected(store: Graph) -> dict[str, str | None]:
    """The plain definition: the newest edge counts whose source is not superseded by the target."""
    rows = store.connection.execute(
        "SELECT from_id, to_id FROM edges WHERE type = 'SUPERSEDES'"
        " ORDER BY created_at, id, from_id"
    ).fetchall()
    reach = {(from_id, to_id) for from_id, to_id in rows}
    while more := {(a, d) for a, b in reach for c, d in reach if b == c} - reach:
        reach |= more
    last = {to_id: from_id for from_id, to_id in rows if (to_id, from_id) not in reach}
    return {node_id: last.get(node_id) for node_id in every(store)}


def every(store: Graph) -> list[NodeId]:
    return [row[0] for row in store.connection.execute("SELECT id FROM nodes")]


@pytest.mark.slow
def test_updates_in_any_order_equal_evaluating_all_edges() -> None:
    rng = random.Random(7)
    for _ in range(30 if engines.server is None else 1):
        with graph() as store:
            with changing(store, "add", WHO) as change:
                nodes = [change.add_node("fact", name) for name in "abcde"]
            pairs = list(permutations(nodes, 2))
            for _ in range(25):
                with changing(store, "test", WHO) as change:
                    # Several at once: a circle may open at two places.
                    for from_id, to_id in rng.sample(pairs, rng.randint(1, 3)):
                        if store.has(from_id) and store.has(to_id):
                            if store.edge(from_id, to_id, "SUPERSEDES"):
                                change.unlink(from_id, to_id, "SUPERSEDES")
                            elif rng.random() < 0.6:
                                change.link(from_id, to_id, "SUPERSEDES", Evidence("test"))
                    for node_id in rng.sample(nodes, rng.choice((0, 0, 1, 2))):
                        if store.has(node_id):
                            change.delete_node(node_id)
                        else:
                            change.restore_node(node_id)
                said = {node.id: node.superseded_by for node in store.nodes(every(store))}
                assert said == expected(store)


@pytest.mark.sqlite
def test_extending_a_long_chain_reads_only_the_last_link() -> None:
    with graph() as store:
        statements: list[int] = []
        with changing(store, "add", WHO) as change:
            last = change.add_node("fact", "v0")
        for number in range(1, 120):
            asked: list[str] = []
            store.connection.set_trace_callback(asked.append)
            with changing(store, "add", WHO) as change:
                new = change.add_node("fact", f"v{number}")
                change.link(new, last, "SUPERSEDES", Evidence("test"))
            store.connection.set_trace_callback(None)
            statements.append(len(asked))
            last = new
        assert statements[-1] == statements[5]
