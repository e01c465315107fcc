"""Whose words a prompt is: what an event shows, and what contradicts it later."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents import known_hosts, stored_events
from ctx.capture import (
    event_store,
    pipeline,
    prompt_authors,
    reconcile,
    session_state,
    steps,
    team_table,
)
from ctx.capture.prompt_authors import EVIDENCE, FEWEST_AT_ONCE
from ctx.hosts.events import Event, Heading
from ctx.hosts.tool_calls import Delegation
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests.capture.conversations import Client

RULE = "Never push to main without asking."
BEGAN_MS = 1_794_800_000_000


@pytest.fixture
def memory(surroundings: Path, repo: Path) -> Iterator[Memory]:
    with Client(surroundings / ".ctx", repo).memory() as memory:
        yield memory


def event(text: str = RULE, session: str = "s1", after_s: float = 0, **more: Any) -> Event:
    made_ms = BEGAN_MS + round(after_s * 1000)
    name = f"{made_ms:013d}-1-{session}"
    at = clock.iso(made_ms)
    fields = {"host": "copilot", "text": text, "speaker": "user", **more}
    return Event(name, session, "UserPromptSubmit", at, "/tmp", None, None, {}, **fields)


def capture(memory: Memory, *events: Event) -> None:
    """As an adapter stores them: the payload has what the fields say."""
    with transaction(memory.local):
        for each in events:
            content = stored_events.EventContent(
                each.text,
                each.speaker,
                each.agent,
                call=each.call,
                caller=each.caller,
                version=each.version,
            )
            made = stored_events.event(each.host, Heading._make(each[:7]), content)
            assert event_store.keep(memory.local, made)
    pipeline.take(memory, memory.environment.user_store.home)


def delegation(text: str, session: str, after_s: float) -> Event:
    call = Delegation("Look", text)
    made = event(None, session, after_s, speaker="", call=call)  # type: ignore[arg-type]
    return made._replace(name="PostToolUse", tool="task", tool_use=f"call-{session}")


def authors(memory: Memory, session: str = "s1") -> list[str]:
    found = prompt_authors.steps_of(memory.local, session)
    return [(step.agent and "agent") or step.author for step in found if step.kind == "prompt"]


@pytest.mark.parametrize(
    ("host", "more", "author"),
    [
        ("claude-code", {}, ""),
        ("claude-code", {"version": "2.1.325", "caller": "cli"}, "person"),
        # A person calls `claude -p` and `codex exec` too.
        ("claude-code", {"version": "2.1.325", "caller": "sdk-cli"}, "person"),
        ("claude-code", {"version": "2.1.325", "caller": "sdk-py"}, "program"),
        ("claude-code", {"version": "1.0.10", "caller": "cli"}, ""),
        ("codex", {"version": "0.166.0", "caller": "codex_exec"}, "person"),
        ("codex", {"version": "0.166.0", "caller": "codex_sdk_ts"}, "program"),
        ("codex", {"version": "0.120.0", "caller": "codex_cli_rs"}, ""),
        ("codex", {"version": "0.166.0", "agent": "a1"}, "subagent"),
        ("copilot", {"version": "1.0.102-1"}, "person"),
        ("copilot", {"version": "one.two"}, ""),
        ("qwen", {"version": "0.24.4"}, "person"),
        ("another", {"version": "9.9"}, ""),
    ],
)
def test_the_author_that_an_event_shows(host: str, more: Any, author: str) -> None:
    assert prompt_authors.of_event(event(host=host, **more)) == author


def test_every_host_with_hooks_has_evidence() -> None:
    assert EVIDENCE.keys() == set(known_hosts.NAMES)


def test_a_prompt_counts_unless_something_contradicts_it(memory: Memory) -> None:
    capture(memory, event())
    assert authors(memory) == [""]
    assert prompt_authors.steps_of(memory.local, "s1")[0].is_by_person


def test_the_same_prompt_in_three_sessions_is_a_template(memory: Memory) -> None:
    capture(memory, event(session="s1"), event(session="s2", after_s=10_000))
    capture(memory, event(session="s1", after_s=20_000))
    assert authors(memory, "s2") == [""]
    capture(memory, event(session="s3", after_s=30_000, version="1.0.102"))
    assert [authors(memory, name) for name in ("s1", "s2", "s3")] == [
        ["program", "program"],
        ["program"],
        ["program"],
    ]


def test_people_answer_with_the_same_few_words(memory: Memory) -> None:
    for number in range(4):
        capture(memory, event("Yes, go ahead.", f"s{number}", number * 10_000))
    assert authors(memory, "s3") == [""]


def test_a_program_begins_more_sessions_than_a_person_can(memory: Memory) -> None:
    for number in range(FEWEST_AT_ONCE - 1):
        capture(memory, event(f"Translate page {number}.", f"s{number}", number * 10))
    assert authors(memory, "s3") == [""]
    capture(memory, event("Translate the last page.", "last", 200))
    assert authors(memory, "s3") == ["program"]
    # Hours later, a person works there.
    capture(memory, event("Go on.", "later", 20_000))
    assert authors(memory, "later") == [""]


def test_the_first_prompt_of_a_subagent_is_in_the_call_that_started_it(memory: Memory) -> None:
    """An older host reports a subagent as a session of its own."""
    capture(memory, event("Count.", "main"), event(session="sub", after_s=5))
    assert authors(memory, "sub") == [""]
    capture(memory, delegation(RULE, "main", 60))
    assert authors(memory, "sub") == ["agent"]
    assert authors(memory, "main") == [""]


def test_a_person_may_type_what_a_subagent_is_told(memory: Memory) -> None:
    """The host tells in this version that no subagent was given the prompt."""
    capture(memory, event(version="1.0.102"), delegation(RULE, "s1", 60))
    capture(memory, event("Thanks.", after_s=90, version="1.0.102"))
    capture(memory, event(session="s2", after_s=120, version="1.0.102"))
    assert authors(memory) == ["person", "person"]
    assert authors(memory, "s2") == ["person"]


def test_a_transcript_shows_the_author_later(memory: Memory) -> None:
    capture(memory, event(), event("Go on.", after_s=60))
    with transaction(memory.local):
        later = event(after_s=1, caller="sdk-py", host="claude-code")
        assert prompt_authors.learn(memory.local, later)
        assert not prompt_authors.learn(memory.local, later)
    assert authors(memory) == ["program", ""]


def test_a_subagent_does_not_take_the_words_of_a_person(memory: Memory) -> None:
    """The person and the model wrote the same: the main thread has it too."""
    capture(memory, event(), event(after_s=30))
    with transaction(memory.local):
        prompt_authors.learn(memory.local, event(version="1.0.102"))
        prompt_authors.learn(memory.local, event(after_s=29, agent="a1"))
        prompt_authors.learn(memory.local, event(after_s=29, agent="a1"))
    assert authors(memory) == ["person", "agent"]


def test_a_session_that_is_a_subagent_is_over(memory: Memory) -> None:
    capture(memory, event("Count.", "main"), event(session="sub", after_s=5))
    with transaction(memory.local):
        assert prompt_authors.learn_session(memory.local, "sub", "main")
        assert not prompt_authors.learn_session(memory.local, "sub", "main")
        assert not prompt_authors.learn_session(memory.local, "main", "main")
    assert authors(memory, "sub") == ["agent"]
    found = session_state.find(memory.local, "sub")
    assert found is not None
    assert found.status == "completed"
    (mate,) = team_table.of_session(memory.local, "sub")
    assert mate.lead == "main"


def test_a_subagent_of_a_subagent_belongs_to_the_session(memory: Memory) -> None:
    """Its host names only the subagent that started it."""
    capture(memory, event("Count.", "main"))
    capture(memory, event("Count A.", "main", 5, agent="a1"))
    capture(memory, event(RULE, "a1", 6, agent="a2"), event(RULE, "a2", 7, agent="a3"))
    assert session_state.find(memory.local, "a1") is None
    found = steps.of_session(memory.local, "main")
    assert [(step.text, step.agent) for step in found] == [
        ("Count.", ""),
        ("Count A.", "a1"),
        (RULE, "a2"),
        (RULE, "a3"),
    ]


def test_a_transcript_that_is_read_before_the_summary_decides(
    memory: Memory, tmp_path: Path
) -> None:
    """A hook reported the prompt before the client wrote its transcript."""
    session = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
    path = tmp_path / f"{session}.jsonl"
    capture(memory, event(session=session))
    with transaction(memory.local):
        memory.local.execute(
            "UPDATE sessions SET client = 'claude-code', transcript = ?", (str(path),)
        )
    home = memory.environment.user_store.home
    assert reconcile.reconcile(memory, home, session) == 0
    assert authors(memory, session) == [""]
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": session,
        "timestamp": clock.iso(BEGAN_MS + 1_000),
        "cwd": "/tmp",
        "version": "2.1.325",
        "entrypoint": "sdk-ts",
        "message": {"role": "user", "content": RULE},
    }
    path.write_text(json.dumps(line) + "\n")
    # The prompt is known already.
    assert reconcile.reconcile(memory, home, session) == 0
    assert authors(memory, session) == ["program"]


def test_a_session_with_a_transcript_of_its_own_is_no_subagent(
    memory: Memory, tmp_path: Path
) -> None:
    """Whatever another session's transcript says."""
    own = tmp_path / "session-state" / "victim" / "events.jsonl"
    capture(memory, event(session="victim"), event("Count.", "main", 5))
    with transaction(memory.local):
        memory.local.execute("UPDATE sessions SET transcript = ? WHERE id = 'victim'", (str(own),))
        assert not reconcile.learn_subagent(memory, "victim", "main")
        memory.local.execute("UPDATE sessions SET transcript = '' WHERE id = 'victim'")
        assert reconcile.learn_subagent(memory, "victim", "main")
