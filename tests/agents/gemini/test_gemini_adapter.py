"""Payloads and transcripts of Gemini CLI become events."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.gemini.adapter import Gemini
from ctx.agents.gemini.hooks import EVENTS, GeminiHooks, without_context
from ctx.agents.gemini.transcripts import contexts_in
from ctx.errors import ContentRefused
from ctx.hosts.events import Event, Heading
from ctx.hosts.hook_events import NO_ANSWER, HookAnswer
from ctx.hosts.tool_calls import CommandCall, FileContents, FileWrite, Outcome, OwnTool

GOLDEN = Path(__file__).parents[2] / "golden" / "gemini"
(CHAT,) = (GOLDEN / "transcripts").iterdir()
FOLDER = "/home/you/project"
NAMES = {theirs: ours for ours, theirs in EVENTS.items()}


def read(name: str, **changed: Any) -> Event:
    fields = {**json.loads((GOLDEN / "hooks" / f"{name}.json").read_text()), **changed}
    event = fields["hook_event_name"]
    at = "2026-11-16T03:47:33Z"
    return Gemini().read("1794800433995-1-aa", NAMES.get(event, event), at, fields)


def test_tool_calls_are_read() -> None:
    command = read("AfterTool.run_shell_command")
    assert command.call == CommandCall("echo hi-from-shell", Outcome(True, 0, "hi-from-shell"))
    failed = {"llmContent": "Output: oops\nExit Code: 3\nProcess Group PGID: 1"}
    outcome = read("AfterTool.run_shell_command", tool_response=failed).call
    assert outcome == CommandCall("echo hi-from-shell", Outcome(False, 3, "oops"))
    written = read("AfterTool.replace")
    assert written.path == f"{FOLDER}/a.txt"
    assert written.call == FileWrite(FileContents("hello\n", "hello world\n", True))
    assert read("AfterTool.write_file").call == FileWrite(FileContents(None, "new file\n", True))
    assert read("AfterTool.read_file-error").name == "PostToolUseFailure"
    assert isinstance(read("AfterTool.replace", tool_name="mcp_ctx_recall").call, OwnTool)


@pytest.mark.parametrize("path", sorted((GOLDEN / "hooks").iterdir()), ids=lambda path: path.stem)
def test_what_is_stored_is_restored(path: Path) -> None:
    event = read(path.stem)
    stored = json.loads(json.dumps(event.payload))
    assert Gemini().restore(Heading._make(event[:7]), stored) == event


def test_prompts_and_answers_are_read() -> None:
    prompt = read("BeforeAgent")
    assert (prompt.text, prompt.speaker) == ("Please start", "user")
    assert read("BeforeAgent", prompt="/clear").is_host_command
    assert (read("AfterAgent").text or "").endswith("All done.")
    # The transcript has the messages one by one.
    assert read("AfterAgent", transcript_path=str(CHAT)).text is None
    with pytest.raises(ContentRefused):
        read("AfterAgent", session_id="")


@pytest.mark.parametrize(
    "text",
    [
        "System: Potential loop detected. Details: never repeat the same call.",
        "<state_snapshot>Never restart the server on Mondays.</state_snapshot>",
    ],
)
def test_a_message_of_the_client_is_nobodys_prompt(text: str, tmp_path: Path) -> None:
    assert read("BeforeAgent", prompt=text).speaker == "host"
    chat = tmp_path / "tmp" / "shop" / "chats" / "session-2026-11-18T22-36-aa1ed9f7.jsonl"
    chat.parent.mkdir(parents=True)
    session = {"sessionId": "aa1ed9f7-5b71-4610-bf75-023108fb137b", "kind": "main"}
    at = "2026-11-18T22:36:45.033Z"
    said = [
        {"id": name, "timestamp": at, "type": "user", "content": [{"text": words}]}
        for name, words in (("1", text), ("2", "Go on."))
    ]
    chat.write_text("".join(json.dumps(line) + "\n" for line in [session, *said]))
    found = Gemini().transcripts.events(str(chat), 0).events
    assert [each.text for each in found] == ["Go on."]


def test_a_transcript_gives_the_events_of_its_session() -> None:
    transcripts = Gemini().transcripts
    assert transcripts.session_of(str(CHAT)) == "ce777de9-f8eb-4636-98cc-9e34695284f6"
    found = transcripts.events(str(CHAT), 0)
    assert [(each.name, each.tool or each.text, each.folder) for each in found.events] == [
        ("UserPromptSubmit", "Please start", FOLDER),
        ("AssistantMessage", "I run a command.", FOLDER),
        ("PostToolUse", "run_shell_command", FOLDER),
        ("AssistantMessage", "Now an edit.", FOLDER),
        ("PostToolUse", "replace", FOLDER),
        ("PostToolUse", "write_file", FOLDER),
        ("PostToolUse", "run_shell_command", FOLDER),
        ("AssistantMessage", "All done.", FOLDER),
    ]
    # A hook and the transcript name a call alike, although hooks report no id.
    calls = {each.tool: each.tool_use for each in reversed(found.events) if each.tool}
    for tool in ("run_shell_command", "replace", "write_file"):
        assert calls[tool] == read(f"AfterTool.{tool}").tool_use
    turn = transcripts.last_turn(str(CHAT), None, clock.monotonic() + 60)
    assert [each.text for each in turn.messages] == [
        "I run a command.",
        "Now an edit.",
        "All done.",
    ]


def test_the_folder_of_a_chat_is_found(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "shop" / "chats"
    chats.mkdir(parents=True)
    path = chats / CHAT.name
    path.write_bytes(CHAT.read_bytes().partition(b"\n")[0] + b"\n")
    assert Gemini().transcripts.beginning(str(path)).folder == ""
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {"/home/dev/shop": "shop"}}))
    assert Gemini().transcripts.beginning(str(path)).folder == "/home/dev/shop"
    assert Gemini().transcripts.files(str(tmp_path / "tmp")) == [str(path)]


def test_the_context_of_hooks_is_removed() -> None:
    text = "<hook_context>&lt;!-- ctx: 1 node --&gt;</hook_context>\n\nDo it"
    assert without_context(text) == "Do it"
    assert contexts_in(text) == ["<!-- ctx: 1 node -->"]
    payload = json.dumps({"session_id": "a", "prompt": text}).encode()
    assert GeminiHooks().read(payload).prompt == "Do it"


def test_answers_have_the_names_of_gemini() -> None:
    hooks = GeminiHooks()
    written = json.loads(hooks.write("UserPromptSubmit", HookAnswer("text")))
    assert written == {
        "hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "text"}
    }
    assert hooks.write("SessionStart", NO_ANSWER) == b""
