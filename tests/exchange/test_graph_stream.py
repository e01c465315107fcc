"""A document that is read in parts gives the same items as one that is parsed as a whole."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import ids
from ctx.errors import ContentRefused
from ctx.exchange import graph_document, graph_stream
from ctx.exchange.graph_stream import Chunks
from ctx.exchange.importer import ItemImporter
from ctx.memory.changes import changing
from tests.exchange.test_graph_json import WHO, memory

AT = "2026-01-20T10:00:00Z"


def node_id(number: int) -> str:
    return ids.derived_ulid(1_700_000_000_000 + number, "node")


def node(number: int, **fields: Any) -> dict[str, Any]:
    tags = ["tier:reference", f"topic:{number % 7}", "project:shop"]
    text = f"Fact {number} “quoted” \\ {'x' * (number % 50)}"
    times = {"created_at": AT, "updated_at": AT}
    named = {"id": node_id(number), "type": "fact", "content": text, "tags": tags}
    return {**named, **times, "metadata": {"number": number, "size": 1.5}, **fields}


def edge(number: int, kind: str = "DEPENDS_ON", to: int = 0) -> dict[str, Any]:
    ends = {"from_id": node_id(number), "to_id": node_id(to), "type": kind}
    edge_id = ids.derived_ulid(1_700_000_000_000 + number, "edge")
    return {"id": edge_id, **ends, "created_at": AT, "metadata": {"tool": "test"}}


VIEW = {"name": "v", "query": "type:fact", "budget": None, "created_at": AT, "updated_at": AT}
HEAD = {"format": "ctx-graph", "version": 1}
NODES = [node(0), node(1), node(2, superseded_by=node_id(3)), node(3, summary="Three")]
WHOLE = {**HEAD, "nodes": NODES, "edges": [edge(1), edge(2)], "views": [VIEW]}


def in_chunks(text: str, size: int) -> Chunks:
    def chunks() -> Iterator[str]:
        return (text[at : at + size] for at in range(0, len(text), size))

    return chunks


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("indent", [None, 2])
def test_items_do_not_depend_on_the_size_of_chunks(size: int, indent: int | None) -> None:
    text = json.dumps(WHOLE, indent=indent, ensure_ascii=False)
    found = graph_stream.open_stream(in_chunks(text, size))
    assert found is not None
    expected = list(graph_document.parse(text).items)
    # A node that is superseded gets the edge that the document lacks.
    assert len(expected) == len(found) == 8
    assert list(found) == expected
    assert list(found) == expected


@pytest.mark.parametrize(
    "other",
    [
        {**WHOLE, "edges": [edge(1), edge(2, "SUPERSEDES"), edge(3, "SUPERSEDES", to=2)]},
        {**WHOLE, "more": {"nodes": [1, 2]}},
        {**HEAD, "views": [VIEW]},
        {**HEAD, "nodes": [], "edges": []},
        HEAD,
    ],
)
def test_parts_may_be_missing_or_unknown(other: dict[str, Any]) -> None:
    text = json.dumps(other)
    found = graph_stream.open_stream(in_chunks(text, 100))
    assert found is not None
    assert list(found) == list(graph_document.parse(text).items)


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": NODES, **HEAD},
        {**HEAD, "edges": [edge(1)], "nodes": NODES},
        {**HEAD, "nodes": NODES[::-1]},
        {**HEAD, "nodes": [node(0), node(0)]},
        {**HEAD, "nodes": [node(0), 7]},
        {**HEAD, "nodes": [node(0, content=5)]},
        {**HEAD, "nodes": None},
        {**HEAD, "version": 2, "nodes": []},
        {"nodes": NODES},
        [1],
        7,
    ],
)
def test_other_documents_are_not_read_in_parts(other: Any) -> None:
    assert graph_stream.open_stream(in_chunks(json.dumps(other), 50)) is None


def test_a_document_that_is_cut_anywhere_is_not_read_in_parts() -> None:
    text = json.dumps(WHOLE)
    for end in range(len(text)):
        assert graph_stream.open_stream(in_chunks(text[:end], 200)) is None
    assert graph_stream.open_stream(in_chunks(f"{text} x", 200)) is None
    constant = text.replace("1.5", "NaN", 1)
    assert graph_stream.open_stream(in_chunks(constant, 200)) is None


def test_a_file_is_read_from_its_beginning_each_time(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(WHOLE, ensure_ascii=False), encoding="utf-8-sig")
    with path.open("rb") as file:
        found = graph_stream.open_stream(lambda: graph_stream.chunks_of_file(file.fileno()))
        assert found is not None
        assert list(found) == list(found)
        path.write_bytes(b"\xff")
        with pytest.raises(ContentRefused, match="was changed while it was read"):
            list(found)


def test_little_of_a_document_is_in_memory() -> None:
    """Of the text, at most two chunks are read ahead of the item that is taken."""
    lines = [json.dumps(node(number)) for number in range(3_000)]
    text = json.dumps({**HEAD, "nodes": []})[:-2] + ",".join(lines) + "]}"
    size, read = 4_096, 0

    def chunks() -> Iterator[str]:
        nonlocal read
        read = 0
        for chunk in in_chunks(text, size)():
            read += len(chunk)
            yield chunk

    found = graph_stream.open_stream(chunks)
    assert found is not None
    taken = 0
    for line, _ in zip(lines, found, strict=True):
        taken += len(line)
        assert read - taken < 3 * size + len(lines)


def test_an_import_looks_up_and_inserts_many_nodes_at_once(tmp_path: Path) -> None:
    count = 1_000
    rng = random.Random(1)
    edges = [edge(number, to=rng.randrange(number)) for number in range(1, count)]
    nodes = [node(number) for number in range(count)]
    found = graph_stream.open_stream(
        in_chunks(json.dumps({**HEAD, "nodes": nodes, "edges": edges}), 100_000)
    )
    assert found is not None
    statements: list[str] = []
    with memory(tmp_path, "one.db") as graph:
        graph.connection.set_trace_callback(statements.append)
        with changing(graph, "import", WHO) as change:
            intake = ItemImporter(change)
            intake.take_all(found, "ctx")
            intake.finish()
        graph.connection.set_trace_callback(None)
        total = graph.connection.execute("SELECT count(*) FROM nodes").fetchone()[0]
    assert total == count
    # A statement is reported again for each time that it runs a trigger.
    kinds = Counter(" ".join(statement.split()[:3]) for statement in set(statements))
    assert kinds["INSERT INTO nodes"] <= count / 50
    assert sum(n for kind, n in kinds.items() if kind.startswith(("SELECT", "WITH"))) <= count / 10
