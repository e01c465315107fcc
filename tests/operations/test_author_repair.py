"""What an older version stored as the user's words is corrected once, on positive evidence."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.capture import pipeline, session_state
from ctx.memory.model import Node
from ctx.operations import author_repair, status, undo
from ctx.operations.author_repair import SESSION, STATE, AuthorRepair
from ctx.sqlite.connection import transaction
from ctx.synthesis import session_writer
from ctx.workspace import Memory
from tests.capture.conversations import Client
from tests.capture.test_prompt_authors import BEGAN_MS, capture, delegation, event

RULE = "Never deploy from the branch zebra without asking."
THEIRS = {"said_by": "user", "source": None}
OWN = "Always use tabs in the ledger files."


@pytest.fixture
def memory(surroundings: Path, repo: Path) -> Iterator[Memory]:
    with Client(surroundings / ".ctx", repo).memory() as memory:
        yield memory


def home(memory: Memory) -> str:
    return memory.environment.user_store.home


def repair(memory: Memory, log: list[str]) -> None:
    @contextmanager
    def guard(doing: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            log.append(f"{doing}: {error}")

    AuthorRepair(home(memory), guard, lambda: False, log.append).advance(memory)


def synthesise(memory: Memory, *sessions: str) -> None:
    for session in sessions:
        session_writer.synthesise(memory, session, is_over=True)


def nodes(memory: Memory, text: str) -> list[Node]:
    found = memory.user.nodes([row[0] for row in _rows(memory)])
    return [node for node in found if text.rstrip(".") in node.content and node.type != "summary"]


def _rows(memory: Memory) -> list[Any]:
    return memory.user.connection.execute("SELECT id FROM nodes").fetchall()


def subagent_as_session(memory: Memory) -> None:
    """What an older version stored of a Copilot session: a subagent as a session of its own."""
    capture(memory, event(f"Please count the prices. {OWN}", "main"))
    capture(memory, event(f"Count the prices. {RULE}", "sub", 5))
    synthesise(memory, "sub", "main")
    capture(
        memory,
        event("There are three.", "main", 9, agent="sub", speaker="agent")._replace(
            name="AssistantMessage"
        ),
    )


def standing(node: Node) -> tuple[Any, ...]:
    about = node.metadata
    return node.source, about.get("said_by"), about.get("confidence"), about.get("lasting")


def test_a_rule_of_a_subagent_is_an_agents(memory: Memory) -> None:
    subagent_as_session(memory)
    (before,) = nodes(memory, RULE)
    assert standing(before)[:3] == ("user", "user", 900)
    with memory.transaction("tag", author="synthesis") as change:
        change.tag(before.id, "tier:pinned")
    log: list[str] = []
    repair(memory, log)
    (node,) = nodes(memory, RULE)
    assert node.id == before.id
    assert standing(node) == ("agent", "agent", 600, None)
    assert "Said by the user" not in node.content
    assert not {"kind:rule", "kind:correction", "tier:pinned"} & set(node.tags)
    assert standing(nodes(memory, OWN)[0])[:2] == ("user", "user")
    found = session_state.find(memory.local, "sub")
    assert found is not None
    assert found.status == "completed"
    # It is one change, which the user sees, and nothing else reverts it by accident.
    (made,) = undo.changes(memory, SESSION)
    (line,) = log
    assert line.startswith("1 node is an agent's now")
    assert line.endswith(f"ctx undo {made.id}")
    shown = status.status(memory, new=False).corrected
    assert shown is not None
    assert (shown.nodes, shown.change) == (1, made.id)
    assert undo.undo_change(memory, None, dry_run=True).change.id != made.id
    undo.undo_change(memory, made.id, dry_run=False)
    (reverted,) = nodes(memory, RULE)
    assert standing(reverted) == standing(before)
    assert set(reverted.tags) == {*before.tags, "tier:pinned"}
    assert status.status(memory, new=False).corrected is None
    # It runs once.
    repair(memory, log)
    assert standing(nodes(memory, RULE)[0]) == standing(before)
    assert json.loads(Path(home(memory), STATE).read_text()) == {"version": 1}


def test_evidence_about_a_step_that_is_gone_is_none(memory: Memory) -> None:
    subagent_as_session(memory)
    with transaction(memory.local):
        memory.local.execute("DELETE FROM events WHERE session = 'sub'")
    log: list[str] = []
    repair(memory, log)
    assert log == []
    assert standing(nodes(memory, RULE)[0])[:3] == ("user", "user", 900)


def test_what_a_person_edited_or_pinned_stays(memory: Memory) -> None:
    subagent_as_session(memory)
    (node,) = nodes(memory, RULE)
    with memory.transaction("pin", author="cli") as change:
        change.tag(node.id, "tier:pinned")
    author_repair.repair(memory)
    (node,) = nodes(memory, RULE)
    assert "tier:pinned" in node.tags
    assert node.source == "agent"
    with memory.transaction("edit", author="cli") as change:
        change.update_node(node.id, content=f"{RULE} Really.", metadata=THEIRS)
    assert author_repair.repair(memory).nodes == 0
    assert standing(nodes(memory, RULE)[0])[:2] == ("user", "user")


def test_a_prompt_of_a_subagent_in_the_session_itself(memory: Memory) -> None:
    """Older versions ignored the subagent of a prompt. Its call still shows what it was told."""
    capture(memory, event(f"Please count the prices. {OWN}", "main"))
    capture(memory, event(f"Count the prices. {RULE}", "main", 5))
    synthesise(memory, "main")
    assert standing(nodes(memory, RULE)[0])[:2] == ("user", "user")
    capture(memory, delegation(f"Count the prices. {RULE}", "main", 60))
    assert author_repair.repair(memory).nodes == 1
    assert standing(nodes(memory, RULE)[0])[:2] == ("agent", "agent")
    assert standing(nodes(memory, OWN)[0])[:2] == ("user", "user")


def test_a_template_loses_its_standing_with_the_third_session(memory: Memory) -> None:
    for number in range(3):
        capture(memory, event(f"Translate it. {RULE}", f"s{number}", number * 10_000))
        synthesise(memory, f"s{number}")
        (node,) = nodes(memory, RULE)
        assert node.source == ("user" if number < 2 else "agent")
    learned = [node for node in nodes(memory, RULE) if node.type == "pattern"]
    assert all(node.source == "agent" for node in learned)


def test_the_transcript_of_a_program_is_read_again(memory: Memory, tmp_path: Path) -> None:
    session = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
    path = tmp_path / f"{session}.jsonl"
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": session,
        "timestamp": clock.iso(BEGAN_MS + 1_000),
        "cwd": "/tmp",
        "version": "2.1.325",
        "entrypoint": "sdk-py",
        "message": {"role": "user", "content": f"Count the prices. {RULE}"},
    }
    path.write_text(json.dumps(line) + "\n")
    capture(memory, event(f"Count the prices. {RULE}", session))
    with transaction(memory.local):
        memory.local.execute(
            "UPDATE sessions SET client = 'claude-code', transcript = ?", (str(path),)
        )
    pipeline.take(memory, home(memory))
    synthesise(memory, session)
    assert standing(nodes(memory, RULE)[0])[:2] == ("user", "user")
    repair(memory, [])
    assert standing(nodes(memory, RULE)[0])[:2] == ("agent", "agent")
