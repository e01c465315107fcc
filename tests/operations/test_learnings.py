"""Learnings are created, confirmed, rejected, and lose confidence over time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx import clock
from ctx.capture import steps
from ctx.capture.steps import Step
from ctx.memory.graph import USER
from ctx.operations import learnings
from ctx.operations.learnings import Learning, LearnResult
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests.conftest import Ctx
from tests.synthesis.test_session_writer import open_writable

DAY_MS = 86_400_000
NOW = 1_794_700_000_000


@pytest.fixture
def memory(surroundings: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setattr(clock, "now_ms", lambda: NOW)
    with open_writable(surroundings, repo) as memory:
        yield memory


def add_session(memory: Memory, number: int, *, days_ago: int, command: str = "make test") -> None:
    """Add a session in which tests passed."""
    session, at = f"s{number}", clock.iso(NOW - days_ago * DAY_MS)
    step = Step(f"{number:013d}-1-0", session, at, "command", "Bash", text=command, passed=True)
    with transaction(memory.local):
        memory.local.execute(
            "INSERT INTO sessions (id, project, folder, started_at, last_at) VALUES (?,?,?,?,?)",
            (session, memory.project, memory.folder, at, at),
        )
        memory.local.execute(
            "INSERT INTO events (id, session, event, at, tool, status, body)"
            " VALUES (?, ?, 'PostToolUse', ?, 'Bash', ?, ?)",
            (step.id, session, at, steps.STEP, steps.body(step)),
        )


def add_observation(memory: Memory, kind: str, text: str, number: int, days_ago: int) -> None:
    at = clock.iso(NOW - days_ago * DAY_MS)
    with memory.transaction("synthesise", USER) as change:
        told = {"title": text, "session": f"s{number}", "said_by": "user"}
        node_id = change.add_node("observation", text, metadata=told, times=(at, at))
        change.tag(node_id, f"kind:{kind}")
        change.tag(node_id, f"project:{memory.project}")


def shown(memory: Memory, **options: bool) -> list[tuple[str, str, float, int]]:
    return [
        (each.category, each.node.content, each.confidence, each.times_seen)
        for each in learnings.list_learnings(memory, **options).learnings  # type: ignore[arg-type]
    ]


def only_learning(memory: Memory) -> Learning:
    (found,) = learnings.list_learnings(memory, rejected=True).learnings
    return found


TESTED = "Tests are run with `make test`."


def test_confidence_grows_with_sessions_and_fades_with_time(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        add_session(memory, number, days_ago=10 - number)
    assert learnings.learn(memory, memory.project) == LearnResult(0, 0, 0)
    add_session(memory, 3, days_ago=1)
    assert learnings.learn(memory, memory.project) == LearnResult(1, 0, 0)
    assert shown(memory) == [("convention", TESTED, 0.646, 3)]
    for _ in range(2):
        assert learnings.learn(memory, memory.project) == LearnResult(0, 0, 0)
    add_session(memory, 4, days_ago=0)
    assert learnings.learn(memory, memory.project) == LearnResult(0, 1, 0)
    assert shown(memory) == [("convention", TESTED, 0.75, 4)]
    monkeypatch.setattr(clock, "now_ms", lambda: NOW + 35 * DAY_MS)
    assert learnings.learn(memory, memory.project) == LearnResult(0, 0, 0)
    memory.local.execute("DELETE FROM events")
    monkeypatch.setattr(clock, "now_ms", lambda: NOW + 120 * DAY_MS)
    # It fades with time, whether or not a session ends.
    assert shown(memory) == [("convention", TESTED, 0.375, 4)]
    assert learnings.learn(memory, memory.project) == LearnResult(0, 1, 0)
    assert shown(memory) == [("convention", TESTED, 0.375, 4)]
    monkeypatch.setattr(clock, "now_ms", lambda: NOW + 900 * DAY_MS)
    learnings.learn(memory, memory.project)
    assert "tier:off-context" in only_learning(memory).node.tags


def test_a_contradicted_learning_is_less_certain(memory: Memory) -> None:
    for number in (1, 2):
        add_observation(
            memory, "decision", "Indent Makefiles with tabs", number, days_ago=20 - number
        )
    learnings.learn(memory, memory.project)
    assert shown(memory) == [("convention", "Indent Makefiles with tabs", 0.5, 2)]
    add_observation(memory, "decision", "Don't indent Makefiles with tabs", 3, days_ago=1)
    assert learnings.learn(memory, memory.project).contradicted == 1
    assert learnings.learn(memory, memory.project) == LearnResult(0, 0, 0)
    assert [each[2] for each in shown(memory)] == [0.25]


def test_a_confirmed_learning_does_not_fade(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        add_session(memory, number, days_ago=5)
    learnings.learn(memory, memory.project)
    learnings.confirm(memory, only_learning(memory).node.id)
    monkeypatch.setattr(clock, "now_ms", lambda: NOW + 900 * DAY_MS)
    learnings.learn(memory, memory.project)
    assert (only_learning(memory).confidence, only_learning(memory).origin) == (1.0, "human")


def test_a_rejected_learning_is_not_learned_again(memory: Memory) -> None:
    for number in (1, 2, 3):
        add_session(memory, number, days_ago=5)
    learnings.learn(memory, memory.project)
    learnings.reject(memory, only_learning(memory).node.id)
    memory.local.execute("UPDATE sessions SET project = 'elsewhere'")
    learnings.learn(memory, "elsewhere")
    assert shown(memory) == [], "learnings of another project are not shown"
    assert [each[1] for each in shown(memory, everywhere=True)] == [TESTED]
    memory.local.execute("UPDATE sessions SET project = ?", (memory.project,))
    add_session(memory, 4, days_ago=0)
    assert learnings.learn(memory, memory.project) == LearnResult(0, 0, 0)
    assert shown(memory) == []
    assert (only_learning(memory).rejected, only_learning(memory).confidence) == (True, 0.0)
    learnings.confirm(memory, only_learning(memory).node.id)
    assert shown(memory) == [("convention", TESTED, 1.0, 3)]
    assert "tier:off-context" not in only_learning(memory).node.tags


def test_observations_of_a_rejected_learning_are_hidden(memory: Memory) -> None:
    for number in (1, 2):
        add_observation(memory, "decision", "Totals are odd numbers in this shop", number, 5)
    add_observation(memory, "decision", "Prices are kept in cents", 3, 5)
    learnings.learn(memory, memory.project)
    learnings.reject(memory, only_learning(memory).node.id)
    rows = memory.user.connection.execute(
        "SELECT DISTINCT content FROM nodes JOIN tags ON node_id = id"
        " WHERE type = 'observation' AND tag = 'tier:off-context'"
    ).fetchall()
    assert rows == [("Totals are odd numbers in this shop",)]


def test_learnings_are_managed_by_commands(repo: Path, ctx: Ctx) -> None:
    assert ctx("learnings", "list").out == f"No learnings in {repo.name} yet.\n"
    assert ctx("learnings", "list", "--all").out == "No learnings yet.\n"
    words = "Migrations are never edited"
    first = ctx("learnings", "add", words, "--category=gotcha", "--format=json").json
    again = ctx("learnings", "add", words, "--category=gotcha", "--format=json").json
    assert first["learnings"][0]["node"]["id"] == again["learnings"][0]["node"]["id"]
    (found,) = ctx("learnings", "list", "--format=json").json["learnings"]
    assert (found["category"], found["confidence"], found["origin"]) == ("gotcha", 1.0, "human")
    assert set(found["node"]["tags"]) == {"learning:gotcha", f"project:{repo.name}"}
    assert ctx("learnings", "reject", found["short_id"]).code == 0
    nothing = "No matching learnings; there is 1"
    assert ctx("learnings", "list").out == f"{nothing} rejected.\n"
    assert ctx("learnings", "list", "--rejected").out.split()[1] == "rejected"
    assert ctx("learnings", "confirm", found["short_id"]).out.startswith("Confirmed: ")
    assert ctx("learnings", "list", "--category=pattern").out == f"{nothing} other.\n"
    assert ctx("learnings", "list", "--least=2").code == 2
    node = ctx("add", "--type=fact", "A fact", "--format=json").json["node"]["id"]
    ran = ctx("learnings", "confirm", node)
    assert (ran.code, "is not a learning" in ran.err) == (1, True)
    assert ctx("learnings", "confirm", "01HQ").code == 1
    assert ctx("learnings", "add", "  ").code != 0


def test_a_learning_can_be_for_all_projects_or_one(repo: Path, ctx: Ctx) -> None:
    """In a project with a store, learnings of the user stay in the user store."""
    ctx("init")
    ctx("learnings", "add", "Tests come first", "--user")
    ctx("learnings", "add", "Only here")
    found = ctx("learnings", "list", "--format=json").json["learnings"]
    assert {each["node"]["content"]: each["node"]["scope"] for each in found} == {
        "Tests come first": "user",
        "Only here": "project",
    }
    other = ctx("learnings", "list", "--project-name=elsewhere", "--format=json").json
    assert other["project"] == "elsewhere"
    assert [each["node"]["content"] for each in other["learnings"]] == ["Tests come first"]
