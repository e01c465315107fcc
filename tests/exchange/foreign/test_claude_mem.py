from pathlib import Path

import pytest

from ctx import ids
from ctx.errors import DatabaseFailure
from ctx.exchange.foreign import claude_mem
from ctx.exchange.foreign.foreign_items import Item, SkippedItem
from ctx.ids import Ulid
from ctx.memory.model import Draft
from tests.exchange.foreign import databases
from tests.exchange.foreign.databases import EPOCH, insert, make, observation, summary


def read(path: Path, *, with_prompts: bool = False) -> list[Item]:
    with claude_mem.reading(str(path), with_prompts=with_prompts) as reading:
        return list(reading.items)


def drafts(path: Path) -> list[Draft]:
    return [item for item in read(path) if isinstance(item, Draft)]


def test_observations_and_session_summaries_are_read(tmp_path: Path) -> None:
    items = read(databases.claude_mem(tmp_path / "claude-mem.db"))
    first, second, summed, _ = items
    assert isinstance(first, Draft)
    assert isinstance(second, Draft)
    assert isinstance(summed, Draft)
    assert first == Draft(
        id=first.id,
        type="observation",
        content=(
            "Retries were lost\nThe queue dropped them\n\n"
            "A failed job was removed before it was put back.\n\n"
            "- put back first\n- then remove"
        ),
        created_at="2024-01-15T10:00:01Z",
        updated_at="2024-01-15T10:00:01Z",
        tags=(
            "kind:bugfix",
            "project:shop",
            "session:agent-session",
            "concept:problem-solution",
            "concept:job-queue",
            "source:claude-mem",
        ),
        metadata={
            "files_read": ["src/queue.py"],
            "files_modified": ["src/queue.py", "tests/test_queue.py"],
            "prompt_number": 2,
            "claude_mem_id": 1,
        },
    )
    assert ids.ulid_ms(Ulid(first.id)) == (EPOCH + 1) * 1000
    assert second.tags[0] == "kind:decision"
    assert summed == Draft(
        id=summed.id,
        type="summary",
        content=(
            "Request: Request 3\n\nInvestigated: the queue\n\n"
            "Learned: order matters\n\nNext steps: a test"
        ),
        created_at="2024-01-15T10:00:03Z",
        updated_at="2024-01-15T10:00:03Z",
        tags=("project:shop", "session:agent-session", "source:claude-mem"),
        metadata={
            "request": "Request 3",
            "investigated": "the queue",
            "learned": "order matters",
            "next_steps": "a test",
            "files_edited": ["src/queue.py"],
            "claude_mem_id": 1,
        },
        edges=(("DERIVED_FROM", first.id), ("DERIVED_FROM", second.id)),
    )
    reason = "raw prompts are not knowledge (--with-prompts imports them)"
    assert items[3:] == [SkippedItem("user prompts: 1", reason)]


def test_prompts_are_read_on_request(tmp_path: Path) -> None:
    prompt = read(databases.claude_mem(tmp_path / "claude-mem.db"), with_prompts=True)[-1]
    assert isinstance(prompt, Draft)
    assert (prompt.type, prompt.content) == ("source", "Why are jobs lost?")
    assert prompt.tags == (
        "project:shop",
        "session:agent-session",
        "kind:prompt",
        "source:claude-mem",
    )


def test_a_database_with_the_old_column_names_is_read(tmp_path: Path) -> None:
    path = make(tmp_path / "old.db", databases.CLAUDE_MEM_SCHEMA_OLD)
    told = {"project": "shop", "created_at": "", "created_at_epoch": EPOCH}
    insert(
        path,
        "sdk_sessions",
        claude_session_id="agents",
        sdk_session_id="own",
        project="shop",
        started_at_epoch=EPOCH,
    )
    insert(path, "observations", sdk_session_id="own", text="All in one", type="feature", **told)
    insert(path, "session_summaries", sdk_session_id="own", request="A feature", **told)
    noted, summed = drafts(path)
    assert (noted.content, noted.created_at) == ("All in one", "2024-01-15T10:00:00Z")
    assert noted.tags == (
        "kind:feature",
        "project:shop",
        "session:agents",
        "source:claude-mem",
    )
    assert summed.edges == (("DERIVED_FROM", noted.id),)


def test_databases_of_the_first_versions_are_read(tmp_path: Path) -> None:
    path = make(tmp_path / "first.db", databases.CLAUDE_MEM_SCHEMA_FIRST)
    told = {"session_id": "s", "project": "shop", "created_at_epoch": EPOCH, "created_at": ""}
    insert(path, "memories", text="A memory", files_touched='["a.py"]', keywords="x", **told)
    insert(path, "overviews", content="What was done", **told)
    noted, summed = drafts(path)
    assert (noted.content, noted.metadata["files_modified"]) == ("A memory", ["a.py"])
    assert noted.tags == (
        "kind:memory",
        "project:shop",
        "session:s",
        "concept:x",
        "source:claude-mem",
    )
    assert (summed.type, summed.content) == ("summary", "What was done")
    assert summed.edges == (("DERIVED_FROM", noted.id),)


def test_each_summary_covers_the_observations_before_it(tmp_path: Path) -> None:
    path = make(tmp_path / "claude-mem.db", databases.CLAUDE_MEM_SCHEMA)
    for session in ("b", "a", "c"):
        for number in (1, 2, 4, 6):
            observation(path, session, number, title=f"{session}{number}")
    for session, number in (("a", 3), ("a", 5), ("c", 9), ("d", 1)):
        summary(path, session, number, request=f"{session}{number}")
    found = drafts(path)
    titles = {draft.id: draft.content for draft in found}
    assert {
        draft.content: [titles[to_id] for _, to_id in draft.edges]
        for draft in found
        if draft.type == "summary"
    } == {
        "Request: a3": ["a1", "a2"],
        "Request: a5": ["a4", "a6"],
        "Request: c9": ["c1", "c2", "c4", "c6"],
        "Request: d1": [],
    }


def test_invalid_rows_are_skipped_with_a_reason(tmp_path: Path) -> None:
    path = make(tmp_path / "claude-mem.db", databases.CLAUDE_MEM_SCHEMA)
    observation(path, "s", 1, title="", narrative=None, facts="[]")
    observation(path, "s", 2, facts="not json", concepts='{"a": 1}', files_read="[1, null]")
    observation(path, "s", 3, title="Seconds", created_at_epoch=EPOCH)
    observation(path, "s", 4, title="No time", created_at_epoch=0, created_at="then")
    observation(path, "s", 5, title="Text", created_at_epoch=0, created_at="2024-01-15 10:00:00")
    observation(path, "s", 6, title="Merged", merged_into_project="the shop")
    observation(
        path, "s", 8, title="Lists", facts='[{"a": "é"}, ["b"], 5, null]', concepts='["x", 1, {}]'
    )
    observation(path, "s", 9, title=b"By\xfftes", prompt_number=b"\x80", files_read=b"[1e999]")
    summary(path, "s", 7, request=None)
    items = read(path)
    found = {item.content.split("\n")[0]: item for item in items if isinstance(item, Draft)}
    assert found["Title 2"].content == "Title 2\n\n- not json"
    assert found["Title 2"].metadata["files_read"] == ["1"]
    assert found["Seconds"].created_at == "2024-01-15T10:00:00Z"
    assert found["No time"].created_at == ""
    assert found["Text"].created_at == "2024-01-15T10:00:00Z"
    assert "project:the-shop" in found["Merged"].tags
    assert found["Lists"].content == 'Lists\n\n- {"a": "é"}\n- ["b"]\n- 5'
    assert [tag for tag in found["Lists"].tags if tag.startswith("concept:")] == ["concept:x"]
    assert found["By\udcfftes"].metadata["files_read"] == ["Infinity"]
    assert [item for item in items if isinstance(item, SkippedItem)] == [
        SkippedItem("observations 1", "it has no text"),
        SkippedItem("session_summaries 1", "it has no text"),
    ]
    assert read(path) == items


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFailure, match="not a database of claude-mem"):
        read(databases.go_store(tmp_path / "store.db"))
