"""A document that is read in parts gives the same items as one that is parsed as a whole."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ctx import ids
from ctx.errors import ContentRefused
from ctx.exchange import graph_document, graph_stream

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


def export(document: dict[str, Any]) -> str:
    """The lines of a document of `ctx export`."""
    parts = [
        f'"{name}": ['
        + ",".join(f"\n{json.dumps(each)}" for each in document[name])
        + ("\n]" if document[name] else "]")
        for name in ("nodes", "edges", "views")
    ]
    head = f'{{"format": "ctx-graph", "version": {document["version"]},\n'
    return head + ",\n".join(parts) + "}\n"


def opened(text: str) -> graph_stream.ItemStream | None:
    return graph_stream.open_stream(lambda: io.StringIO(text))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"edges": [edge(1), edge(2, "SUPERSEDES"), edge(3, "SUPERSEDES", to=2)]},
        {"nodes": [], "edges": []},
        {"edges": [], "views": []},
    ],
)
def test_items_are_those_of_the_whole_document(changed: dict[str, Any]) -> None:
    text = export(WHOLE | changed)
    found = opened(text)
    assert found is not None
    expected = list(graph_document.parse(text).items)
    # A node that is superseded gets the edge that the document lacks.
    assert len(found) == len(expected) == (len(expected) if changed else 8)
    assert list(found) == expected
    assert list(found) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": NODES[::-1]},
        {"nodes": [node(0), node(0)]},
        {"nodes": [node(0), 7]},
        {"nodes": [node(0, content=5)]},
        {"version": 2},
    ],
)
def test_other_documents_are_not_read_in_parts(changed: dict[str, Any]) -> None:
    assert opened(export(WHOLE | changed)) is None


def test_a_document_that_is_cut_or_changed_anywhere_is_not_read_in_parts() -> None:
    text = export(WHOLE)
    for end in range(len(text)):
        assert opened(text[:end]) is None
    assert opened(json.dumps(WHOLE)) is None
    assert opened(f"{text}x") is None
    for old, new in (("1.5", "NaN"), ("},\n", "}\n"), ("}\n]", "},\n]"), ("edges", "nodes")):
        assert opened(text.replace(old, new, 1)) is None


def test_a_file_is_read_from_its_beginning_each_time(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(export(WHOLE), encoding="utf-8-sig")
    with path.open("rb") as file:
        found = graph_stream.open_stream(lambda: graph_stream.lines_of_file(file.fileno()))
        assert found is not None
        assert list(found) == list(found)
        path.write_bytes(b"\xff")
        with pytest.raises(ContentRefused, match="was changed while it was read"):
            list(found)
