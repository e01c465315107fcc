"""The source of a node: stated in its metadata, or derived from its author."""

from collections.abc import Mapping
from typing import Any

import pytest

from ctx.memory import sources
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.graphs import Graphs
from tests.memory import graphs

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize(
    ("node_type", "metadata", "author", "source"),
    [
        ("fact", {}, "cli", "user"),
        ("fact", {}, "claude-code", "agent"),
        ("observation", {"said_by": "user"}, "synthesis", "user"),
        ("observation", {"said_by": "model"}, "synthesis", "agent"),
        ("observation", {}, "synthesis", "agent"),
        ("pattern", {"origin": "human"}, "cli", "user"),
        ("pattern", {"origin": "inferred"}, "cli", "agent"),
        ("decision", {"file": "decisions/decision_0001.md"}, "narrative/decisions", "user"),
        ("file", {"path": "a.py"}, "cli", "repository"),
        ("diagnostic", {"name": "E1"}, "cli", "tool output"),
        ("observation", {"command": "make", "lines": 3}, "cli", "tool output"),
        ("source", {"path": "a.md", "hash": "1f"}, "cli", "repository"),
        ("source", {"url": "https://example.org"}, "cli", "web"),
        ("source", {"answer": "1f"}, "cli", "agent"),
        # A person may note an address or a command with any fact.
        ("fact", {"url": "https://example.org", "command": "make"}, "cli", "user"),
        ("fact", {}, "import:ctx", "user"),
        ("fact", {}, "import:claude-mem", "agent"),
        ("fact", {}, "import:ctx,jsonl", "agent"),
        ("fact", {}, "library", "agent"),
        ("fact", {}, "", "agent"),
        # What is stated wins, and only a known word is a source.
        ("file", {"source": "web"}, "cli", "web"),
        ("observation", {"source": "user", "said_by": "agent"}, "synthesis", "user"),
        ("fact", {"source": "hearsay"}, "claude-code", "agent"),
        ("fact", {"source": ["user"]}, "claude-code", "agent"),
    ],
)
def test_the_source_follows_from_type_metadata_and_author(
    node_type: str, metadata: Mapping[str, Any], author: str, source: str
) -> None:
    assert sources.source_of(node_type, metadata, author) == source


def test_repository_tool_output_and_web_are_data() -> None:
    assert [each for each in sources.SOURCES if sources.is_data(each)] == [
        "repository",
        "tool output",
        "web",
    ]


def test_the_source_is_that_of_the_author_of_the_text() -> None:
    with graphs.graph() as graph:
        with changing(graph, "add", ChangeAuthor("s", "claude-code")) as change:
            node_id = change.add_node("fact", "The cache is cold.")
        assert graph.node(node_id).source == "agent"
        with changing(graph, "tag", ChangeAuthor("s", "cli")) as change:
            change.tag(node_id, "tier:reference")
            change.update_node(node_id, summary="Cache")
        assert graph.node(node_id).source == "agent", "a tag and a summary are not the text"
        with changing(graph, "update", ChangeAuthor("s", "cli")) as change:
            change.update_node(node_id, content="The cache is warm.")
        assert graph.node(node_id).source == "user"
        assert _deleted_source(graph) == []
        with changing(graph, "delete", ChangeAuthor("s", "cli")) as change:
            change.delete_node(node_id)
        assert _deleted_source(graph) == ["user"]


def _deleted_source(graph: Graph) -> list[str]:
    return [node.source for node in Graphs([graph]).deleted(None)[0]]
