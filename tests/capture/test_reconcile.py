"""A transcript adds the events that no hook reported, each once."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.agents.claude_code import payloads
from ctx.agents.claude_code.adapter import ClaudeTranscripts
from ctx.capture import capture_off, capture_pauses, event_store, pipeline, reconcile, session_state
from ctx.hook_files import live, spool
from ctx.hosts.events import Event, Heading
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests import effort
from tests.capture.conversations import Client
from tests.capture.transcripts import Transcript, fix

SESSION = "0c1fb4a8-52d1-4e0c-9a55-6cf7d9c12f01"


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def transcript(client: Client) -> Transcript:
    return Transcript(client.transcripts, SESSION, str(client.folder))


def hook_event(event: Event, number: int) -> Event:
    """The same event as a hook reports it, a moment before the transcript has it."""
    at_ms = spool.made_ms(event.id) - 40
    said = {key: value for key, value in event.payload.items() if key != "gitBranch"}
    heading = Heading(f"{at_ms:013d}-{number + 1}-0000abcd", *event[1:7])
    return payloads.restore(heading._replace(at=clock.iso(at_ms)), said)


def report(memory: Memory, *found: Event) -> None:
    with transaction(memory.local):
        for each in found:
            event_store.keep(memory.local, each)


def started(client: Client, transcript: Transcript, at_ms: int) -> Event:
    said = {
        "session_id": SESSION,
        "cwd": str(client.folder),
        "transcript_path": str(transcript.path),
        "source": "startup",
    }
    event_id = f"{at_ms:013d}-1-00000000"
    name, at = "SessionStart", clock.iso(at_ms)
    heading = Heading(event_id, SESSION, name, at, str(client.folder), None, None)
    return payloads.restore(heading, said)


def take(client: Client, memory: Memory) -> None:
    pipeline.take(memory, client.home)


def stored_events(memory: Memory) -> list[tuple[str, str | None]]:
    rows = memory.local.execute(
        "SELECT event, tool FROM events WHERE event <> 'SessionStart' ORDER BY id"
    )
    return [(name, tool) for name, tool in rows]


ALL = [
    ("UserPromptSubmit", None),
    ("AssistantMessage", None),
    ("PostToolUseFailure", "Bash"),
    ("PostToolUse", "Edit"),
    ("PostToolUse", "Bash"),
    ("AssistantMessage", None),
]


def test_events_are_complete_if_hooks_did_not_run(client: Client, transcript: Transcript) -> None:
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        fix(transcript)
        assert reconcile.reconcile(memory, client.home, SESSION) == len(ALL)
        take(client, memory)
        assert reconcile.reconcile(memory, client.home, SESSION) == 0
        assert stored_events(memory) == ALL
        session = session_state.get(memory.local, SESSION)
        assert session.transcript_read == transcript.path.stat().st_size
        assert session.request.startswith("The sum of an order is wrong")


@settings(max_examples=effort.times(15), deadline=None)
@given(
    reported=st.lists(st.sampled_from(range(len(ALL))), unique=True),
    late=st.booleans(),
    cut=st.integers(0, 4_000),
)
def test_each_event_is_stored_once_whichever_of_them_hooks_reported(
    tmp_path_factory: pytest.TempPathFactory, reported: list[int], late: bool, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("shop")
    client = Client(folder / ".ctx", folder)
    transcript = Transcript(folder, SESSION, str(folder))
    began = transcript.now_ms
    fix(transcript)
    whole = transcript.path.read_bytes()
    every = ClaudeTranscripts().events(str(transcript.path), 0).events
    hooks = [
        hook_event(every[number], number)
        for number in reported
        # Only the transcript tells what was said.
        if every[number].name != "AssistantMessage"
    ]
    with client.memory() as memory:
        report(memory, started(client, transcript, began))
        take(client, memory)
        if not late:
            report(memory, *hooks)
            take(client, memory)
        transcript.path.write_bytes(whole[:cut])
        reconcile.reconcile(memory, client.home, SESSION)
        take(client, memory)
        transcript.path.write_bytes(whole)
        reconcile.reconcile(memory, client.home, SESSION)
        if late:
            # A prompt of which a hook knows is in the spool before it is in the transcript.
            report(memory, *(each for each in hooks if each.tool))
        take(client, memory)
        assert reconcile.reconcile(memory, client.home, SESSION) == 0
        assert sorted(stored_events(memory), key=str) == sorted(ALL, key=str)


def test_a_prompt_that_is_still_in_the_spool_is_stored_once(
    client: Client, transcript: Transcript
) -> None:
    transcript.now_ms = clock.now_ms() - 5_000
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.say("I am ready.")
        conversation = client.talk(SESSION)
        conversation.submit("Do it now")
        transcript.prompt("Do it now")
        transcript.say("Done.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 1
    client.apply()
    with client.memory() as memory:
        assert reconcile.reconcile(memory, client.home, SESSION) == 1
        assert [name for name, _ in stored_events(memory)].count("UserPromptSubmit") == 1


def test_a_repeated_prompt_is_stored_twice(client: Client, transcript: Transcript) -> None:
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.prompt("Go on.")
        transcript.say("I did.")
        transcript.prompt("Go on.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 3


def test_messages_during_a_pause_are_not_stored(client: Client, transcript: Transcript) -> None:
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.say("Before.")
        capture_pauses.pause(client.home, [capture_pauses.EVERYWHERE], transcript.now_ms + 500, 0)
        transcript.say("Meanwhile.")
        capture_pauses.resume(client.home, None, transcript.now_ms + 500)
        transcript.say("Behind.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 2
        take(client, memory)
        bodies = memory.local.execute("SELECT body FROM events").fetchall()
        assert "Meanwhile" not in str(bodies)


def test_messages_while_hooks_were_off_are_not_stored(
    client: Client, transcript: Transcript
) -> None:
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.say("Before.")
        transcript.now_ms += 60_000
        # A hook says so each time it is told to be off.
        for _ in range(2):
            capture_off.note_off(client.home, SESSION, transcript.now_ms + 500)
            transcript.say("Meanwhile.")
        assert capture_off.note_on(client.home, SESSION, transcript.now_ms + 500)
        transcript.say("Behind.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 2
        bodies = memory.local.execute("SELECT body FROM events").fetchall()
        assert "Meanwhile" not in str(bodies)


def test_messages_while_capture_was_disabled_are_not_stored(
    client: Client, transcript: Transcript
) -> None:
    config = Path(client.home, "config.toml")
    with client.memory() as memory:
        config.write_text("[capture]\nenabled = false\n")
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.prompt("Do it in secret.")
        transcript.say("Meanwhile.")
        config.unlink()
        transcript.now_ms += 60_000
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.say("Behind.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 1
        take(client, memory)
        bodies = str(memory.local.execute("SELECT body FROM events").fetchall())
        assert ("Behind" in bodies, "Meanwhile" in bodies, "secret" in bodies) == (
            True,
            False,
            False,
        )


def test_transcripts_of_subagents_are_read_with_their_session(
    client: Client, transcript: Transcript
) -> None:
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        transcript.prompt("Let somebody look.")
        agent = transcript.subagent("a1b2")
        agent.bash("ls", "src")
        assert reconcile.reconcile(memory, client.home, SESSION) == 2
        assert reconcile.reconcile(memory, client.home, SESSION) == 0
        agent.say("It is in src.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 1


def test_a_fork_does_not_repeat_the_events_of_its_origin(
    client: Client, transcript: Transcript
) -> None:
    fix(transcript)
    live.write(client.home, "fork.before", SESSION)
    fork = Transcript(client.transcripts, "fork", str(client.folder))
    copied = transcript.path.read_text().replace(SESSION, "fork")
    fork.path.write_text(copied)
    fork.now_ms = transcript.now_ms + 60_000
    began = started(client, fork, fork.now_ms)
    with client.memory() as memory:
        report(
            memory, began._replace(session="fork", payload={**began.payload, "session_id": "fork"})
        )
        take(client, memory)
        fork.say("From here on it is mine.")
        assert reconcile.reconcile(memory, client.home, "fork") == 1


def test_a_rewritten_transcript_is_read_from_the_start(
    client: Client, transcript: Transcript
) -> None:
    with client.memory() as memory:
        report(memory, started(client, transcript, transcript.now_ms))
        take(client, memory)
        fix(transcript)
        reconcile.reconcile(memory, client.home, SESSION)
        take(client, memory)
        transcript.path.write_text("")
        transcript.say("New.")
        assert reconcile.reconcile(memory, client.home, SESSION) == 1
        session = session_state.get(memory.local, SESSION)
        assert session.transcript_read == transcript.path.stat().st_size


@pytest.mark.parametrize("path", ["", "/nowhere/it.jsonl", "/"])
def test_without_a_transcript_nothing_is_added(
    client: Client, transcript: Transcript, path: str
) -> None:
    event = started(client, transcript, transcript.now_ms)
    said: dict[str, Any] = {**event.payload, "transcript_path": path}
    with client.memory() as memory:
        report(memory, payloads.restore(Heading(*event[:7]), said))
        take(client, memory)
        assert reconcile.reconcile(memory, client.home, SESSION) == 0
        assert reconcile.reconcile(memory, client.home, "nobody") == 0
