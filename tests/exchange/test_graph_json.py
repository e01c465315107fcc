"""A graph is exported as one document and imported unchanged."""

import io
import itertools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx.exchange import graph_document, graph_json, graph_stream
from ctx.exchange.graph_json import ExportCounts, require_no_conflict
from ctx.exchange.importer import ItemImporter
from ctx.memory import model, user_store
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.model import Edge, Evidence
from tests import effort, engines
from tests.exchange.test_graph_document import NODE, document

WHO = ChangeAuthor("s", "test")
pytestmark = pytest.mark.usefixtures("engine")


@contextmanager
def memory(folder: Path, name: str) -> Iterator[Graph]:
    """An empty graph. On a server there is one at a time."""
    if engines.server is not None:
        yield engines.server.empty_graph()
        return
    path = folder / name
    path.unlink(missing_ok=True)
    with closing(user_store.open_for_writing(str(path))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield Graph(connection)


def exported(graph: Graph, chosen: Any = None) -> str:
    parts: list[str] = []
    graph_json.write(graph, chosen, parts.append)
    return "".join(parts)


def take(graph: Graph, text: str) -> ItemImporter:
    document = graph_document.parse(text)
    require_no_conflict(graph, document.items)
    with changing(graph, "import", WHO) as change:
        intake = ItemImporter(change)
        intake.take_all(document.items, "ctx")
        intake.finish()
    return intake


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
contents = texts.filter(lambda text: bool(text.strip()))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
tags = st.sampled_from([*model.TIERS, "project:shop", "note", "kind:über", "a:b:c"])
numbers = st.integers(0, 30)
steps = st.one_of(
    st.tuples(
        st.just("add"),
        st.sampled_from(model.NODE_TYPES),
        contents,
        st.none() | texts,
        st.dictionaries(texts, json_values, max_size=3),
    ),
    st.tuples(
        st.just("update"), numbers, contents, st.dictionaries(texts, json_values, max_size=2)
    ),
    st.tuples(st.just("delete"), numbers),
    st.tuples(st.just("tag"), numbers, tags),
    st.tuples(st.just("untag"), numbers, tags),
    st.tuples(st.just("link"), numbers, numbers, st.sampled_from(model.EDGE_TYPES), texts),
    st.tuples(st.just("unlink"), numbers, numbers, st.sampled_from(model.EDGE_TYPES)),
    st.tuples(
        st.just("view"),
        st.sampled_from(["default", "mine"]),
        st.sampled_from(["type:fact", "tag:a:b AND NOT has:summary", "words of a task"]),
        st.none() | st.integers(model.SMALLEST_BUDGET, model.LARGEST_BUDGET),
    ),
    st.tuples(st.just("unview"), st.just("mine")),
)


def carry_out(change: Change, step: Any, nodes: list[Any]) -> None:
    """Perform one operation, if it is possible."""
    verb, *told = step

    def node(number: int) -> Any:
        return nodes[number % len(nodes)]

    match verb:
        case "add":
            node_type, content, summary, metadata = told
            nodes.append(change.add_node(node_type, content, summary=summary, metadata=metadata))
        case "view":
            change.put_view(*told)
        case "unview":
            change.delete_view(told[0])
        case _ if not nodes or not change.graph.has(node(told[0])):
            return
        case "update":
            change.update_node(node(told[0]), content=told[1], metadata=told[2])
        case "delete":
            change.delete_node(node(told[0]))
        case "tag":
            change.tag(node(told[0]), told[1])
        case "untag":
            change.untag(node(told[0]), told[1])
        case _ if node(told[0]) == node(told[1]) or not change.graph.has(node(told[1])):
            return
        case "link":
            evidence = Evidence("cli", reason=told[3])
            change.link(node(told[0]), node(told[1]), told[2], evidence)
        case "unlink":
            change.unlink(node(told[0]), node(told[1]), told[2])


@settings(
    max_examples=effort.times(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(steps, max_size=25))
def test_an_imported_graph_is_exported_as_the_same_bytes(tmp_path: Path, made: list[Any]) -> None:
    with memory(tmp_path, "one.db") as graph:
        nodes: list[Any] = []
        for step in made:
            with changing(graph, step[0], WHO) as change:
                carry_out(change, step, nodes)
        text = exported(graph)
    in_parts = graph_stream.open_stream(lambda: io.StringIO(text))
    assert in_parts is not None
    assert list(in_parts) == list(graph_document.parse(text).items)
    with memory(tmp_path, "two.db") as graph:
        assert take(graph, text).skipped == []
        assert exported(graph) == text
        again = take(graph, text)
        assert not again.has_written
        if engines.server is None:
            problems = graph.connection.execute("PRAGMA foreign_key_check").fetchall()
            assert problems == []


def some_nodes(graph: Graph) -> list[Any]:
    with changing(graph, "add", WHO) as change:
        ids = [change.add_node("fact", f"Fact {number}") for number in range(3)]
        change.link(ids[1], ids[0], "SUPERSEDES", Evidence("cli"))
        change.link(ids[2], ids[1], "RELATES_TO", Evidence("cli"))
    return ids


def test_selected_nodes_are_exported_with_the_edges_between_them(tmp_path: Path) -> None:
    with memory(tmp_path, "one.db") as graph:
        ids = some_nodes(graph)
        document = json.loads(exported(graph, [ids[2], ids[1], ids[2]]))
        assert [node["id"] for node in document["nodes"]] == ids[1:]
        assert [edge["type"] for edge in document["edges"]] == ["RELATES_TO"]
        assert document["views"] == []
        # What took its place is not in the document, so nothing in it may say so.
        assert json.loads(exported(graph, ids[:1]))["nodes"][0]["superseded_by"] is None
        assert graph_json.write(graph, ids[:1], lambda _: None) == ExportCounts(1, 0, 0)


def test_a_missing_supersedes_edge_is_added(tmp_path: Path) -> None:
    newer = {**NODE, "id": NODE["id"].replace("A", "B"), "content": "Newer"}
    text = document(nodes=[{**NODE, "superseded_by": newer["id"]}, newer])
    with memory(tmp_path, "one.db") as graph:
        assert take(graph, text).skipped == []
        whole = exported(graph)
        assert not take(graph, text).has_written
    (edge,) = json.loads(whole)["edges"]
    assert (edge["type"], edge["from_id"], edge["to_id"]) == ("SUPERSEDES", newer["id"], NODE["id"])
    # An edge that is there is not made twice.
    assert len([each for each in graph_document.parse(whole).items if isinstance(each, Edge)]) == 1


@pytest.mark.sqlite
def test_imported_nodes_can_be_searched_with_plain_sqlite(tmp_path: Path) -> None:
    with memory(tmp_path, "one.db") as graph:
        take(graph, document(nodes=[NODE]))
    with closing(sqlite3.connect(tmp_path / "one.db")) as connection:
        rows = connection.execute("SELECT content FROM nodes_fts('fact')").fetchall()
    assert rows == [("A fact",)]


@pytest.mark.sqlite
def test_an_import_does_not_look_up_each_item(tmp_path: Path) -> None:
    """New nodes, tags and edges are looked up and written in batches."""
    with memory(tmp_path, "large.db") as graph:
        with changing(graph, "add", WHO) as change:
            nodes = [change.add_node("fact", f"The part {number}.") for number in range(300)]
            for number, node_id in enumerate(nodes):
                change.tag(node_id, f"part:{number}")
            for one, other in itertools.pairwise(nodes):
                change.link(one, other, "RELATES_TO", Evidence("test"))
        items = graph_document.parse(exported(graph)).items
    with memory(tmp_path, "empty.db") as graph:
        statements: list[str] = []
        graph.connection.set_trace_callback(statements.append)
        require_no_conflict(graph, items)
        with changing(graph, "import", WHO) as change:
            intake = ItemImporter(change)
            intake.take_all(items, "ctx")
            counts = intake.finish()
        graph.connection.set_trace_callback(None)
        assert (counts.added, counts.edges) == ({"fact": 300}, 299)
    # The text index is updated by a trigger.
    reads = [each for each in statements if each.startswith(("SELECT", "WITH"))]
    assert len(reads) < 60
    # A statement is reported again for each time that it runs a trigger.
    assert sum(each.startswith("INSERT INTO nodes ") for each in set(statements)) < 10
