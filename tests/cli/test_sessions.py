"""`ctx sessions`: what agents have worked on, and how to be rid of it."""

import json
from pathlib import Path

import pytest

from ctx import clock
from ctx.capture import pipeline, reconcile, session_state
from ctx.context import hook_queries
from ctx.sqlite.connection import transaction
from ctx.synthesis import session_writer
from tests.capture.conversations import Client
from tests.capture.transcripts import Transcript, fix
from tests.conftest import Ctx
from tests.llm import model_server
from tests.llm.model_server import Says, ServerRequest

SESSION = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
OTHER = "9a1c0b7e-11d2-4c44-8f0e-2b7c6d5e4f3a"


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    return Client(surroundings / ".ctx", repo)


def take_in(
    client: Client, transcript: Transcript, status: session_state.Status = "completed"
) -> None:
    with client.memory() as memory:
        path = str(transcript.path)
        for _ in reconcile.ingest_transcript(memory, client.home, transcript.session, path):
            pipeline.take(memory, client.home)
        with transaction(memory.local):
            session_state.end(memory.local, transcript.session, status)


def remember(client: Client) -> str:
    """What synthesis would make of the session, and something that two sessions have shown."""
    title = "`total` gave 0: it returned a constant"
    metadata = {"title": title, "files": ["src/total.py"], "session": SESSION}
    told = {
        "title": "The sum of an order",
        "request": "Fix the sum of an order",
        "completed": ["`total` adds up the prices"],
        "files_edited": ["src/total.py"],
    }
    ours, theirs = f"session:{SESSION}", f"session:{OTHER}"
    with client.memory() as memory, memory.transaction("synthesise") as change:
        for kind, text, about, tags in (
            ("observation", f"{title}\n\nIt adds up now.", metadata, ["kind:bugfix", ours]),
            ("observation", "Tests run with pytest", metadata, ["kind:discovery", ours, theirs]),
            ("fact", "Prices are in cents", {}, [ours]),
            ("summary", "**Request:** Fix the sum", told, [ours]),
        ):
            node = change.add_node(kind, text, metadata=about)
            for tag in tags:
                change.tag(node, tag)
        change.graph.connection.execute(
            "UPDATE sessions SET summary = ? WHERE id = ?", (node, SESSION)
        )
    return change.id


@pytest.fixture
def worked(client: Client) -> Client:
    transcript = Transcript(client.transcripts, SESSION, str(client.folder))
    fix(transcript)
    take_in(client, transcript)
    return client


def test_list(ctx: Ctx, client: Client) -> None:
    ran = ctx("sessions", "list")
    assert ran.out.startswith("No sessions in app.\nTo import past sessions: `ctx import --from ")
    nothing: dict[str, object] = {"sessions": [], "project": None, "more": 0}
    assert ctx("sessions", "list", "--all", "--format", "json").json == nothing
    assert ctx("sessions", "rebuild").out == "No sessions to rebuild.\n"
    ours = Transcript(client.transcripts, SESSION, str(client.folder))
    fix(ours)
    ours.titled("ai-title", aiTitle="Sum of an order", sessionId=SESSION)
    take_in(client, ours)
    other = Transcript(client.transcripts, OTHER, "/nowhere/shop", began="2026-11-03T09:00:00Z")
    other.prompt("Say hello")
    take_in(client, other, "interrupted")
    line = "  5dd65eaa-e3b  app  2026-11-02 09:00  completed"
    assert ctx("sessions", "list").out.startswith(line)
    assert len(ctx("sessions", "list", "--all").out.splitlines()) == 2
    assert "  … and 1 more (--limit)\n" in ctx("sessions", "list", "--all", "--limit", "1").out
    assert ctx("sessions", "list", "--all", "--status", "failed").out.startswith("No session")
    assert ctx("sessions", "list", "--since", "2026-11-03").out.startswith("No session")
    listed = ctx("sessions", "list", "--format", "json").json
    assert listed["project"] == "app"
    (found,) = listed["sessions"]
    assert found.pop("started_at") <= found.pop("last_at")
    assert found == {
        "id": SESSION,
        "project": "app",
        "branch": "main",
        "status": "completed",
        "steps": 7,
        "what": "Sum of an order",
        "lead": None,
        "teammate": "",
        "host": "claude-code",
    }
    assert ctx("sessions", "show", SESSION).out.splitlines()[1] == "Sum of an order"
    assert "titled: Sum of an order" in ctx("sessions", "replay", SESSION).out
    for word in ("show", "replay", "delete"):
        assert "too short" in ctx("sessions", word, "5dd").err
        assert "ctx sessions list --all" in ctx("sessions", word, "nobody").err


def a_team(client: Client) -> tuple[Transcript, Transcript]:
    lead = Transcript(client.transcripts, SESSION, str(client.folder))
    fix(lead)
    prompt = {"description": "Test it", "prompt": "Run all tests.", "name": "tester"}
    lead.tool("Agent", prompt, {"status": "teammate_spawned", "team_name": "checkout"})
    lead.say("The tester has tested it.")
    mate = Transcript(client.transcripts, OTHER, str(client.folder), began="2026-11-02T10:00:00Z")
    mate.in_team("checkout", "tester")
    fix(mate, "tax")
    mate.say("All 41 tests pass, two of them are new.")
    return lead, mate


@pytest.mark.parametrize("is_lead_first", [True, False])
def test_a_teammate_is_listed_below_its_lead(
    ctx: Ctx, client: Client, *, is_lead_first: bool
) -> None:
    team = a_team(client)
    for each in team if is_lead_first else reversed(team):
        take_in(client, each)
        with client.memory() as memory:
            session_writer.synthesise(memory, each.session, is_over=True)
    above, below = ctx("sessions", "list").out.splitlines()
    assert above.startswith("  5dd65eaa-e3b")
    assert below.startswith("  9a1c0b7e-11d")
    assert "↳ tester: " in below
    listed = ctx("sessions", "list", "--format", "json").json["sessions"]
    assert [(each["lead"], each["teammate"]) for each in listed] == [
        (None, ""),
        (SESSION, "tester"),
    ]
    shown = ctx("sessions", "show", SESSION)
    assert "Teammates" in shown.out
    assert "All 41 tests pass, two of them are new." in shown.out
    assert f"works for {SESSION}" in ctx("sessions", "show", OTHER).out
    # A new session gets one line for both.
    with client.memory() as memory:
        rows = hook_queries.sessions(memory.local, "app")
    assert [row[0] for row in rows] == [SESSION]
    # Without its lead it is a session of its own.
    ctx("sessions", "delete", SESSION, "--yes")
    (alone,) = ctx("sessions", "list", "--format", "json").json["sessions"]
    assert (alone["id"], alone["lead"]) == (OTHER, None)


def test_show(ctx: Ctx, worked: Client) -> None:
    request = "Request\n  The sum of an order is wrong: total gives 0. Please fix it.\n"
    assert request in ctx("sessions", "show", "5dd6").out
    remember(worked)
    out = ctx("sessions", "show", "5dd6").out
    for line in (
        f"Session {SESSION}",
        "completed, 2026-11-02 09:00 – 2026-11-02 09:00 UTC",
        "6 steps (2 command, 1 prompt, 2 say, 1 write)",
        "  Fix the sum of an order",
        "  `total` adds up the prices",
        "src/total.py  +1 -1",
        "`total` gave 0: it returned a constant",
    ):
        assert line in out
    found = ctx("sessions", "show", SESSION, "--format", "json").json
    assert found["summary"] == {
        "request": "Fix the sum of an order",
        "completed": ["`total` adds up the prices"],
        "files_edited": ["src/total.py"],
    }
    assert [each["kind"] for each in found["observations"]] == ["bugfix", "discovery"]
    assert found["events"] == {"step": 6, "dropped": 0, "skipped": 0, "new": 0}
    assert found["forgotten"] is False


def test_replay(ctx: Ctx, worked: Client) -> None:
    lines = ctx("sessions", "replay", "5dd6").out.splitlines()
    assert lines[0] == f"Session {SESSION}, completed, began 2026-11-02 09:00 UTC"
    assert [line[:9] for line in lines[2:4]] == ["09:00:02 ", "09:00:04 "]
    assert [line[10:] for line in lines[3:8]] == [
        "ran pytest tests/test_total.py — failed (exit 1)",
        "tests/test_total.py:4: test_total assert 0 == 6",
        "wrote src/total.py (+1 -1)",
        "modified total",
        "ran pytest tests/test_total.py — passed",
    ]
    assert [line.split()[1] for line in (lines[1], lines[2], lines[8])] == [
        "asked:",
        "said:",
        "said:",
    ]
    assert "+    return sum(prices)" in ctx("sessions", "replay", "5dd6", "--full").out
    assert len(ctx("sessions", "replay", "5dd6", "--format", "json").json["steps"]) == 6
    with worked.memory() as memory, transaction(memory.local):
        memory.local.execute("DELETE FROM events WHERE at < ?", ("2026-11-02T09:00:05Z",))
    for word in ("show", "replay"):
        assert "Its first steps have expired" in ctx("sessions", word, "5dd6").out


def test_delete(ctx: Ctx, worked: Client) -> None:
    remember(worked)
    ctx("add", "--type=fact", "A fact of mine")
    with worked.memory() as memory, transaction(memory.local):
        memory.local.execute(
            "INSERT INTO session_commands VALUES (?, 'make', 'build', 1, 1, 0, '', '', '', '')",
            (SESSION,),
        )
    would = ctx("sessions", "delete", "5dd6", "--dry-run")
    assert would.out.startswith(f"Would delete the session {SESSION}: The sum of an order\n")
    assert ctx("sessions", "delete", "5dd6").code == 1
    assert ctx("sessions", "show", "5dd6").code == 0

    gone = ctx("sessions", "delete", "5dd6", "--yes", "--format", "json").json
    assert (gone["events"], gone["symbol_changes"], gone["kept"]) == (6, 1, 2)
    assert [each["title"] for each in gone["nodes"]] == [
        "`total` gave 0: it returned a constant",
        "The sum of an order",
    ]
    with worked.memory() as memory:
        rows = memory.local.execute("SELECT count(*) FROM session_commands").fetchone()
    assert rows == (0,)
    assert ctx("sessions", "show", "5dd6").code == 1
    left = ctx("list", "--format", "json").json
    assert sorted(node["content"] for node in left["nodes"]) == [
        "A fact of mine",
        "Prices are in cents",
        "Tests run with pytest",
    ]
    assert ctx("undo").out.startswith("Undone: sessions delete at ")
    assert len(ctx("list", "--format", "json").json["nodes"]) == 5


def test_a_deleted_session_does_not_come_back_out_of_its_transcript(
    ctx: Ctx, worked: Client
) -> None:
    ctx("sessions", "delete", "5dd6", "--yes")
    transcript = worked.transcripts / f"{SESSION}.jsonl"
    with worked.memory() as memory:
        pieces = reconcile.ingest_transcript(memory, worked.home, SESSION, str(transcript))
        assert sum(piece.events for piece in pieces) == 0
        again = Transcript(worked.transcripts, SESSION, str(worked.folder))
        again.now_ms = clock.now_ms() + 60_000
        again.say("It goes on.")
        pieces = reconcile.ingest_transcript(memory, worked.home, SESSION, str(transcript))
        assert sum(piece.events for piece in pieces) == 1


# Told by a model


def answered(asked: ServerRequest) -> Says:
    if "Sum it up" in asked.prompt:
        lines: dict[str, list[str]] = {
            name: [] for name in ("investigated", "next_steps", "notes", "completed")
        }
        told = {
            "title": "Sums",
            "request": "Fix the sum",
            **lines,
            "learned": ["It was a constant"],
        }
        return Says(json.dumps(told))
    kept = {"number": 1, "speaker": "user", "kind": "rule", "object": "", "replaces": []}
    return Says(json.dumps({"kept": [kept]}))


def test_synthesise(ctx: Ctx, worked: Client) -> None:
    ran = ctx("sessions", "synthesise", "5dd6")
    assert (ran.code, ran.out) == (1, "")
    assert "E031: No model is configured." in ran.err
    assert not Path(worked.home, "ledger.db").exists()
    assert ctx("config", "set", "llm.backend", "openai").code == 0
    assert ctx("config", "set", "llm.server_url", model_server.closed_url()).code == 0
    ran = ctx("sessions", "synthesise", "5dd6")
    assert (ran.code, ran.out, "E031" in ran.err) == (1, "", True)
    with model_server.serve() as server:
        server.otherwise = answered
        assert ctx("config", "set", "llm.server_url", server.url).code == 0
        plan = ctx("sessions", "synthesise", "5dd6", "--dry-run")
        assert server.questions == []
        most = ctx("sessions", "synthesise", "5dd6", "--dry-run", "--format", "json").json
        first, second = most["asked"]
        assert (first["kind"], first["passages"], second["kind"]) == ("excerpts", 3, "summary")
        assert most["most_tokens"] == first["most_tokens"] + second["most_tokens"] < 25_000
        assert most["most_mended"] == first["most_mended"] + second["most_mended"] < 50_000
        assert plan.out == (
            f"Would ask the model at {server.url}/v1 2 questions:\n"
            f"  3 passages         at most {first['most_tokens']:,} tokens\n"
            f"  the whole session  at most {second['most_tokens']:,} tokens\n"
            f"At most {most['most_tokens']:,} tokens;"
            f" {most['most_mended']:,} if every answer needs a retry.\n"
            "Failed requests that are repeated count again.\n"
            "Tokens left: 200,000 today,"
            f" {most['left_in_session']:,} for this session.\n"
        )
        ran = ctx("sessions", "synthesise", "5dd6")
        assert ran.code == 0, ran.err
        assert ran.out.splitlines()[:4] == [
            f"Asked scripted-1 at {server.url}/v1 2 questions:",
            "  3 passages         1 kept",
            "  the whole session  a summary",
            "3 nodes new, 0 changed, 0 withdrawn.",
        ]
        for asked, planned in zip(server.questions, most["asked"], strict=True):
            assert asked.size + asked.max_tokens <= planned["most_tokens"]
        assert ctx("sessions", "synthesise", "5dd6").out == "Nothing to ask about this session.\n"
        assert ctx("sessions", "synthesise", "5dd6", "--again", "--format", "json").json["new"] == 0
        assert len(server.questions) == 4
    shown = ctx("sessions", "show", "5dd6").out
    assert "It was a constant" in shown
    assert "src/total.py" in shown


def test_rebuild(ctx: Ctx, worked: Client) -> None:
    def observations() -> list[object]:
        shown = ctx("sessions", "show", SESSION, "--format", "json").json
        return list(shown["observations"])

    assert ctx("sessions", "rebuild", "--all", SESSION).code == 2
    assert ctx("sessions", "rebuild", "nobody").code == 1
    planned = ctx("sessions", "rebuild", "--dry-run")
    assert planned.out.startswith(f"  {SESSION[:12]}")
    assert "Would rebuild 1 session: " in planned.out
    assert "0 changed, 0 withdrawn.\n" in planned.out
    assert observations() == []
    made = ctx("sessions", "rebuild", SESSION[:4], "--format", "json").json
    assert [each["id"] for each in made["sessions"]] == [SESSION]
    assert made["new"] == made["sessions"][0]["new"] > 0
    assert (made["dry_run"], made["skipped"], made["unchanged"]) == (False, [], 0)
    assert Path(made["backup"]).exists()
    assert observations()
    assert ctx("sessions", "rebuild").out == "1 session is up to date.\n"
    assert ctx("undo").code == 0
    assert observations() == []


def test_what_cannot_be_deleted_is_named(ctx: Ctx, worked: Client) -> None:
    worked.process = "1"
    worked.talk(SESSION).start()
    ran = ctx("sessions", "delete", "5dd6", "--yes")
    assert (ran.code, "is still active" in ran.err) == (2, True)
    with worked.memory() as memory, transaction(memory.local):
        session_state.end(memory.local, SESSION, "completed")
    for path in (Path(worked.home) / "live").iterdir():
        path.unlink()
    ctx("init")
    with worked.memory() as memory, memory.transaction("synthesise") as change:
        node = change.add_node("observation", "Kafka it is", metadata={"session": SESSION})
        change.tag(node, f"session:{SESSION}")
    ctx("commit", "-m", "Shared")
    ran = ctx("sessions", "delete", "5dd6", "--yes")
    (page,) = (worked.folder / ".ctx" / "narrative" / "log").iterdir()
    assert f".ctx/narrative/log/{page.name} still mentions it; `ctx scrub`" in ran.err
