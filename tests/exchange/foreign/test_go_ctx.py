import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx import ids
from ctx.errors import DatabaseFailure
from ctx.exchange.foreign import go_ctx
from ctx.exchange.foreign.foreign_items import Item, SkippedItem
from ctx.memory.model import Draft, Edge, View
from tests.exchange.foreign import databases
from tests.exchange.foreign.databases import (
    DAY,
    DECISION,
    EDGE,
    FACT,
    NEXT_DAY,
    OLDER,
    go_node,
    go_store,
    insert,
)

STATED = {"tool": "ctx", "confidence": 1000}


def read(path: Path) -> list[Item]:
    with go_ctx.reading(str(path)) as reading:
        return list(reading.items)


@pytest.mark.parametrize("newer", [False, True])
def test_nodes_edges_tags_and_views_are_read_unchanged(tmp_path: Path, newer: bool) -> None:
    items = read(go_store(tmp_path / "store.db", newer=newer))
    superseding = items[4]
    assert isinstance(superseding, Edge)
    assert items == [
        Draft(
            id=FACT,
            type="fact",
            content="Single binaries are preferred",
            created_at=DAY,
            updated_at=NEXT_DAY,
            tags=("project:viberent", "tier:reference"),
            tagged_at={"tier:reference": DAY, "project:viberent": NEXT_DAY},
        ),
        Draft(
            id=DECISION,
            type="decision",
            content="We use SQLite",
            created_at=DAY,
            updated_at=DAY,
            summary="SQLite",
            metadata={"rationale": "no servers", "confidence": 0.9},
        ),
        Draft(id=OLDER, type="decision", content="We use files", created_at=DAY, updated_at=DAY),
        Edge(EDGE, DECISION, FACT, "DEPENDS_ON", DAY, STATED),
        Edge(superseding.id, DECISION, OLDER, "SUPERSEDES", DAY, STATED),
        View("facts", "type:fact", 40000, DAY, DAY),
    ]


def test_a_store_without_the_column_superseded_by_is_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    older = databases.GO_SCHEMA.replace("superseded_by TEXT REFERENCES nodes(id),", "")
    databases.make(path, older)
    go_node(path, FACT, "A fact")
    assert [item.id for item in read(path) if isinstance(item, Draft)] == [FACT]


def test_invalid_rows_are_skipped_with_a_reason(tmp_path: Path) -> None:
    path = databases.make(tmp_path / "store.db", databases.GO_SCHEMA)
    go_node(path, "note-1", "An id of its own", type="Question", metadata="{broken")
    go_node(path, FACT, "  ")
    go_node(path, DECISION, "No times", type="wish", created_at="", updated_at="soon")
    insert(path, "tags", node_id="note-1", tag="two words, and a comma", created_at="")
    insert(path, "tags", node_id="note-1", tag="tier:hot", created_at="")
    insert(path, "edges", id="e", from_id="note-1", to_id=DECISION, type="LIKES", created_at="")
    insert(path, "edges", id="f", from_id="", to_id=DECISION, type="LIKES", created_at="")
    items = read(path)
    drafts = {item.content: item for item in items if isinstance(item, Draft)}
    own = drafts["An id of its own"]
    assert ids.is_ulid(own.id)
    assert own.id == next(i.id for i in read(path) if isinstance(i, Draft) and i.id != DECISION)
    assert (own.type, own.metadata) == (
        "open-question",
        {"original_metadata": "{broken", "original_type": "Question"},
    )
    assert own.tags == ("tier-hot", "two-words-and-a-comma")
    untimed = drafts["No times"]
    assert (untimed.type, untimed.created_at, untimed.updated_at) == ("observation", "", "")
    edges = [item for item in items if isinstance(item, Edge)]
    assert [(edge.from_id, edge.to_id, edge.type) for edge in edges] == [
        (own.id, DECISION, "RELATES_TO")
    ]
    assert edges[0].metadata == {**STATED, "original_type": "LIKES"}
    assert [item for item in items if isinstance(item, SkippedItem)] == [
        SkippedItem(f"node {FACT}", "it has no content"),
        SkippedItem(f"edge LIKES  → {DECISION}", "it has only one end"),
    ]


def test_parts_of_documents_are_distinguished(tmp_path: Path) -> None:
    path = go_store(tmp_path / "store.db", newer=True)
    go_node(path, "01HM5Q0000EEEEEEEEEEEEEEEE", "A chapter", kind="content")
    draft = next(i for i in read(path) if isinstance(i, Draft) and i.content == "A chapter")
    assert draft.metadata == {"kind": "content"}


def test_a_store_is_recognised(tmp_path: Path) -> None:
    path = go_store(tmp_path / "store.db")
    assert go_ctx.is_go_store(str(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 7")
    assert not go_ctx.is_go_store(str(path))
    assert not go_ctx.is_go_store(str(tmp_path / "missing.db"))
    assert not go_ctx.is_go_store(str(databases.claude_mem(tmp_path / "claude-mem.db")))
    (tmp_path / "text.db").write_text("hello")
    assert not go_ctx.is_go_store(str(tmp_path / "text.db"))


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = databases.claude_mem(tmp_path / "claude-mem.db")
    with pytest.raises(DatabaseFailure, match="not a store of the Go program"):
        read(path)
