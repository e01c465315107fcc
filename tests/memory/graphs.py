"""Graphs in memory, the content of their tables, and random histories."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from sqlite3 import Connection
from typing import Any

from hypothesis import strategies as st

from ctx.errors import CtxError
from ctx.exchange import integrity
from ctx.ids import NodeId, derived_ulid
from ctx.memory import inverse_changes, records
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.materialise import materialise
from ctx.memory.migrations import MIGRATIONS
from ctx.memory.records import Record
from tests import engines

WHO = ChangeAuthor("cli", "cli")
TABLES = {
    "nodes": (
        "id, type, content, summary, token_estimate, superseded_by, created_at, updated_at,"
        " metadata, terms"
    ),
    "tags": "node_id, tag, created_at",
    "edges": "id, from_id, to_id, type, created_at, metadata",
    "outside": "id, from_id, to_id, type, created_at, metadata",
    "views": "name, query, budget, created_at, updated_at",
    "pending": "key, value, created_at",
}


@contextmanager
def graph() -> Iterator[Graph]:
    """An empty graph: in memory, or on the server that the fixture `engine` has chosen."""
    if engines.server is not None:
        yield engines.server.empty_graph()
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(_empty())
        connection.execute("PRAGMA foreign_keys = ON")
        yield Graph(connection)


@cache
def _empty() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in MIGRATIONS:
            migration(connection)
        return connection.serialize()


def tables(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The content of all derived tables, sorted."""
    return {
        table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3").fetchall()
        for table, columns in TABLES.items()
    }


def all_records(connection: Connection) -> list[Record]:
    """All records, in the order of their stamps."""
    changes = connection.execute("SELECT DISTINCT change FROM records WHERE stamp > 0")
    found = [record for row in changes for record in records.of_change(connection, row[0])]
    return sorted(found, key=lambda record: record.order)


def assert_sound(connection: Connection) -> None:
    if engines.server is not None:
        # A server has what the same records make of a store.
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as store:
            store.deserialize(_empty())
            said = all_records(connection)
            records.insert(store, said)
            materialise(store, said)
            assert tables(connection) == tables(store)
        return
    with integrity.private_copy(connection) as copy:
        assert integrity.problems(copy) == []
        assert integrity.differences(copy) == []


# One step of a history: what is done, and three numbers that choose to what.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "add", "add", "update", "delete", "restore", "tag", "untag", "link", "unlink",
                "outside", "supersede", "view", "unview", "task", "undo", "together",
            ]
        ),
        st.integers(0, 7),
        st.integers(0, 7),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip

EDGE_TYPES = ("DEPENDS_ON", "SUPERSEDES", "CHILD_OF", "RELATES_TO")
ELSEWHERE = [NodeId(derived_ulid(number, "of a project")) for number in range(2)]
Step = tuple[str, int, int, int]


def run_steps(graph: Graph, steps: list[Step], existing: Sequence[NodeId] = ()) -> None:
    """Run steps on a graph, with the functions that commands use."""
    made = [*existing]
    for step in steps:
        # Some steps make no sense, such as to link what is deleted.
        with suppress(CtxError), changing(graph, step[0], WHO) as change:
            _run_step(graph, change, step, made)


def _run_step(graph: Graph, change: Change, step: Step, made: list[NodeId]) -> None:
    what, first, second, third = step
    if what == "add" or not made:
        made.append(change.add_node("fact", f"Fact {len(made)}.", metadata={"n": third}))
        return
    one, other = made[first % len(made)], made[second % len(made)]
    match what:
        case "update" if graph.has(one):
            change.update_node(
                one,
                content=f"Content {second}.",
                summary=("", "Short.")[third % 2],
                metadata={f"key{third}": (None, "a", "b")[second % 3]},
            )
        case "delete":
            change.delete_node(one)
        case "restore":
            change.restore_node(one)
        case "tag" if graph.has(one):
            change.tag(one, f"word:{third}")
        case "untag":
            change.untag(one, f"word:{third}")
        case "link" | "supersede" if one != other:
            edge_type = "SUPERSEDES" if what == "supersede" else EDGE_TYPES[third]
            change.link(one, other, edge_type, {"tool": "cli", "reason": f"{first}"})
        case "outside":
            change.link(one, ELSEWHERE[second % 2], EDGE_TYPES[third], {}, outside=True)
        case "unlink" if second > 5:
            change.unlink(one, ELSEWHERE[second % 2], EDGE_TYPES[third])
        case "unlink":
            change.unlink(one, other, EDGE_TYPES[third])
        case "view":
            change.put_view(f"view{third}", f"tag:word:{first}", second or None)
        case "unview":
            change.delete_view(f"view{third}")
        case "task":
            change.set_current_task(f"current_task:{third}", (None, "a", "b")[second % 3])
        case "undo":
            past = list(inverse_changes.changes(graph))
            inverse_changes.take_back(change, past[first % len(past)].change)
        case "together":
            # Several things about the same nodes in one change.
            new = change.add_node("task", "New.")
            change.tag(new, "word:1")
            change.link(new, one, "SUPERSEDES", {})
            change.delete_node(other)
