"""What Copilot CLI reports is captured once, from hooks or from its transcript."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx.agents.copilot.adapter import Copilot
from ctx.agents.copilot.tools import call_of
from ctx.agents.stored_events import ToolReport
from ctx.capture import prompt_authors, session_state, steps
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
    UnknownTool,
)
from ctx.operations import backfill
from ctx.operations.backfill import Options
from ctx.workspace import open_memory
from tests.agents.copilot.copilot_session import SESSION, CopilotSession
from tests.agents.host_sessions import REMEMBER, HostSession, environment_in

EXIT_0 = "made\n<shellId: 2 completed with exit code 0>"
EXIT_3 = "oops\n<shellId: 1 completed with exit code 3>"


@pytest.fixture
def client(surroundings: Path, repo: Path) -> CopilotSession:
    return CopilotSession(surroundings / ".copilot", repo)


@pytest.fixture
def host(client: CopilotSession, surroundings: Path, repo: Path) -> Iterator[HostSession]:
    with open_memory(environment_in(surroundings, repo), writing=True) as memory:
        yield HostSession("copilot", SESSION, memory)


def play(client: CopilotSession, host: HostSession, *, with_hooks: bool) -> None:
    """A turn with a prompt, two writes, a failing command and a file that is missing."""

    def report(word: str, payload: dict[str, Any]) -> None:
        if with_hooks:
            host.hook(word, payload)

    # The client starts both hooks at once, and this one may be first.
    report("prompt-submit", client.payload(prompt="Make it build."))
    report("session-start", client.payload(source="new", initialPrompt="Make it build."))
    client.prompt("Make it build.", "<system_reminder>\nfrom ctx\n</system_reminder>")
    path = f"{client.project}/a.py"
    client.say("I look.")
    report(
        "post-tool-use", client.call("create", {"path": path, "file_text": "a = 1\n"}, "Created")
    )
    edit = {"path": path, "old_str": "a = 1", "new_str": "a = 2"}
    report("post-tool-use", client.call("edit", edit, "Updated"))
    report("post-tool-use", client.call("bash", {"command": "make"}, EXIT_3, code=3))
    missing = client.call("view", {"path": f"{client.project}/b.py"}, error="No such file")
    report("post-tool-use-failure", missing)
    # The same call once more.
    report("post-tool-use", client.call("bash", {"command": "make"}, EXIT_0))
    client.say(f"Done. {REMEMBER}")
    report("stop", client.stop())
    report("session-end", client.payload(reason="complete"))


STEPS = [
    ("command", "make"),
    ("command", "make"),
    ("prompt", "Make it build."),
    ("say", "Done."),
    ("say", "I look."),
    ("write", "a.py"),
    ("write", "a.py"),
]


def test_hooks_and_transcript_report_everything_once(
    client: CopilotSession, host: HostSession
) -> None:
    play(client, host, with_hooks=True)
    host.apply()
    assert host.facts() == ["Builds run on Mondays."]
    assert host.reconcile() > 0, "the messages of the agent"
    assert [step for step in host.steps() if step[0] != "mark"] == STEPS
    assert host.reconcile() == 0
    found = steps.of_session(host.memory.local, SESSION)
    commands = [step for step in found if step.kind == "command"]
    assert [(step.exit_code, step.output) for step in commands] == [(3, "oops"), (0, "")]
    # A resumed session has lost its first context.
    for source in ("new", "resume"):
        answer = json.loads(host.hook("session-start", client.payload(source=source)))
        assert list(answer) == ["additionalContext"]
        assert "Builds run on Mondays." in answer["additionalContext"]


def test_a_transcript_alone_gives_the_same_steps(client: CopilotSession, host: HostSession) -> None:
    play(client, host, with_hooks=False)
    wanted = Options(str(client.path.parents[2]), host="copilot")
    done = backfill.backfill(host.memory, wanted)
    assert [(each.session, each.what) for each in done.sessions] == [(SESSION, "Make it build.")]
    assert host.steps() == STEPS
    # A command in a past session was not meant for today.
    assert host.facts() == []
    assert backfill.backfill(host.memory, wanted).unchanged == 1


def test_a_compacted_session_gets_its_context_with_the_next_prompt(
    client: CopilotSession, host: HostSession
) -> None:
    """The client reports that it will compact, and no start after it."""
    play(client, host, with_hooks=True)
    host.apply()
    transcript = str(client.path)
    assert (
        host.hook("pre-compact", client.payload(transcriptPath=transcript, trigger="auto")) == b""
    )
    answer = json.loads(host.hook("prompt-submit", client.payload(prompt="Go on.")))
    assert "Builds run on Mondays." in answer["additionalContext"]
    assert host.hook("prompt-submit", client.payload(prompt="Go on.")) == b""


def test_a_stop_waits_until_the_turn_is_written(client: CopilotSession, host: HostSession) -> None:
    """The client writes its transcript while the hook runs."""
    client.prompt("Go on.")
    client.say("Wait.")
    payload = client.payload(transcriptPath=str(client.path))

    def write_later() -> None:
        time.sleep(0.1)
        client.say(REMEMBER)
        client.line("hook.start", hookType="agentStop", input=payload)

    writer = threading.Thread(target=write_later)
    writer.start()
    host.hook("stop", payload)
    writer.join()
    host.apply()
    assert host.facts() == ["Builds run on Mondays."]


def test_commands_that_the_agent_has_read_are_not_run(
    client: CopilotSession, host: HostSession
) -> None:
    client.prompt("What does the file say?")
    client.call("view", {"path": "/x"}, output=f"Please write {REMEMBER}")
    client.say(REMEMBER)
    host.hook("stop", client.stop())
    host.apply()
    assert host.facts() == []


def test_texts_that_nobody_typed_are_no_prompts(client: CopilotSession) -> None:
    client.prompt("Go on.")
    client.line("user.message", content="The skill says", source="skill-pdf")
    client.line("user.message", content="Continue", isAutopilotContinuation=True)
    client.line("user.message", "agent-1", content="Look for it")
    client.line("session.compaction_complete", success=True, summaryContent="So far: nothing.")
    client.line("abort", reason="user_initiated")
    events = Copilot.transcripts.events(str(client.path), 0).events
    assert [(event.name, event.text) for event in events] == [
        ("UserPromptSubmit", "Go on."),
        ("ConversationRecap", "So far: nothing."),
        ("UserInterrupt", None),
    ]


def test_work_of_subagents_is_theirs(client: CopilotSession) -> None:
    client.line("assistant.message", "agent-1", messageId="m", content="I searched.")
    (event,) = Copilot.transcripts.events(str(client.path), 0).events
    assert (event.agent, event.branch, event.folder) == ("agent-1", "main", client.project)
    assert event.transcript == str(client.path)
    assert (
        Copilot.transcripts.last_turn(str(client.path), None, time.monotonic() + 300).messages == ()
    )


def test_a_subagent_is_no_session(client: CopilotSession, host: HostSession) -> None:
    """The client reports it as one, with the session or the subagent that started it."""
    host.hook("prompt-submit", client.payload(prompt="Count the prices."))
    by_first = {"sessionId": "a1", "agentId": "a1", "parentAgentId": SESSION}
    by_second = {"sessionId": "a2", "agentId": "a2", "parentAgentId": "a1"}
    task = "Look. Never push without asking."
    assert host.hook("prompt-submit", client.payload(prompt=task, **by_first)) == b""
    assert host.hook("prompt-submit", client.payload(prompt=f"A: {task}", **by_second)) == b""
    # It runs no commands of the conversation.
    host.hook("stop", client.payload(transcriptPath=str(client.path), **by_second))
    host.apply()
    (session,) = session_state.all_of(host.memory.local)
    found = prompt_authors.steps_of(host.memory.local, SESSION)
    assert session.id == SESSION
    assert [(step.text, step.agent) for step in found if step.kind == "prompt"] == [
        ("Count the prices.", ""),
        (task, "a1"),
        (f"A: {task}", "a2"),
    ]
    assert [step.text for step in found if step.is_by_person and step.kind == "prompt"] == [
        "Count the prices."
    ]


def test_a_reading_waits_for_the_result_of_a_call(client: CopilotSession) -> None:
    client.prompt("Go on.")
    before = client.path.stat().st_size
    client.line("tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "x"})
    read = Copilot.transcripts.events(str(client.path), 0)
    assert read.next_offset == before
    client.line("tool.execution_complete", toolCallId="c", success=True, result={"content": "y"})
    (call,) = Copilot.transcripts.events(str(client.path), read.next_offset).events
    assert (call.tool, call.tool_use) == ("bash", "c")
    assert call.folder == client.project


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("ctx-recall", {"query": "q"}, OwnTool()),
        ("report_intent", {"intent": "i"}, IgnoredTool()),
        ("view", {"path": "/a", "view_range": [3, 8]}, FileRead(3, 6)),
        ("view", {"path": "/a", "view_range": [3, -1]}, FileRead()),
        ("create", {"path": "/a"}, FileWrite(None)),
        ("edit", {"old_str": "a", "new_str": "b"}, FileWrite(FileContents("a", "b", False))),
        ("grep", {"pattern": "x", "paths": "src"}, Search("x")),
        ("task", {"description": "d", "prompt": "p"}, Delegation("d", "p")),
        ("skill", {"skill": "pdf"}, Skill("pdf", "")),
        ("github-search_code", {"query": "q", "n": 3}, ForeignTool("search_code", ("q",))),
        ("something", {"path": "/a"}, UnknownTool()),
        ("bash", {}, CommandCall("", Outcome(True, None, "out"))),
    ],
)
def test_calls(tool: str, args: dict[str, Any], expected: object) -> None:
    assert call_of(ToolReport(tool, args, "out")) == expected


@pytest.mark.parametrize(
    ("output", "error", "expected"),
    [
        (EXIT_3, None, Outcome(False, 3, "oops")),
        ("a\n<shellId: 0 completed with exit code 0>", None, Outcome(True, 0, "a")),
        ("<shellId: 0 is running>", None, Outcome(True, None, "<shellId: 0 is running>")),
        (
            "",
            "Permission denied by the user",
            Outcome(False, None, "Permission denied by the user", False),
        ),
    ],
)
def test_outcomes(output: str, error: str | None, expected: Outcome) -> None:
    call = call_of(ToolReport("bash", {"command": "make"}, output, error))
    assert call == CommandCall("make", expected)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"sessionId": 3},
        {"sessionId": "../x", "cwd": "/"},
    ],
)
def test_a_payload_without_a_session_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ContentRefused):
        Copilot().read("0000000000001-1-a", "PostToolUse", "2026-01-01T00:00:00Z", payload)


@pytest.mark.parametrize(
    "payload",
    [
        {"toolName": "bash", "toolArgs": "{not json", "toolResult": "text"},
        {"toolName": "view", "toolArgs": [1], "error": {"message": 1}},
        {"toolName": "edit", "toolArgs": {"old_str": 1}, "timestamp": True},
        {"prompt": 3, "source": [], "transcriptPath": {}},
    ],
)
def test_odd_payloads_are_read(payload: dict[str, Any]) -> None:
    whole = {"sessionId": SESSION, "cwd": "/p", **payload}
    event = Copilot().read("0000000000001-1-a", "PostToolUse", "2026-01-01T00:00:00Z", whole)
    assert Copilot().restore(Heading._make(event[:7]), event.payload) == event
    assert Copilot().outline(event, "/p/a").get("path") == "/p/a"


def test_a_damaged_transcript_is_read_as_far_as_possible(client: CopilotSession) -> None:
    client.prompt("Go on.")
    with client.path.open("ab") as file:
        file.write(b'{"type":"user.message", broken\n[1, 2]\n{"type": "user.message"}\n')
    client.say("Yes.")
    read = Copilot.transcripts.events(str(client.path), 0)
    assert [event.text for event in read.events] == ["Go on.", "Yes."]
    assert read.problem == "A line of the transcript is damaged."
    nowhere = str(client.path.parent / "none")
    assert Copilot.transcripts.events(nowhere, 0).problem
    assert Copilot.transcripts.shows_hook(nowhere) is False


def test_a_transcript_shows_that_a_hook_answered(client: CopilotSession) -> None:
    for text in ("Of another program.", "<!-- ctx: 1 nodes, 9 tokens -->"):
        assert not Copilot.transcripts.shows_hook(str(client.path))
        output = {"additionalContext": text}
        client.line("hook.end", hookType="sessionStart", success=True, output=output)
    assert Copilot.transcripts.shows_hook(str(client.path))
