"""Rounds from the spool to memory: when a session is synthesised, and failing parts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.capture import reconcile, session_state
from ctx.hook_files import live
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
def talk(client: Client) -> Conversation:
    found = client.talk()
    found.start()
    return found


class Rounds(WorkerRounds):
    """Rounds of a worker that notes what failed."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.home, self._note)
        self.client = client
        self.problems: list[str] = []

    @contextmanager
    def _note(self, doing: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            self.problems.append(f"{doing}: {error}")

    def sessions(self) -> tuple[str, ...]:
        """The sessions that a round synthesised."""
        with self.client.memory() as memory:
            return self.round(memory).sessions


@pytest.fixture
def rounds(client: Client) -> Rounds:
    return Rounds(client)


def use_tool(talk: Conversation, tool: str, use: str, **told: Any) -> None:
    said = talk.payload(
        "PostToolUse", tool_name=tool, tool_use_id=use, **{"tool_response": {}, **told}
    )
    talk.client.hook("post-tool-use", said)


def run_command(talk: Conversation, command: str, printed: str) -> None:
    use_tool(
        talk,
        "Bash",
        f"toolu_{command}",
        tool_input={"command": command},
        tool_response={"stdout": printed, "stderr": ""},
    )


def work_one_turn(talk: Conversation) -> None:
    """One turn in which a file is written and tests pass."""
    talk.submit("Make the retries wait for a second.")
    path = str(talk.client.folder / "retry.py")
    made = "def wait() -> int:\n    return 1\n"
    use_tool(
        talk,
        "Write",
        "toolu_write",
        tool_input={"file_path": path, "content": made},
        tool_response={"type": "create", "filePath": path, "content": made},
    )
    talk.prompt("Make the retries wait for a second.")
    talk.reply("We decided to wait a second because the broker needs it.")
    talk.stop()


def fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("not today")


def nodes(client: Client) -> list[str]:
    with client.memory() as memory:
        rows = memory.user.connection.execute(
            "SELECT type FROM nodes WHERE type IN ('summary', 'observation') ORDER BY type"
        )
        return [row[0] for row in rows]


def test_a_session_is_synthesised_at_the_end_of_a_turn(talk: Conversation, rounds: Rounds) -> None:
    talk.submit("Look at the retries.")
    assert rounds.sessions() == ()
    work_one_turn(talk)
    assert rounds.sessions() == (SESSION,)
    assert set(nodes(talk.client)) == {"observation", "summary"}
    assert rounds.sessions() == ()
    talk.end()
    assert rounds.sessions() == (SESSION,)
    assert rounds.sessions() == ()
    with talk.client.memory() as memory:
        found = session_state.get(memory.local, SESSION)
        made = memory.local.execute("SELECT text FROM contexts").fetchall()
    assert found.status == "completed"
    assert found.summary
    # Its context is prepared again.
    assert len(made) == 1
    assert "wait for a second" in made[0][0]


def test_passing_tests_are_synthesised_at_once(talk: Conversation, rounds: Rounds) -> None:
    talk.submit("Fix it.")
    run_command(talk, "make lint", "nothing to do")
    assert rounds.sessions() == ()
    run_command(talk, "pytest", "===== 12 passed in 0.31s =====")
    assert rounds.sessions() == (SESSION,)


def test_late_events_are_synthesised_in_order(talk: Conversation, rounds: Rounds) -> None:
    talk.submit("Fix it.")
    talk.prompt("Fix it.")
    talk.reply("Done.")
    talk.stop()
    assert rounds.sessions() == (SESSION,)
    with talk.client.memory() as memory:
        connection = memory.local
        body = '{"hook_event_name": "UserPromptSubmit", "prompt": "What came first."}'
        connection.execute(
            "INSERT INTO events (id, session, event, at, folder, body)"
            " SELECT substr(min(id), 1, 13) || '-0-0', session, 'UserPromptSubmit', min(at),"
            " folder, ? FROM events WHERE session = ?",
            (body, SESSION),
        )
    assert rounds.sessions() == (SESSION,)
    assert rounds.sessions() == ()


def test_a_session_without_a_client_is_synthesised_and_ended_later(
    talk: Conversation, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its work is synthesised soon, and it is ended after a day."""
    talk.submit("Fix it.")
    live.begin(talk.client.home, SESSION, "", "/")
    assert rounds.sessions() == ()
    now = clock.wall_ms()
    monkeypatch.setattr(clock, "wall_ms", lambda: now + 20 * 60_000)
    assert rounds.sessions() == (SESSION,)
    assert rounds.sessions() == ()
    monkeypatch.setattr(clock, "wall_ms", lambda: now + 25 * 3_600_000)
    assert rounds.sessions() == (SESSION,)
    assert rounds.sessions() == ()
    with talk.client.memory() as memory:
        assert session_state.get(memory.local, SESSION).status == "interrupted"


def test_a_failing_part_does_not_stop_the_others(
    talk: Conversation, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "reconcile", fails)
        patch.setattr(learnings, "learn", fails)
        patch.setattr(worker_round, "drain", fails)
        talk.client.apply()
        talk.submit("Fix it.")
        talk.end()
        talk.client.apply()
        assert rounds.sessions() == (SESSION,)
    assert rounds.problems == [
        "the spool: not today",
        f"the transcript of {SESSION}: not today",
        "learnings of app: not today",
    ]


def test_a_session_that_fails_is_given_up(
    talk: Conversation, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.submit("Fix it.")
    talk.end()
    with monkeypatch.context() as patch:
        patch.setattr(session_writer, "synthesise", fails)
        for _ in range(5):
            assert rounds.sessions() == ()
    assert rounds.problems == [f"synthesis of {SESSION}: not today"] * 3
    # Something new is something else to tell.
    talk.start("resume")
    talk.submit("Go on with it.")
    talk.end()
    assert rounds.sessions() == (SESSION,)


def test_one_process_at_a_time_synthesises(client: Client, rounds: Rounds) -> None:
    other = WorkerRounds(client.home, rounds._note)
    with client.memory() as memory, worker_round.hold_sessions(client.home) as held:
        assert held
        assert other.remember(memory) == (NOTHING, 0, ())
    assert rounds.problems == []


def test_a_daily_backup_is_made(
    client: Client, rounds: Rounds, surroundings: Path, ctx: Ctx
) -> None:
    assert ctx("hook", "apply").code == 0
    # A copy of nothing would be the only one for a day.
    assert not (surroundings / ".ctx" / "backups").exists()
    assert ctx("add", "--type=fact", "One").code == 0
    rounds.sessions()
    assert len(list((surroundings / ".ctx" / "backups").iterdir())) == 1
    rounds.sessions()
    assert len(list((surroundings / ".ctx" / "backups").iterdir())) == 1


def test_old_sessions_get_commands_and_excerpts(
    talk: Conversation, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older version of ctx stored none. Nodes do not change, and each session is tried once."""
    talk.submit("Run the tests. Never change the retries without asking me first.")
    run_command(talk, "pytest tests", "===== 12 passed in 0.31s =====")
    talk.stop()
    assert rounds.sessions() == (SESSION,)
    with talk.client.memory() as memory:
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
        later = WorkerRounds(talk.client.home, rounds._note)
        later.freshen(memory)
        later.freshen(memory)
        assert rounds.problems == [f"commands and excerpts of {SESSION}: not today"]


def test_a_few_old_sessions_at_a_time(
    client: Client, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
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
