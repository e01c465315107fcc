"""Rounds from the spool to memory: when a session is synthesised, and failing parts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.capture import reconcile, session_state
from ctx.operations import learnings, worker_round
from ctx.operations.apply import NOTHING
from ctx.operations.worker_round import WorkerRounds
from ctx.sqlite.connection import transaction
from ctx.synthesis import excerpt_table, project_commands, session_writer
from tests.capture.conversations import SESSION, Client, Conversation
from tests.conftest import Ctx


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    assert ctx("status").code == 0
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def conversation(client: Client) -> Conversation:
    found = client.talk()
    found.start()
    return found


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def rounds(client: Client, problems: list[str]) -> WorkerRounds:
    @contextmanager
    def guard(doing: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            problems.append(f"{doing}: {error}")

    return WorkerRounds(client.home, guard)


def round_of(client: Client, rounds: WorkerRounds) -> tuple[str, ...]:
    """The sessions that a round synthesised."""
    with client.memory() as memory:
        return rounds.round(memory).sessions


def use_tool(conversation: Conversation, tool: str, use: str, **told: Any) -> None:
    said = conversation.payload(
        "PostToolUse", tool_name=tool, tool_use_id=use, **{"tool_response": {}, **told}
    )
    conversation.client.hook("post-tool-use", said)


def run_command(conversation: Conversation, command: str, printed: str) -> None:
    use_tool(
        conversation,
        "Bash",
        f"toolu_{command}",
        tool_input={"command": command},
        tool_response={"stdout": printed, "stderr": ""},
    )


def work_one_turn(conversation: Conversation) -> None:
    """One turn in which a file is written and tests pass."""
    conversation.submit("Make the retries wait for a second.")
    path = str(conversation.client.folder / "retry.py")
    made = "def wait() -> int:\n    return 1\n"
    use_tool(
        conversation,
        "Write",
        "toolu_write",
        tool_input={"file_path": path, "content": made},
        tool_response={"type": "create", "filePath": path, "content": made},
    )
    conversation.prompt("Make the retries wait for a second.")
    conversation.reply("We decided to wait a second because the broker needs it.")
    conversation.stop()


def fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("not today")


def nodes(client: Client) -> list[str]:
    with client.memory() as memory:
        rows = memory.user.connection.execute(
            "SELECT type FROM nodes WHERE type IN ('summary', 'observation') ORDER BY type"
        )
        return [row[0] for row in rows]


def test_a_session_is_synthesised_at_the_end_of_a_turn(
    client: Client, conversation: Conversation, rounds: WorkerRounds
) -> None:
    conversation.submit("Look at the retries.")
    assert round_of(client, rounds) == ()
    work_one_turn(conversation)
    assert round_of(client, rounds) == (SESSION,)
    assert set(nodes(client)) == {"observation", "summary"}
    assert round_of(client, rounds) == ()
    conversation.end()
    assert round_of(client, rounds) == (SESSION,)
    assert round_of(client, rounds) == ()
    with client.memory() as memory:
        found = session_state.get(memory.local, SESSION)
        made = memory.local.execute("SELECT text FROM contexts").fetchall()
    assert found.status == "completed"
    assert found.summary
    # Its context is prepared again.
    assert len(made) == 1
    assert "wait a second" in made[0][0]


def test_passing_tests_are_synthesised_at_once(
    client: Client, conversation: Conversation, rounds: WorkerRounds
) -> None:
    conversation.submit("Fix it.")
    run_command(conversation, "make lint", "nothing to do")
    assert round_of(client, rounds) == ()
    run_command(conversation, "pytest", "===== 12 passed in 0.31s =====")
    assert round_of(client, rounds) == (SESSION,)


def test_late_events_are_synthesised_in_order(
    client: Client, conversation: Conversation, rounds: WorkerRounds
) -> None:
    conversation.submit("Fix it.")
    conversation.prompt("Fix it.")
    conversation.reply("Done.")
    conversation.stop()
    assert round_of(client, rounds) == (SESSION,)
    with client.memory() as memory:
        connection = memory.local
        body = '{"hook_event_name": "UserPromptSubmit", "prompt": "What came first."}'
        connection.execute(
            "INSERT INTO events (id, session, event, at, folder, body)"
            " SELECT substr(min(id), 1, 13) || '-0-0', session, 'UserPromptSubmit', min(at),"
            " folder, ? FROM events WHERE session = ?",
            (body, SESSION),
        )
    assert round_of(client, rounds) == (SESSION,)
    assert round_of(client, rounds) == ()


def test_a_session_without_a_client_is_synthesised_and_ended_later(
    client: Client,
    conversation: Conversation,
    rounds: WorkerRounds,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its work is synthesised soon, and it is ended after a day."""
    conversation.submit("Fix it.")
    assert round_of(client, rounds) == ()
    now = clock.wall_ms()
    monkeypatch.setattr(clock, "wall_ms", lambda: now + 20 * 60_000)
    assert round_of(client, rounds) == (SESSION,)
    assert round_of(client, rounds) == ()
    monkeypatch.setattr(clock, "wall_ms", lambda: now + 25 * 3_600_000)
    assert round_of(client, rounds) == (SESSION,)
    assert round_of(client, rounds) == ()
    with client.memory() as memory:
        assert session_state.get(memory.local, SESSION).status == "interrupted"


def test_a_failing_part_does_not_stop_the_others(
    client: Client,
    conversation: Conversation,
    rounds: WorkerRounds,
    problems: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "reconcile", fails)
        patch.setattr(learnings, "learn", fails)
        patch.setattr(worker_round, "drain", fails)
        client.apply()
        conversation.submit("Fix it.")
        conversation.end()
        client.apply()
        assert round_of(client, rounds) == (SESSION,)
    assert problems == [
        "the spool: not today",
        f"the transcript of {SESSION}: not today",
        "learnings of app: not today",
    ]


def test_a_session_that_fails_is_given_up(
    client: Client,
    conversation: Conversation,
    rounds: WorkerRounds,
    problems: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conversation.submit("Fix it.")
    conversation.end()
    with monkeypatch.context() as patch:
        patch.setattr(session_writer, "synthesise", fails)
        for _ in range(5):
            assert round_of(client, rounds) == ()
    assert problems == [f"synthesis of {SESSION}: not today"] * 3
    # Something new is something else to tell.
    conversation.start("resume")
    conversation.submit("Go on with it.")
    conversation.end()
    assert round_of(client, rounds) == (SESSION,)


def test_one_process_at_a_time_synthesises(
    client: Client, rounds: WorkerRounds, problems: list[str]
) -> None:
    other = WorkerRounds(client.home, rounds._guard)
    with client.memory() as memory, worker_round.hold_sessions(client.home) as held:
        assert held
        assert other.remember(memory) == (NOTHING, 0, 0, ())
    assert problems == []


def test_a_daily_backup_is_made(
    client: Client, rounds: WorkerRounds, surroundings: Path, ctx: Ctx
) -> None:
    assert ctx("hook", "apply").code == 0
    # A copy of nothing would be the only one for a day.
    assert not (surroundings / ".ctx" / "backups").exists()
    assert ctx("add", "--type=fact", "One").code == 0
    round_of(client, rounds)
    assert len(list((surroundings / ".ctx" / "backups").iterdir())) == 1
    round_of(client, rounds)
    assert len(list((surroundings / ".ctx" / "backups").iterdir())) == 1


def test_old_sessions_get_commands_and_excerpts(
    client: Client,
    conversation: Conversation,
    rounds: WorkerRounds,
    problems: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An older version of ctx stored none. Nodes do not change, and each session is tried once."""
    conversation.submit("Run the tests. Never change the retries without asking me first.")
    run_command(conversation, "pytest tests", "===== 12 passed in 0.31s =====")
    conversation.stop()
    assert round_of(client, rounds) == (SESSION,)
    with client.memory() as memory:
        connection = memory.local
        stored = excerpt_table.sessions(connection), project_commands.sessions(connection)
        assert stored == ({SESSION}, {SESSION})
        with transaction(connection):
            excerpt_table.forget_session(connection, SESSION)
            project_commands.forget_session(connection, SESSION)
        records = connection.execute("SELECT count(*) FROM records").fetchone()
        rounds.freshen(memory)
        assert excerpt_table.sessions(connection) == {SESSION}
        assert project_commands.sessions(connection) == {SESSION}
        assert connection.execute("SELECT count(*) FROM records").fetchone() == records

        with transaction(connection):
            excerpt_table.forget_session(connection, SESSION)
            project_commands.forget_session(connection, SESSION)
        rounds.freshen(memory)
        assert excerpt_table.sessions(connection) == set()

        monkeypatch.setattr(session_writer, "fill_rows", fails)
        later = WorkerRounds(client.home, rounds._guard)
        later.freshen(memory)
        later.freshen(memory)
        assert problems == [f"commands and excerpts of {SESSION}: not today"]


def test_a_few_old_sessions_at_a_time(
    client: Client, rounds: WorkerRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[str] = []
    monkeypatch.setattr(session_writer, "fill_rows", lambda _, it: filled.append(it.id))
    with client.memory() as memory:
        with transaction(memory.local):
            memory.local.executemany(
                "INSERT INTO sessions (id, folder, started_at, last_at, synthesised)"
                " VALUES (?, '/x', ?1, ?1, 'x')",
                [(f"s{number:02}",) for number in range(25)],
            )
        rounds.freshen(memory)
        assert filled == [f"s{number:02}" for number in range(24, 4, -1)]
        rounds.freshen(memory)
        rounds.freshen(memory)
        assert len(filled) == 25
