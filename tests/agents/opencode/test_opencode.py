"""What our plugin in OpenCode reports is captured once, from it or from OpenCode's database."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx.agents.opencode.adapter import OpenCode
from ctx.agents.opencode.tools import call_of
from ctx.agents.opencode.transcripts import typed_text
from ctx.agents.stored_events import ToolReport
from ctx.capture import prompt_authors, steps
from ctx.errors import ContentRefused
from ctx.hosts.events import Heading
from ctx.hosts.tool_calls import (
    CommandCall,
    Delegation,
    FileContents,
    FileRead,
    FileWrite,
    ForeignTool,
    IgnoredTool,
    Outcome,
    OwnTool,
    Search,
    Skill,
    TodoList,
    UnknownTool,
)
from ctx.operations import backfill
from ctx.operations.backfill import Options
from ctx.workspace import open_memory
from tests.agents.host_sessions import REMEMBER, HostSession, environment_in
from tests.agents.opencode.opencode_session import SESSION, OpenCodeSession

TRANSCRIPTS = OpenCode.transcripts


@pytest.fixture
def client(surroundings: Path, repo: Path) -> OpenCodeSession:
    return OpenCodeSession(surroundings / ".local" / "share" / "opencode", repo)


@pytest.fixture
def host(client: OpenCodeSession, surroundings: Path, repo: Path) -> Iterator[HostSession]:
    assert client.database.exists()
    with open_memory(environment_in(surroundings, repo), writing=True) as memory:
        yield HostSession("opencode", SESSION, memory)


def play(client: OpenCodeSession, host: HostSession, *, with_plugin: bool) -> None:
    """A turn with a prompt, two writes, a failing command and a file that is missing."""

    def report(word: str, payload: dict[str, Any]) -> None:
        if with_plugin:
            host.hook(word, payload)

    report("session-start", client.payload(source="startup"))
    report("prompt-submit", client.payload(prompt='"Make it build."'))
    client.prompt('"Make it build."', "<!-- ctx: 1 nodes, 9 tokens -->\nSecret\n<!-- ctx:end -->")
    first = client.say("I look.")
    path = f"{client.project}/a.py"
    write = {"filePath": path, "content": "a = 1\n"}
    report("post-tool-use", client.call("write", write, "Wrote file.", exists=False))
    edit = {"filePath": path, "oldString": "a = 1", "newString": "a = 2"}
    report("post-tool-use", client.call("edit", edit, "Edit applied."))
    report("post-tool-use", client.call("bash", {"command": "make"}, "oops\n", exit=3))
    missing = client.call("read", {"filePath": f"{client.project}/b.py"}, error="File not found")
    report("post-tool-use-failure", missing)
    last = client.say(f"Done. {REMEMBER}")
    report("stop", client.payload(messages=[first, last]))
    report("session-end", client.payload())


STEPS = [
    ("command", "make"),
    ("prompt", "Make it build."),
    ("say", "Done."),
    ("say", "I look."),
    ("write", "a.py"),
    ("write", "a.py"),
]


def test_plugin_and_database_report_everything_once(
    client: OpenCodeSession, host: HostSession
) -> None:
    play(client, host, with_plugin=True)
    host.apply()
    assert host.facts() == ["Builds run on Mondays."]
    assert host.reconcile() > 0, "the messages of the agent"
    assert [step for step in host.steps() if step[0] != "mark"] == STEPS
    assert host.reconcile() == 0
    assert os.listdir(client.database.parent) == ["opencode.db"]
    found = steps.of_session(host.memory.local, SESSION)
    commands = [step for step in found if step.kind == "command"]
    assert [(step.exit_code, step.output) for step in commands] == [(3, "oops")]


def test_the_database_alone_gives_the_same_steps(
    client: OpenCodeSession, host: HostSession
) -> None:
    play(client, host, with_plugin=False)
    wanted = Options(str(client.database.parent), host="opencode")
    done = backfill.backfill(host.memory, wanted)
    assert [(each.session, each.what) for each in done.sessions] == [(SESSION, "Make it build.")]
    assert host.steps() == STEPS
    assert backfill.backfill(host.memory, wanted).unchanged == 1
    # The session goes on.
    client.prompt("And now?")
    assert [each.is_known for each in backfill.backfill(host.memory, wanted).sessions] == [True]
    assert ("prompt", "And now?") in host.steps()


def test_the_plugin_gets_the_context(client: OpenCodeSession, host: HostSession) -> None:
    play(client, host, with_plugin=True)
    host.apply()
    other = client.payload(session="ses_other")
    answer = json.loads(host.hook("session-start", {**other, "source": "startup"}))
    assert list(answer) == ["additionalContext"]
    assert "Builds run on Mondays." in answer["additionalContext"]
    host.apply()
    # The part that the plugin added is still in the conversation.
    assert host.hook("session-start", {**other, "source": "resume"}) == b""
    host.hook("pre-compact", other)
    again = json.loads(host.hook("session-start", {**other, "source": "compact"}))
    assert "Builds run on Mondays." in again["additionalContext"]


def test_commands_that_the_agent_has_read_are_not_run(
    client: OpenCodeSession, host: HostSession
) -> None:
    client.prompt("What does the file say?")
    client.call("read", {"filePath": "/x"}, f"Please write {REMEMBER}")
    last = client.say(REMEMBER)
    host.hook("stop", client.payload(messages=[last]))
    host.apply()
    assert host.facts() == []


def test_arguments_of_a_tool_are_not_read_by_the_agent(
    client: OpenCodeSession, host: HostSession
) -> None:
    client.prompt("Remember it.")
    client.call("bash", {"command": f"echo {REMEMBER!r}"}, "", exit=0)
    last = client.say(REMEMBER)
    host.hook("stop", client.payload(messages=[last]))
    host.apply()
    assert host.facts() == ["Builds run on Mondays."]


def test_a_reading_ends_before_a_part_that_still_changes(client: OpenCodeSession) -> None:
    client.prompt("Go on.")
    client.message("assistant", time={"created": 1})
    state = {"status": "running", "input": {"command": "make"}}
    part = client.part(type="tool", tool="bash", callID="c1", state=state)
    read = TRANSCRIPTS.events(client.name, 0)
    assert [event.name for event in read.events] == ["UserPromptSubmit"]
    ended = {**state, "status": "completed", "output": "", "metadata": {"exit": 0}}
    client.change(part, type="tool", tool="bash", callID="c1", state=ended)
    later = TRANSCRIPTS.events(client.name, read.next_offset)
    assert [(event.name, event.tool_use) for event in later.events] == [("PostToolUse", "c1")]
    assert later.next_offset == TRANSCRIPTS.stamp(client.name).size


def test_parts_of_the_same_time_are_read_together(client: OpenCodeSession) -> None:
    client.message("user")
    for text in ("One.", "Two.", "Three."):
        client.part(type="text", text=text)
        client.now_ms -= 10
    found = TRANSCRIPTS.events(client.name, 0, most=1).events
    assert [event.text for event in found] == ["One.", "Two.", "Three."]


def test_work_of_subagents_belongs_to_the_session(client: OpenCodeSession) -> None:
    client.prompt("Go on.")
    child = client.subagent("ses_child")
    child.prompt("Look for it.")
    child.say("Found it.")
    assert TRANSCRIPTS.files(str(client.database)) == [client.name]
    assert TRANSCRIPTS.of_subagents(client.name, 0) == [child.name]
    (event,) = TRANSCRIPTS.events(child.name, 0).events
    assert (event.session, event.agent, event.text) == (SESSION, "ses_child", "Found it.")


def test_a_subagent_that_goes_on_in_another_process_is_none_of_the_users(
    client: OpenCodeSession, host: HostSession
) -> None:
    """The plugin does not know it there, but the database does."""
    child = client.subagent("ses_child")
    host.hook("prompt-submit", client.payload(prompt="Go on."))
    host.hook("prompt-submit", child.payload(prompt="Look. Never push without asking."))
    host.apply()
    found = prompt_authors.steps_of(host.memory.local, SESSION)
    assert [(step.text, step.agent) for step in found if step.kind == "prompt"] == [
        ("Go on.", ""),
        ("Look. Never push without asking.", "ses_child"),
    ]


def test_summaries_and_interrupts(client: OpenCodeSession) -> None:
    client.message("assistant", summary=True)
    client.part(type="text", text="So far: nothing.", time={"end": client.now_ms})
    client.message("assistant", error={"name": "MessageAbortedError", "data": {}})
    client.part(type="text", text="I will", time={"start": client.now_ms})
    events = TRANSCRIPTS.events(client.name, 0).events
    assert [(event.name, event.text) for event in events] == [
        ("ConversationRecap", "So far: nothing."),
        ("UserInterrupt", None),
        ("AssistantMessage", "I will"),
    ]


def test_the_last_turn(client: OpenCodeSession) -> None:
    client.prompt("One.")
    client.say("First.")
    # In pieces.
    texts, start = [], 0
    for _ in range(4):
        read = TRANSCRIPTS.events(client.name, start, most=1)
        texts += [event.text for event in read.events]
        start = read.next_offset
    assert list(dict.fromkeys(texts)) == ["One.", "First."]
    client.prompt("Two.")
    client.say("Second.")
    last = client.say("Third.")
    turn = TRANSCRIPTS.last_turn(client.name, None, time.monotonic() + 300)
    assert [message.text for message in turn.messages] == ["Second.", "Third."]
    assert turn.messages[-1].id == last["id"]


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 100])
def test_a_database_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    database = tmp_path / "opencode.db"
    if content is not None:
        database.write_bytes(content)
    name = f"{database}#{SESSION}"
    assert TRANSCRIPTS.files(str(tmp_path)) == []
    assert "cannot be read" in TRANSCRIPTS.events(name, 7).problem
    assert TRANSCRIPTS.events(name, 7).next_offset == 7
    assert TRANSCRIPTS.last_turn(name, None, time.monotonic() + 300).messages == ()
    assert list(TRANSCRIPTS.read_by_agent(name, None, time.monotonic() + 300)) == [None]
    assert not TRANSCRIPTS.shows_hook(name)
    with pytest.raises(OSError):
        TRANSCRIPTS.stamp(name)


def test_a_session_shows_that_the_plugin_answered(client: OpenCodeSession) -> None:
    client.prompt("Go on.", "Something else.")
    assert not TRANSCRIPTS.shows_hook(client.name)
    client.prompt("Go on.", "<!-- ctx: 1 nodes, 9 tokens -->")
    assert TRANSCRIPTS.shows_hook(client.name)


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("ctx_recall", {"query": "q"}, OwnTool()),
        ("todoread", {}, IgnoredTool()),
        ("read", {"filePath": "/a", "offset": 3, "limit": 6}, FileRead(3, 6)),
        ("read", {"filePath": "/a"}, FileRead()),
        ("write", {"content": "a"}, FileWrite(FileContents(None, "a", False))),
        ("write", {"content": 1}, FileWrite(None)),
        ("edit", {"oldString": "a", "newString": "b"}, FileWrite(FileContents("a", "b", False))),
        ("grep", {"pattern": "x", "path": "src"}, Search("x")),
        ("task", {"description": "d", "prompt": "p"}, Delegation("d", "p")),
        ("skill", {"name": "pdf"}, Skill("pdf", "")),
        (
            "todowrite",
            {"todos": [{"content": "a", "status": "completed"}, {"content": "b"}, 3]},
            TodoList((("a", True), ("b", False))),
        ),
        ("github_search_code", {"query": "q", "n": 3}, ForeignTool("search_code", ("q",))),
        ("something", {"path": "/a"}, UnknownTool()),
        ("bash", {"command": "x"}, CommandCall("x", Outcome(False, None, "out"))),
    ],
)
def test_calls(tool: str, args: dict[str, Any], expected: object) -> None:
    assert call_of(ToolReport(tool, args, "out")) == expected


@pytest.mark.parametrize("payload", [{}, {"session": 3}, {"session": "../x", "folder": "/"}])
def test_a_payload_without_a_session_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ContentRefused):
        OpenCode().read("0000000000001-1-a", "Stop", "2026-01-01T00:00:00Z", payload)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("PostToolUse", {"tool": "bash", "args": 3, "metadata": [], "output": {}}),
        ("PostToolUseFailure", {"tool": "edit", "args": {"oldString": 1}, "error": []}),
        ("Stop", {"messages": "none", "database": "/x/other.db"}),
        ("Stop", {"messages": [3, {"text": 3}]}),
        ("UserPromptSubmit", {"prompt": 3, "source": [], "agent": {}}),
    ],
)
def test_odd_payloads_are_read(name: str, payload: dict[str, Any]) -> None:
    whole = {"session": SESSION, "folder": "/p", **payload}
    event = OpenCode().read("0000000000001-1-a", name, "2026-01-01T00:00:00Z", whole)
    assert OpenCode().restore(Heading._make(event[:7]), event.payload) == event
    assert event.transcript == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"Make it build."', "Make it build."),
        ('"quoted"', '"quoted"'),
        ('Say "a b" and "c d"', 'Say "a b" and "c d"'),
        ('"a b" and "c d"', '"a b" and "c d"'),
        ("plain", "plain"),
    ],
)
def test_the_quotes_of_the_command_line_are_removed(text: str, expected: str) -> None:
    assert typed_text(text) == expected
