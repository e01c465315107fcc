"""A document of `ctx export` or of the Go program is read as items, or refused with the reason."""

import json
from typing import Any

import pytest

from ctx.errors import ContentRefused, NewerFormat
from ctx.exchange import graph_document
from ctx.exchange.foreign.foreign_items import SkippedItem
from ctx.memory.model import Draft, Edge, View

NODE = {
    "id": "01HM5Q0000AAAAAAAAAAAAAAAA",
    "type": "fact",
    "content": "A fact",
    "created_at": "2024-01-15T10:00:00Z",
    "updated_at": "2024-01-15T10:00:00Z",
}


def document(**parts: Any) -> str:
    return json.dumps({"format": "ctx-graph", "version": 1, **parts})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This is not JSON: Expecting value in line 1, column 1."),
        ('{"format": "ctx-graph",', "This is not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "no nodes"),
        ('{"nodes": 5}', "no nodes"),
        ('{"nodes": [NaN]}', "NaN is not a JSON number"),
        ("[" * 100_000, "cannot be used"),
        (document(nodes={}), "nodes is not a list."),
        (document(nodes=[5]), r"nodes\[0\] is not an object."),
        (document(nodes=[{}]), r"nodes\[0\].content is not a string."),
        (document(nodes=[{**NODE, "id": "x"}]), r"nodes\[0\].id is not an id"),
        (document(nodes=[{**NODE, "type": "wish"}]), r"nodes\[0\]: There is no node type 'wish'."),
        (document(nodes=[{**NODE, "tags": ["a b"]}]), r"nodes\[0\]: 'a b' cannot be a tag."),
        (document(nodes=[{**NODE, "tags": "a"}]), r"nodes\[0\].tags is not a list."),
        (document(nodes=[{**NODE, "summary": 5}]), r"nodes\[0\].summary is not a string."),
        (document(nodes=[{**NODE, "tagged_at": 5}]), r"tagged_at is not an object."),
        (document(nodes=[{**NODE, "metadata": []}]), r"nodes\[0\].metadata is not an object."),
        (document(nodes=[{**NODE, "created_at": "then"}]), r"created_at is not a time"),
        (document(nodes=[NODE, NODE]), "The node 01HM5Q0000AAAAAAAAAAAAAAAA is .* twice."),
        (document(edges=[{"type": "LIKES"}]), r"edges\[0\]: There is no edge type 'LIKES'."),
        (document(views=[{"name": "x", "query": "y", "budget": "z"}]), "budget is not a whole"),
        (document(views=[{"name": "x", "query": "y", "budget": -1}]), "budget is not a whole"),
        (
            document(views=[{"name": "default", "query": None}]),
            r"views\[0\].query is not a string.",
        ),
        (
            document(nodes=[{**NODE, "superseded_by": 5}]),
            r"nodes\[0\].superseded_by is not a string.",
        ),
    ],
)
def test_an_invalid_document_is_refused(text: str, message: str) -> None:
    with pytest.raises(ContentRefused, match=message):
        graph_document.parse(text)


def test_a_document_of_a_newer_version_is_refused() -> None:
    with pytest.raises(NewerFormat, match="version 2"):
        graph_document.parse('{"format": "ctx-graph", "version": 2}')


def test_an_export_of_the_go_program_is_read() -> None:
    found = graph_document.parse(
        json.dumps(
            {
                "nodes": [
                    {**NODE, "token_estimate": 1, "metadata": '{"a": 1}', "tags": ["x:y"]},
                    {**NODE, "id": "old", "superseded_by": NODE["id"], "content": "Old"},
                    {"id": "empty"},
                    7,
                ],
                "edges": [{"id": "e", "from_id": NODE["id"], "to_id": "old", "type": "DependsOn"}],
                "tags": [{"node_id": NODE["id"], "tag": "tier:pinned"}],
            }
        )
    )
    first, second, *skipped, edge, replaced = found.items
    assert isinstance(first, Draft)
    assert isinstance(second, Draft)
    assert isinstance(edge, Edge)
    assert isinstance(replaced, Edge)
    assert (first.tags, first.metadata) == (("x:y", "tier:pinned"), {"a": 1})
    assert (edge.type, edge.from_id, edge.to_id) == ("DEPENDS_ON", first.id, second.id)
    assert (replaced.type, replaced.from_id, replaced.to_id) == ("SUPERSEDES", first.id, second.id)
    assert skipped == [
        SkippedItem("node empty", "it has no content"),
        SkippedItem("nodes[3]", "it is not an object"),
    ]
    assert not found.is_ours


def test_a_view_is_read_with_its_times() -> None:
    told = {"name": "v", "query": "type:fact", "budget": None}
    times = {"created_at": "2024-01-15", "updated_at": "2024-01-15T10:00:00+00:00"}
    assert graph_document.parse(document(views=[{**told, **times}])).items == [
        View("v", "type:fact", None, "2024-01-15T00:00:00Z", "2024-01-15T10:00:00Z")
    ]
