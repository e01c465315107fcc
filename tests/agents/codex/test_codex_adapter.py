"""Payloads and transcripts of Codex become events."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.codex import rollouts, tools
from ctx.agents.codex.adapter import Codex
from ctx.agents.codex.hooks import CodexHooks
from ctx.errors import ContentRefused
from ctx.hosts.events import Event, Heading
from ctx.hosts.hook_events import HookAnswer
from ctx.hosts.tool_calls import CommandCall, FileContents, FileWrite, Outcome, OwnTool

GOLDEN = Path(__file__).parents[2] / "golden" / "codex"
(ROLLOUT,) = (GOLDEN / "transcripts").iterdir()
FOLDER = "/home/you/project"
ID = "1794800433995-1-aa"


def payload(name: str, **changed: Any) -> dict[str, Any]:
    return {**json.loads((GOLDEN / "hooks" / f"{name}.json").read_text()), **changed}


def read(name: str, **changed: Any) -> Event:
    fields = payload(name, **changed)
    return Codex().read(ID, fields["hook_event_name"], "2026-11-16T03:40:33Z", fields)


def test_the_exit_code_of_a_command_is_in_the_transcript() -> None:
    # The call that failed in this session.
    changed = {"tool_use_id": "call_stub000011", "transcript_path": str(ROLLOUT)}
    event = read("PostToolUse.Bash", **changed)
    line = "echo hi-from-shell"
    assert event.call == CommandCall(line, Outcome(False, 3, "hi-from-shell\n"))
    unknown = read("PostToolUse.Bash")
    assert unknown.call == CommandCall(line, Outcome(True, None, "hi-from-shell\n"))


def test_each_file_of_a_patch_is_an_event() -> None:
    event = read("PostToolUse.apply_patch")
    (other,) = event.further
    assert (event.path, other.path) == (f"{FOLDER}/a.txt", f"{FOLDER}/b.txt")
    assert (event.tool_use, other.tool_use) == ("call_stub000008", "call_stub000008/2")
    assert event.call == FileWrite(FileContents("hello\n", "hello world\n", False))
    assert other.call == FileWrite(FileContents(None, "new file\n", True))
    # What is stored is restored, without the patch.
    for each in (event._replace(further=()), other):
        stored = json.loads(json.dumps(each.payload))
        assert Codex().restore(Heading._make(each[:7]), stored) == each
        assert "Begin Patch" not in json.dumps(stored)


def test_prompts_and_answers_are_read() -> None:
    assert (read("UserPromptSubmit").text, read("UserPromptSubmit").speaker) == (
        "Please start",
        "user",
    )
    assert read("UserPromptSubmit", prompt="<environment_context>x").speaker == "host"
    assert (read("Stop").text, read("Stop").speaker) == ("All done.", "agent")
    assert isinstance(read("PostToolUse.mcp__ctx__recall").call, OwnTool)
    assert read("SessionStart.resume").continues
    with pytest.raises(ContentRefused):
        read("Stop", session_id="")


def test_a_transcript_gives_the_events_of_its_session() -> None:
    transcripts = Codex().transcripts
    turn = transcripts.last_turn(str(ROLLOUT), None, clock.monotonic() + 60)
    assert [each.text for each in turn.messages][1:] == ["Now an edit.", "All done."]
    found = transcripts.events(str(ROLLOUT), 0)
    assert found.problem == ""
    assert [(each.name, each.tool or each.text, each.path) for each in found.events] == [
        ("UserPromptSubmit", "Please start", ""),
        ("AssistantMessage", "I run a command.", ""),
        ("PostToolUse", "Bash", ""),
        ("AssistantMessage", "Now an edit.", ""),
        ("PostToolUse", "apply_patch", f"{FOLDER}/a.txt"),
        ("PostToolUse", "apply_patch", f"{FOLDER}/b.txt"),
        ("PostToolUse", "Bash", ""),
        ("AssistantMessage", "All done.", ""),
    ]
    failed = found.events[6].call
    assert isinstance(failed, CommandCall)
    assert failed.outcome == Outcome(False, 3, "oops\n")
    # A hook and the transcript name a call alike.
    assert found.events[5].tool_use == read("PostToolUse.apply_patch").further[0].tool_use


def test_a_transcript_is_read_in_pieces(tmp_path: Path) -> None:
    """A call is read again until it has a result."""
    path = tmp_path / ROLLOUT.name
    lines = ROLLOUT.read_bytes().splitlines(keepends=True)
    seen: dict[str, Event] = {}
    position = 0
    for count in range(len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        found = Codex().transcripts.events(str(path), position)
        seen |= {each.id: each for each in found.events}
        position = found.next_offset
    shutil.copy(ROLLOUT, path)
    assert list(seen.values()) == list(Codex().transcripts.events(str(path), 0).events)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Chunk ID: 1\nProcess exited with code 3\nOutput:\noops\n", (3, "oops\n")),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nfine", (0, "fine")),
        ('{"output": "old", "metadata": {"exit_code": 1}}', (1, "old")),
        ("{not json}", (None, "{not json}")),
        ([{"type": "input_text", "text": "a"}], (None, "a")),
        (None, (None, "")),
    ],
)
def test_outputs_of_all_versions_are_read(output: Any, expected: tuple[int | None, str]) -> None:
    assert rollouts.output_of(output) == expected


def test_patches() -> None:
    text = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n"
        "@@ def f():\n kept\n-old\n+new\n"
        "*** Delete File: c.py\n*** Add File: .env\n+TOKEN=1\n*** End Patch"
    )
    assert tools.patched_files(text) == [
        ("b.py", FileContents("kept\nold\n", "kept\nnew\n", False)),
        ("c.py", FileContents("", "", False)),
        (".env", FileContents(None, "", False)),
    ]
    assert tools.patched_files("no patch") == []


def test_an_answer_has_only_the_fields_that_codex_knows() -> None:
    hooks = CodexHooks()
    written = json.loads(hooks.write("SessionStart", HookAnswer("text", "line")))
    assert written == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "text"},
        "systemMessage": "line",
    }
    assert (hooks.length("é"), hooks.largest_answer) == (2, 10_000)


@pytest.mark.parametrize(
    ("patch", "files"),
    [
        ("*** Update File: a.txt\n@@\n-a\n+b", ["/p/a.txt"]),
        ("*** Update File: /q/a.txt\n@@", ["/q/a.txt"]),
        ("*** Update File: a b.txt\n*** Add File: c.txt\n+x", ["/p/a b.txt"]),
        ("*** Update File: a\n@@\n*** Update File: src/b\n@@", ["/p/a", "/p/src/b"]),
        ("echo hello", []),
        ("*** Update File: ", []),
    ],
)
def test_the_files_of_a_patch(patch: str, files: list[str]) -> None:
    payload = {"session_id": "s", "cwd": "/p", "tool_input": {"command": f"{patch}\n"}}
    assert CodexHooks().edited_files(json.dumps(payload).encode()) == files
