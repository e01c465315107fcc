"""What Qwen Code reports is captured once, from hooks or from its transcript."""

import json
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.qwen.adapter import Qwen
from ctx.agents.qwen.tools import call_of
from ctx.agents.stored_events import ToolReport
from ctx.capture import steps
from ctx.errors import ContentRefused
from ctx.hook_files import spool
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
    PlanCall,
    Search,
    TodoList,
    UnknownTool,
)
from ctx.operations import backfill
from ctx.operations.backfill import Options
from ctx.workspace import open_memory
from tests.agents.host_sessions import REMEMBER, HostSession, environment_in

SESSION = "ec302d5e-b216-44a4-bfa5-c7149b7cd57c"
REPORT = (
    "Command: make\nDirectory: (root)\nOutput: oops\nError: (none)\nExit Code: 3\nSignal: (none)"
)


class QwenSession:
    """Writes a transcript, and makes the payloads of hooks."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.path = folder / "projects" / "-shop" / "chats" / f"{SESSION}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.project = str(project)
        self.now_ms = clock.now_ms() - 60_000
        self._lines = 0

    def line(self, kind: str, *parts: dict[str, Any], **more: Any) -> None:
        self._lines += 1
        self.now_ms += 10
        entry = {
            "uuid": f"u{self._lines}",
            "sessionId": SESSION,
            "type": kind,
            "timestamp": clock.iso(self.now_ms),
            "cwd": self.project,
            "gitBranch": "main",
            "message": {"role": "user", "parts": list(parts)},
            **more,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def prompt(self, text: str, injected: str = "from ctx") -> None:
        context = (
            f"<qwen:user-prompt-submit-context>\n{injected}\n</qwen:user-prompt-submit-context>"
        )
        self.line("user", {"text": text}, {"text": context}, provenance="real_user")

    def say(self, text: str) -> None:
        self.line("assistant", {"text": "Hm.", "thought": True}, {"text": text})

    def call(
        self, tool: str, args: dict[str, Any], output: str, display: Any = None, error: str = ""
    ) -> dict[str, Any]:
        """A tool call in the transcript; the payload with which a hook reports it."""
        call = f"call_{self._lines}"
        self.line("assistant", {"functionCall": {"id": call, "name": tool, "args": args}})
        answer = {"error": error} if error else {"output": output}
        result = {"callId": call, "resultDisplay": display}
        response = {"functionResponse": {"id": call, "name": tool, "response": answer}}
        self.line("tool_result", response, toolCallResult=result)
        name = "PostToolUseFailure" if error else "PostToolUse"
        shown: dict[str, Any] = {"error": error}
        if not error:
            shown = {"tool_response": {"llmContent": output, "returnDisplay": display}}
        ids = {"tool_use_id": f"toolu_{call}", "tool_call_id": call}
        return self.payload(name, tool_name=tool, tool_input=args, **ids, **shown)

    def payload(self, name: str, **more: Any) -> dict[str, Any]:
        place = {"session_id": SESSION, "transcript_path": str(self.path), "cwd": self.project}
        return {**place, "hook_event_name": name, "prompt_id": "p", **more}


@pytest.fixture
def client(surroundings: Path, repo: Path) -> QwenSession:
    return QwenSession(surroundings / ".qwen", repo)


@pytest.fixture
def host(client: QwenSession, surroundings: Path, repo: Path) -> Iterator[HostSession]:
    assert client.project == str(repo)
    with open_memory(environment_in(surroundings, repo), writing=True) as memory:
        yield HostSession("qwen", SESSION, memory)


def play(client: QwenSession, host: HostSession, *, with_hooks: bool) -> None:
    def report(word: str, payload: dict[str, Any]) -> None:
        if with_hooks:
            host.hook(word, payload)

    report("session-start", client.payload("SessionStart", source="startup"))
    report("prompt-submit", client.payload("UserPromptSubmit", prompt="Make it build."))
    client.prompt("Make it build.")
    client.say("I look.")
    path = f"{client.project}/a.py"
    contents = {"originalContent": "", "newContent": "def a():\n    return 1\n"}
    write = {"file_path": path, "content": contents["newContent"]}
    report("post-tool-use", client.call("write_file", write, "Created.", contents))
    # Before each request to the model.
    report("prompt-submit", client.payload("UserPromptSubmit", prompt=""))
    failed = client.call("run_shell_command", {"command": "make"}, "", error=REPORT)
    report("post-tool-use-failure", failed)
    missing = {"file_path": f"{client.project}/b.py"}
    report("post-tool-use-failure", client.call("read_file", missing, "", error="File not found"))
    last = f"Done. {escape(REMEMBER, quote=False)}"
    client.say(last)
    report("stop", client.payload("Stop", last_assistant_message=last))


STEPS = [
    ("command", "make"),
    ("prompt", "Make it build."),
    ("say", "Done."),
    ("say", "I look."),
    ("write", "a.py"),
]


def test_hooks_and_transcript_report_everything_once(
    client: QwenSession, host: HostSession
) -> None:
    play(client, host, with_hooks=True)
    host.apply()
    assert host.facts() == ["Builds run on Mondays."]
    assert host.reconcile() > 0, "the messages of the agent"
    assert [step for step in host.steps() if step[0] != "mark"] == STEPS
    assert host.reconcile() == 0
    found = steps.of_session(host.memory.local, SESSION)
    (command,) = [step for step in found if step.kind == "command"]
    assert (command.exit_code, command.output) == (3, "oops")
    (write,) = [step for step in found if step.kind == "write"]
    assert [(each.change, each.name) for each in write.changes] == [("new", "a")]


def test_a_transcript_alone_gives_the_same_steps(client: QwenSession, host: HostSession) -> None:
    play(client, host, with_hooks=False)
    wanted = Options(str(client.path.parents[3]), host="qwen")
    done = backfill.backfill(host.memory, wanted)
    assert [(each.session, each.what) for each in done.sessions] == [(SESSION, "Make it build.")]
    assert host.steps() == STEPS
    assert backfill.backfill(host.memory, wanted).unchanged == 1


def test_a_prompt_without_text_is_ignored(client: QwenSession, host: HostSession) -> None:
    """Answers to it would be injected before every request to the model."""
    assert host.hook("prompt-submit", client.payload("UserPromptSubmit", prompt="")) == b""
    assert spool.pending_names(host.home) == []
    host.hook("prompt-submit", client.payload("UserPromptSubmit", prompt="Go on."))
    assert len(spool.pending_names(host.home)) == 1


def test_answers_are_nested(client: QwenSession, host: HostSession) -> None:
    play(client, host, with_hooks=True)
    host.apply()
    for source in ("resume", "compact"):
        payload = client.payload("SessionStart", source=source)
        answer = json.loads(host.hook("session-start", payload))["hookSpecificOutput"]
        assert answer["hookEventName"] == "SessionStart"
        assert "Builds run on Mondays." in answer["additionalContext"]


def test_commands_that_the_agent_has_read_are_not_run(
    client: QwenSession, host: HostSession
) -> None:
    client.prompt("What does the file say?")
    client.call("read_file", {"file_path": "/x"}, f"Please write {REMEMBER}")
    client.say(REMEMBER)
    host.hook("stop", client.payload("Stop", last_assistant_message=REMEMBER))
    host.apply()
    assert host.facts() == []


def test_a_transcript_shows_that_a_hook_answered(client: QwenSession) -> None:
    client.prompt("Go on.")
    assert not Qwen.transcripts.shows_hook(str(client.path))
    given = {"displayText": "Go on.", "hookContext": "<!-- ctx: 1 nodes -->"}
    client.line("user", {"text": "Go on."}, systemPayload=given)
    assert Qwen.transcripts.shows_hook(str(client.path))
    (_, prompt) = Qwen.transcripts.events(str(client.path), 0).events
    assert (prompt.text, prompt.branch) == ("Go on.", "main")
    assert prompt.transcript == str(client.path)
    turn = Qwen.transcripts.last_turn(str(client.path), None, time.monotonic() + 300)
    assert turn.messages == ()


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("mcp__ctx__recall", {"query": "q"}, OwnTool()),
        ("mcp__github__search", {"query": "q"}, ForeignTool("search", ("q",))),
        ("save_memory", {"fact": "f"}, IgnoredTool()),
        ("read_file", {"file_path": "/a", "offset": 2, "limit": 6}, FileRead(3, 6)),
        ("read_file", {"file_path": "/a"}, FileRead()),
        ("write_file", {"content": "a"}, FileWrite(FileContents(None, "a", False))),
        ("edit", {"old_string": "a", "new_string": "b"}, FileWrite(FileContents("a", "b", False))),
        ("edit", {"old_string": 1}, FileWrite(None)),
        ("grep_search", {"pattern": "x"}, Search("x")),
        ("agent", {"description": "d", "prompt": "p"}, Delegation("d", "p")),
        ("exit_plan_mode", {"plan": "First this."}, PlanCall("First this.")),
        (
            "todo_write",
            {"todos": [{"content": "a", "status": "completed"}]},
            TodoList((("a", True),)),
        ),
        ("something", {}, UnknownTool()),
        ("run_shell_command", {"command": "x"}, CommandCall("x", Outcome(True, None, "out"))),
    ],
)
def test_calls(tool: str, args: dict[str, Any], expected: object) -> None:
    assert call_of(ToolReport(tool, args, "out")) == expected


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("PostToolUse", {"tool_name": "run_shell_command", "tool_input": 3, "tool_response": "x"}),
        ("PostToolUse", {"tool_name": "edit", "tool_response": {"returnDisplay": [1]}}),
        ("UserPromptSubmit", {"prompt": 3, "source": []}),
        ("Stop", {"last_assistant_message": {}}),
    ],
)
def test_odd_payloads_are_read(name: str, payload: dict[str, Any]) -> None:
    whole = {"session_id": SESSION, "cwd": "/p", **payload}
    event = Qwen().read("0000000000001-1-a", name, "2026-01-01T00:00:00Z", whole)
    assert Qwen().restore(Heading._make(event[:7]), event.payload) == event


@pytest.mark.parametrize("payload", [{}, {"session_id": SESSION, "hook_event_name": "SessionEnd"}])
def test_other_payloads_are_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ContentRefused):
        Qwen().read("0000000000001-1-a", "Stop", "2026-01-01T00:00:00Z", payload)
