"""Past sessions are imported from transcripts: all of them, once, with their times."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.capture import capture_off, pipeline, session_state
from ctx.errors import LockConflict
from ctx.operations import backfill, learnings, worker_round
from ctx.operations.backfill import BackfillResult, Options
from ctx.packs import node_vectors
from ctx.synthesis import session_writer
from ctx.workspace import Memory
from tests.agents.claude_code.hook_processes import SAMPLES
from tests.capture.conversations import Client
from tests.capture.transcripts import Transcript, fix, session_ids
from tests.conftest import Ctx


@pytest.fixture
def claude(surroundings: Path) -> Path:
    return surroundings / ".claude"


def add_past_sessions(claude: Path, folder: str, number: int = 3) -> list[Transcript]:
    """Add sessions of several days in one folder, each with a small fix."""
    names = session_ids()
    found = []
    for day in range(1, number + 1):
        began = f"2026-10-{day:02}T09:00:00Z"
        each = Transcript(claude / "projects" / "-p", next(names), folder, began)
        fix(each, ("total", "discount", "shipping")[day - 1])
        found.append(each)
    return found


def run(memory: Memory, claude: Path, **wanted: Any) -> BackfillResult:
    done = backfill.backfill(memory, Options(str(claude))._replace(**wanted))
    return done._replace(seconds=0.0)


_TOLD = "WHERE nodes.type IN ('observation', 'summary')"


def content(memory: Memory) -> list[tuple[object, ...]]:
    """Everything that follows from the transcripts."""
    connection = memory.local
    tables = {
        "sessions": "*",
        "events": "id, session, event, at, status, reason, body",
        "symbol_changes": "*",
        "session_commands": "*",
        "session_teams": "*",
        f"nodes {_TOLD}": "nodes.id, type, content, created_at, updated_at, metadata",
        f"tags JOIN nodes ON nodes.id = node_id {_TOLD}": "nodes.id, tag",
        f"edges JOIN nodes ON nodes.id = from_id {_TOLD}": "from_id, to_id || edges.type",
    }
    return [
        (table, *row)
        for table, columns in tables.items()
        for row in connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
    ]


def test_past_sessions_are_imported_once_with_their_times(client: Client, claude: Path) -> None:
    every = add_past_sessions(claude, str(client.folder))
    with client.memory() as memory:
        done = run(memory, claude)
        assert [each.session for each in done.sessions] == [each.session for each in every]
        assert (done.unchanged, done.left_out, done.skipped) == (0, 0, ())
        assert (done.steps, done.observations >= 3) == (18, True)
        assert done.size == sum(each.path.stat().st_size for each in every)
        first = session_state.get(memory.local, every[0].session)
        assert first[:5] == (every[0].session, "app", str(client.folder), first.repository, "main")
        assert (first.status, first.head) == ("completed", None)
        assert (first.started_at, first.ended_at) == (
            "2026-10-01T09:00:01Z",
            "2026-10-01T09:00:09Z",
        )
        days = memory.user.connection.execute(
            "SELECT DISTINCT substr(created_at, 1, 10) FROM nodes"
            " WHERE type IN ('observation', 'summary') ORDER BY 1"
        ).fetchall()
        assert days == [("2026-10-01",), ("2026-10-02",), ("2026-10-03",)]

        assert node_vectors.fill(memory) == 0

        # Importing again changes nothing, and continues a session that went on.
        before = content(memory)
        done = run(memory, claude)
        assert (done.sessions, done.unchanged, done.size) == ((), 3, 0)
        assert content(memory) == before
        fix(every[1], "refund")
        (more,) = run(memory, claude).sessions
        assert (more.session, more.is_known, more.steps) == (every[1].session, True, 6)


def test_an_interrupted_import_loses_and_duplicates_nothing(
    client: Client, claude: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_past_sessions(claude, str(client.folder))
    with client.memory() as memory:
        run(memory, claude)
        expected = content(memory)
    other = Client(surroundings / "other", client.folder)
    for point in (
        (pipeline, "take"),
        (session_writer, "synthesise"),
        (learnings, "learn"),
        (session_state, "set_transcript_position"),
    ):
        for turn in range(2):
            _interrupt(monkeypatch, other, claude, point, turn)
    with other.memory() as memory:
        run(memory, claude)
        assert content(memory) == expected


def _interrupt(
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    claude: Path,
    point: tuple[object, str],
    turn: int,
) -> None:
    module, name = point
    real = getattr(module, name)
    left = [turn]

    def ends(*given: object, **told: object) -> object:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(*given, **told)

    with monkeypatch.context() as patch, client.memory() as memory:
        patch.setattr(module, name, ends)
        try:
            run(memory, claude)
        except KeyboardInterrupt:
            pass


def test_sessions_are_selected_by_folder_and_time(client: Client, claude: Path) -> None:
    every = add_past_sessions(claude, str(client.folder))
    elsewhere = Transcript(claude / "projects" / "-q", "elsewhere", "/nowhere/shop")
    elsewhere.prompt("Say hello")
    old = clock.parse_iso("2026-10-01T10:00:00Z") or 0
    os.utime(every[0].path, ns=(old * 1_000_000,) * 2)
    with client.memory() as memory:
        foreseen = run(memory, claude, dry_run=True)
        assert [each.what[:9] for each in foreseen.sessions] == ["The sum o"] * 3 + ["Say hello"]
        assert content(memory) == []

        def sessions(**wanted: Any) -> list[str]:
            found = run(memory, claude, dry_run=True, **wanted).sessions
            return [each.session for each in found]

        named = [each.session for each in every]
        assert sessions(since="2026-10-02") == [*named[1:], "elsewhere"]
        assert sessions(project="app") == sessions(project=str(client.folder)) == named
        assert sessions(project="/nowhere") == sessions(project="shop") == ["elsewhere"]
        assert sessions(paths=(str(every[2].path),)) == [named[2]]
        assert sessions(paths=(str(claude / "projects" / "-q"),)) == ["elsewhere"]


def test_sessions_of_a_removed_folder_keep_their_project(client: Client, claude: Path) -> None:
    (gone,) = add_past_sessions(claude, "/nowhere/shop", 1)
    with client.memory() as memory:
        run(memory, claude)
        assert session_state.get(memory.local, gone.session).project == "shop"
        rows = memory.user.connection.execute(
            "SELECT count(*), sum(EXISTS (SELECT 1 FROM tags WHERE node_id = id"
            " AND tag = 'project:shop')) FROM nodes WHERE type IN ('observation', 'summary')"
        ).fetchone()
        assert rows[0] == rows[1] > 0


def test_excluded_projects_and_running_sessions_are_left_out(
    client: Client, claude: Path, surroundings: Path
) -> None:
    every = add_past_sessions(claude, str(client.folder))
    other = Transcript(claude / "projects" / "-q", "elsewhere", "/nowhere/shop")
    other.prompt("Say hello")
    config = surroundings / ".ctx" / "config.toml"
    config.parent.mkdir()
    config.write_text('[capture]\nignore_projects = ["/nowhere"]\n')
    client.process = str(os.getpid())
    client.talk(every[0].session).start()
    with client.memory() as memory:
        done = run(memory, claude)
        assert [each.session for each in done.sessions] == [each.session for each in every[1:]]
        assert done.left_out == 2
        events = memory.local.execute("SELECT DISTINCT session FROM events").fetchall()
        assert ("elsewhere",) not in events


def test_a_damaged_transcript_is_reported_and_the_others_are_imported(
    client: Client, claude: Path
) -> None:
    every = add_past_sessions(claude, str(client.folder))
    with every[0].path.open("ab") as file:
        file.write(b'\xff\xfe\n{"type":"user","message":{"content":\n')
    (claude / "projects" / "-p" / "nobody.jsonl").write_bytes(os.urandom(2_000))
    (claude / "projects" / "-p" / "gone.jsonl").symlink_to("/nowhere")
    with client.memory() as memory:
        done = run(memory, claude)
        assert len(done.sessions) == 3
        assert done.skipped == ((str(every[0].path), "A line of the transcript is damaged."),)
        assert run(memory, claude).sessions == ()


def test_clock_changes_and_duplicate_lines_are_handled(client: Client, claude: Path) -> None:
    transcript = Transcript(claude / "projects" / "-p", "it", str(client.folder))
    fix(transcript)
    transcript.now_ms -= 3_600_000
    transcript.say("It is an hour earlier now.")
    whole = transcript.path.read_text()
    transcript.path.write_text(whole + whole)
    with client.memory() as memory:
        (done,) = run(memory, claude).sessions
        assert done.steps == 7
        assert session_state.get(memory.local, "it").started_at == "2026-11-02T08:00:10Z"


def test_the_status_of_a_session_is_read_from_its_transcript(client: Client, claude: Path) -> None:
    folder = claude / "projects" / "-p"
    ends = {}
    for name in ("completed", "failed", "aborted", "interrupted"):
        ends[name] = Transcript(folder, name, str(client.folder))
        ends[name].prompt("Do it")
    ends["completed"].say("Done.")
    error = {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529"}]}
    ends["failed"].entry("assistant", message=error, isApiErrorMessage=True)
    ends["aborted"].prompt("[Request interrupted by user]")
    ends["interrupted"].bash("make", "built")
    with client.memory() as memory:
        run(memory, claude)
        found = session_state.all_of(memory.local)
        assert {each.id: each.status for each in found} == {name: name for name in ends}


def test_messages_copied_by_a_fork_belong_to_the_original(client: Client, claude: Path) -> None:
    """As a client writes them: the fork can come first, and its file can be older."""
    folder = claude / "projects" / "-p"
    folder.mkdir(parents=True)
    names = {"fork": "25507b15-f354-4db9-b8ea-b970a7f4a9c9"}
    names["resume_compact"] = "63898790-2d3e-472c-b4c5-4f9bc8b2f8ef"
    for sample, session in names.items():
        copy = folder / f"{session}.jsonl"
        copy.write_bytes((SAMPLES.parent / "transcripts" / f"{sample}.jsonl").read_bytes())
        os.utime(copy, (1_700_000_000, 1_700_000_000))
    with client.memory() as memory:
        done = run(memory, claude)
        asked = {each.session: each.what for each in done.sessions}
    assert asked == {names["resume_compact"]: "first prompt", names["fork"]: "fork prompt"}


def test_files_without_their_session_and_sessions_with_capture_off_are_left_out(
    client: Client, claude: Path
) -> None:
    first, second, third = add_past_sessions(claude, str(client.folder))
    first.path.rename(first.path.with_name("99999999-aaaa-4000-8000-000000000001.jsonl"))
    second.path.write_bytes(b"")
    began_ms = clock.parse_iso("2026-10-03T09:00:00Z")
    assert began_ms
    capture_off.note_off(client.home, third.session, began_ms)
    with client.memory() as memory:
        for dry_run in (True, False):
            done = run(memory, claude, dry_run=dry_run)
            assert (done.sessions, done.unchanged, done.left_out) == ((), 0, 3)


def test_two_concurrent_imports_import_everything_once(
    client: Client, claude: Path, surroundings: Path
) -> None:
    add_past_sessions(claude, str(client.folder))
    with client.memory() as memory:
        run(memory, claude)
        expected = content(memory)
    other = Client(surroundings / "other", client.folder)
    failed: list[BaseException] = []

    def take() -> None:
        try:
            with other.memory() as memory:
                run(memory, claude)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    with other.memory():
        pass
    both = [threading.Thread(target=take) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    with other.memory() as memory:
        assert (failed, content(memory)) == ([], expected)


def test_an_import_waits_for_a_running_round(
    client: Client, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_past_sessions(claude, str(client.folder), 1)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with worker_round.hold_sessions(client.home) as is_alone:
            assert is_alone
            held.set()
            let_go.wait(300)

    monkeypatch.setattr(clock, "sleep", lambda _: let_go.set())
    with client.memory() as memory:
        other = threading.Thread(target=hold)
        other.start()
        held.wait(300)
        try:
            assert len(run(memory, claude).sessions) == 1
        finally:
            let_go.set()
            other.join()
        assert let_go.is_set()


def test_learnings_are_found_while_no_round_runs(
    client: Client, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_past_sessions(claude, str(client.folder), 1)
    with client.memory() as memory:
        run(memory, claude)
        monkeypatch.setattr(clock, "patience", 0)
        with worker_round.hold_sessions(client.home), pytest.raises(LockConflict):
            run(memory, claude)


def test_the_command_prints_a_summary(ctx: Ctx, client: Client, claude: Path) -> None:
    add_past_sessions(claude, str(client.folder))
    words = ("import", "--from", "claude-code", "--transcripts")
    would = ctx(*words, "--dry-run")
    assert would.out.startswith("Would import 3 sessions:\n")
    assert not os.path.exists(f"{client.home}/store.db")
    done = ctx(*words)
    assert done.out.startswith("Imported 3 sessions:\n")
    assert "18 steps" in done.out
    again = ctx(*words, "--format", "json").json
    assert (again["sessions"], again["unchanged"]) == ([], 3)
    assert ctx(*words, "--merge").code == 2
    assert ctx("import", "--from", "claude-mem", "--transcripts").code == 2
    assert ctx(*words, "nothing-there").code == 2
    # What a pattern of the shell finds beside sessions is left out.
    (other := claude / "projects" / "-p" / "notes.txt").touch()
    paths = map(str, other.parent.iterdir())
    assert ctx(*words, "--format", "json", *paths).json["unchanged"] == 3
    assert ctx(*words, str(other)).code == 2
    listed = ctx("sessions", "list", "--format", "json").json["sessions"]
    assert len(listed) == 3
    # A deleted session is not imported again.
    assert ctx("sessions", "delete", listed[0]["id"], "--yes").code == 0
    again = ctx(*words, "--format", "json").json
    assert (again["sessions"], again["unchanged"], again["left_out"]) == ([], 2, 1)
