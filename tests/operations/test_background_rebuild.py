"""The worker rebuilds past sessions after the rules of synthesis have changed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.capture import session_state, steps, team_table
from ctx.hook_files import spool
from ctx.memory import event_log
from ctx.operations import background_rebuild, session_rebuild, sessions, undo
from ctx.operations.background_rebuild import SESSION, STATE, BackgroundRebuild
from ctx.sqlite.connection import transaction
from ctx.synthesis import session_writer
from ctx.synthesis.session_writer import RULES
from ctx.workspace import Memory
from tests.capture.conversations import Client
from tests.capture.transcripts import Transcript, fix, session_ids
from tests.operations.test_backfill import run
from tests.operations.test_session_rebuild import backups, live_nodes, old_session
from tests.synthesis.test_session_writer import FIX, add_steps, count


@pytest.fixture
def log() -> list[str]:
    return []


def home(memory: Memory) -> str:
    return memory.environment.user_store.home


def state(memory: Memory) -> Any:
    return json.loads(Path(home(memory), STATE).read_text())


def worker(memory: Memory, log: list[str]) -> BackgroundRebuild:
    @contextmanager
    def guard(doing: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            log.append(f"{doing}: {error}")

    return BackgroundRebuild(home(memory), guard, lambda: False, log.append)


def synthesised_session(memory: Memory, session: str = "s1", script: str = FIX) -> str:
    node = old_session(memory, session, script)
    with transaction(memory.local):
        memory.local.execute("UPDATE sessions SET synthesised = '0' WHERE id = ?", (session,))
    return node


def test_old_sessions_are_rebuilt_once_in_one_change(memory: Memory, log: list[str]) -> None:
    first = synthesised_session(memory)
    second = synthesised_session(memory, "s2", FIX.replace("auth", "login"))
    before = live_nodes(memory)
    rebuild = worker(memory, log)
    rebuild.advance(memory)
    assert not {first, second} & set(live_nodes(memory))
    assert len(backups(memory)) == 1
    [line] = log
    assert line.startswith("rebuilt 2 sessions: ")
    assert state(memory) == {"rules": RULES, "through": None}

    # Nothing more happens, in this worker and in the next.
    records = count(memory)
    for each in (rebuild, worker(memory, log), worker(memory, log)):
        each.advance(memory)
    # Even if the file is lost.
    Path(home(memory), STATE).unlink()
    worker(memory, log).advance(memory)
    assert (count(memory), len(log), len(backups(memory))) == (records, 1, 1)

    # One command reverts it, and nothing else does by accident.
    [change] = undo.changes(memory, SESSION)
    assert line.endswith(f"ctx undo {change.id}")
    assert undo.undo_change(memory, None, dry_run=True).change.id != change.id
    undo.undo_change(memory, change.id, dry_run=False)
    assert live_nodes(memory) == before
    Path(home(memory), STATE).unlink()
    worker(memory, log).advance(memory)
    assert live_nodes(memory) == before


def test_newer_rules_rebuild_again(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesised_session(memory)
    worker(memory, log).advance(memory)
    prepared = []
    prepare = session_rebuild.prepare

    def counted(memory: Memory, session: session_state.Session, **how: bool) -> Any:
        prepared.append(session.id)
        return prepare(memory, session, **how)

    monkeypatch.setattr(session_rebuild, "prepare", counted)
    worker(memory, log).advance(memory)
    assert prepared == []
    monkeypatch.setattr(background_rebuild, "RULES", RULES + 1)
    worker(memory, log).advance(memory)
    assert prepared == ["s1"]
    assert state(memory)["rules"] == RULES + 1
    # An older version of ctx leaves the newer memory alone.
    monkeypatch.setattr(background_rebuild, "RULES", RULES)
    worker(memory, log).advance(memory)
    assert prepared == ["s1"]


def test_a_few_sessions_at_a_time(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        synthesised_session(memory, f"s{number}", FIX.replace("auth", f"auth{number}"))
    before = live_nodes(memory)
    rebuild = worker(memory, log)
    waiting: list[str] = []
    monkeypatch.setattr(spool, "pending_names", lambda _: waiting)
    # A hook has reported something: that comes first.
    waiting.append("1-prompt")
    rebuild.advance(memory)
    assert not rebuild.is_under_way
    waiting.clear()
    monkeypatch.setattr(background_rebuild, "_SLICE_S", -1)
    rebuild.advance(memory)
    assert (rebuild.is_under_way, live_nodes(memory)) == (False, before)
    monkeypatch.setattr(background_rebuild, "_SLICE_S", 0)
    monkeypatch.setattr(clock, "monotonic", iter(range(100)).__next__)
    rebuild.advance(memory)
    assert (rebuild.is_under_way, live_nodes(memory), log) == (False, before, [])
    monkeypatch.setattr(background_rebuild, "_SLICE_S", 1)
    rebuild.advance(memory)
    assert (rebuild.is_under_way, live_nodes(memory)) == (True, before)
    for _ in range(3):
        rebuild.advance(memory)
    assert not rebuild.is_under_way
    assert len(log) == 1
    assert log[0].startswith("rebuilt 3 sessions: ")


def test_a_large_store_is_rebuilt_in_several_changes(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_rebuild, "_MOST_SESSIONS", 2)
    for number in range(3):
        synthesised_session(memory, f"s{number}", FIX.replace("auth", f"auth{number}"))
    worker(memory, log).advance(memory)
    assert state(memory) == {"rules": RULES, "through": ["2026-11-15T00:00:00Z", "s1"]}
    # Another worker continues.
    worker(memory, log).advance(memory)
    assert state(memory)["through"] is None
    assert [line.partition(":")[0] for line in log] == ["rebuilt 2 sessions", "rebuilt 1 sessions"]


def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_rebuild, "_SLICE_S", 1)
    monkeypatch.setattr(clock, "monotonic", iter(range(100)).__next__)


def test_sessions_that_change_meanwhile_are_left_alone(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        synthesised_session(memory, f"s{number}", FIX.replace("auth", f"auth{number}"))
    one_at_a_time(monkeypatch)
    rebuild = worker(memory, log)
    for _ in range(3):
        rebuild.advance(memory)
    add_steps(memory, FIX.replace("auth", "auth0") + "say: Once more.\n", "s0")
    with transaction(memory.local):
        execute = memory.local.execute
        execute("UPDATE sessions SET status = 'active' WHERE id = 's1'")
    sessions.delete(memory, "s2", dry_run=False)
    for _ in range(3):
        rebuild.advance(memory)
    assert log[0].startswith("rebuilt 1 sessions: ")
    assert [each for each in log if "s2" in each] == []
    found = {memory.user.node(it).metadata["session"] for it in memory.user.of_type("summary")}
    assert found == {"s3"}


def test_nothing_that_was_scrubbed_is_written_back(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesised_session(memory)
    synthesised_session(memory, "s2", FIX.replace("auth", "login"))
    one_at_a_time(monkeypatch)
    rebuild = worker(memory, log)
    rebuild.advance(memory)
    assert rebuild.is_under_way
    with transaction(memory.local):
        execute = memory.local.execute
        execute("UPDATE events SET body = replace(body, 'test_once', 'test_gone')")
        event_log.add(memory.local, event_log.SCRUBBED, "", {})
    for _ in range(3):
        rebuild.advance(memory)
    assert "rebuilt 2 sessions" in log[0]
    assert not [text for text in live_nodes(memory).values() if "test_once" in text]


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("no")


def test_a_session_that_fails_is_skipped(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesised_session(memory)
    with monkeypatch.context() as patch:
        patch.setattr(session_writer, "prepare", fail)
        worker(memory, log).advance(memory)
    assert log == ["rebuild of s1: no"]
    assert state(memory)["through"] is None


def test_sessions_that_cannot_be_written_are_tried_again_by_the_next_worker(
    memory: Memory, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesised_session(memory)
    rebuild = worker(memory, log)
    with monkeypatch.context() as patch:
        patch.setattr(session_rebuild, "write", fail)
        with pytest.raises(RuntimeError):
            rebuild.advance(memory)
    rebuild.advance(memory)
    assert not Path(home(memory), STATE).exists()
    worker(memory, log).advance(memory)
    assert [line.partition(":")[0] for line in log] == ["rebuilt 1 sessions"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rules": "x"}', '{"rules": 1, "through": [1]}'])
def test_a_damaged_file_means_that_nothing_was_rebuilt(
    memory: Memory, log: list[str], text: str
) -> None:
    synthesised_session(memory)
    Path(home(memory), STATE).write_text(text)
    worker(memory, log).advance(memory)
    assert len(log) == 1
    assert state(memory) == {"rules": RULES, "through": None}


def test_old_transcripts_get_titles_and_leads(
    client: Client, surroundings: Path, log: list[str]
) -> None:
    """A transcript that an older version of ctx imported has the same as a captured session."""
    names = session_ids()
    folder = surroundings / ".claude" / "projects" / "-p"
    lead = Transcript(folder, next(names), str(client.folder))
    fix(lead)
    lead.titled("ai-title", aiTitle="Sum of an order", sessionId=lead.session)
    prompt = {"description": "Test it", "prompt": "Run all tests.", "name": "tester"}
    lead.tool("Agent", prompt, {"status": "teammate_spawned", "team_name": "checkout"})
    mate = Transcript(folder, next(names), str(client.folder), began="2026-11-02T10:00:00Z")
    mate.in_team("checkout", "tester")
    fix(mate, "tax")
    with client.memory() as memory:
        connection = memory.local
        run(memory, surroundings / ".claude")

        def known() -> tuple[str, dict[str, str], object]:
            title = steps.stored_title(connection, lead.session).text
            leads = {it.session: it.lead for it in team_table.teammates(connection).values()}
            summary = session_state.get(connection, lead.session).summary
            return title, leads, memory.user.node(summary).metadata["title"]  # type: ignore[arg-type]

        imported = known()
        assert imported[:2] == ("Sum of an order", {mate.session: lead.session})
        stored = session_state.all_of(connection)
        with transaction(connection):
            connection.execute("DELETE FROM events WHERE event = ?", (steps.TITLE,))
            connection.execute("DELETE FROM session_teams")
        for name in (lead.session, mate.session):
            session_writer.synthesise(memory, name, is_over=True)
        assert known() != imported
        worker(memory, log).advance(memory)
        assert known() == imported
        kept = [(it.id, it.status, it.last_at, it.transcript_read) for it in stored]
        now = session_state.all_of(connection)
        assert [(it.id, it.status, it.last_at, it.transcript_read) for it in now] == kept
