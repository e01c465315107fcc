"""The events of a session, read from its transcript, each once."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agents.claude_code import transcripts
from ctx.agents.claude_code.adapter import ClaudeTranscripts
from ctx.hosts import transcript_reader
from ctx.hosts.events import Event
from ctx.hosts.transcripts import TranscriptPart
from tests import effort
from tests.capture.transcripts import Transcript, fix

SESSION = "0c1fb4a8-52d1-4e0c-9a55-6cf7d9c12f01"

read = ClaudeTranscripts().events


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path, SESSION)


def told(transcript: Transcript) -> list[tuple[str, ...]]:
    return event_summaries(read(str(transcript.path), 0))


def event_summaries(found: TranscriptPart) -> list[tuple[str, ...]]:
    return [_event_summary(event) for event in found.events]


def _event_summary(event: Event) -> tuple[str, ...]:
    said = event.payload
    shown = next(
        (said[name] for name in ("prompt", "text", "error", "tool_response") if name in said), ""
    )
    text = shown if isinstance(shown, str) else json.dumps(shown)
    return (event.name, event.tool or "", text) + (
        (said["agent_id"],) if "agent_id" in said else ()
    )


def test_the_events_of_a_fix_are_read(transcript: Transcript) -> None:
    fix(transcript)
    found = read(str(transcript.path), 0)
    names = "UserPromptSubmit AssistantMessage PostToolUseFailure PostToolUse PostToolUse"
    assert [event.name for event in found.events] == [*names.split(), "AssistantMessage"]
    failed = found.events[2]
    place = failed.transcript, failed.branch, failed.version, failed.payload["tool_use_id"]
    assert place == (str(transcript.path), "main", "2.1.325", failed.tool_use)
    assert failed.payload["tool_input"] == {"command": "pytest tests/test_total.py"}
    assert failed.payload["error"].startswith("Exit code 1\n====")
    assert (failed.id[:16], failed.at) == ("1793610004000-t-", "2026-11-02T09:00:04Z")
    assert (failed.session, failed.folder, failed.tool) == (SESSION, "/home/dev/shop", "Bash")
    assert found[1:] == (transcript.path.stat().st_size, "")


def test_generated_entries_are_not_prompts(transcript: Transcript) -> None:
    transcript.prompt("A caveat.", isMeta=True)
    transcript.prompt("This session is being continued from a previous conversation …")
    transcript.prompt("<local-command-stdout>Compacted</local-command-stdout>")
    transcript.prompt("<bash-stdout>ls</bash-stdout>")
    transcript.prompt("<task-notification><status>completed</status></task-notification>")
    transcript.prompt("<command-name>/clear</command-name><command-args></command-args>")
    transcript.prompt("<command-name>/compact</command-name><command-args>keep it</command-args>")
    transcript.prompt("<command-name>/fix</command-name>\n<command-args>issue 7</command-args>")
    transcript.entry("attachment", attachment={"content": ['{"type": "user"}']})
    transcript.entry("api-request-blob", message={"role": "user", "content": "Sent."})
    transcript.prompt("Do it.")
    assert told(transcript) == [
        ("UserPromptSubmit", "", "/fix issue 7"),
        ("UserPromptSubmit", "", "Do it."),
    ]


def test_messages_of_the_client_are_not_answers(transcript: Transcript) -> None:
    for told_error in (False, True):
        text = {"type": "text", "text": "API Error: 401" if told_error else "No response."}
        message = {"id": "x", "model": "<synthetic>", "content": [text]}
        transcript.entry("assistant", message=message, isApiErrorMessage=told_error)
    transcript.entry(
        "user", message={"content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    )
    assert told(transcript) == [
        ("StopFailure", "", "API Error: 401"),
        ("UserInterrupt", "", ""),
    ]


def test_a_refused_tool_call_is_not_an_event(transcript: Transcript) -> None:
    refused = transcript.call("Bash", {"command": "rm -r build"})
    transcript.result(
        refused, "The user doesn't want to proceed with this tool use.", is_error=True
    )
    stopped = transcript.call("Bash", {"command": "sleep 900"})
    transcript.result(stopped, "[Request interrupted by user for tool use]", is_error=True)
    (event,) = read(str(transcript.path), 0).events
    assert (event.tool_use, event.payload["is_interrupt"]) == (stopped, True)


def test_the_text_of_a_rejection_is_a_prompt(transcript: Transcript) -> None:
    refused = transcript.call("Bash", {"command": "npm install"})
    words = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell"
        " you how to proceed, the user said:\nWe use pnpm here"
    )
    transcript.result(refused, words, is_error=True)
    assert told(transcript) == [("UserPromptSubmit", "", "We use pnpm here")]
    # Without a reason, it is no prompt.
    refused = transcript.call("AskUserQuestion", {"questions": []})
    words = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user"
        " said:\nThe user wants to clarify these questions.\n    This means they may have more"
        " information."
    )
    transcript.result(refused, words, is_error=True)
    assert len(told(transcript)) == 1


def queue(transcript: Transcript, operation: str, content: str | None = None) -> None:
    more = {} if content is None else {"content": content}
    transcript.entry("queue-operation", operation=operation, **more)


def test_a_prompt_typed_while_the_agent_works_is_read(transcript: Transcript) -> None:
    queue(transcript, "enqueue", "Keep the old name")
    queue(transcript, "enqueue", '{"type": "task_notice"}')
    queue(transcript, "enqueue", "/exit")
    for _ in range(4):
        queue(transcript, "remove")
    assert told(transcript) == [
        ("UserPromptSubmit", "", "Keep the old name"),
        ("UserPromptSubmit", "", "/exit"),
    ]


def test_a_queued_prompt_that_begins_a_turn_is_read_once(transcript: Transcript) -> None:
    queue(transcript, "enqueue", "Add a test")
    queue(transcript, "dequeue")
    transcript.prompt("Add a test")
    queue(transcript, "enqueue", "Never mind")
    queue(transcript, "popAll", "Never mind")
    queue(transcript, "remove")
    assert told(transcript) == [("UserPromptSubmit", "", "Add a test")]


def test_a_queued_prompt_is_read_when_it_is_sent(transcript: Transcript) -> None:
    transcript.say("Working on it.")
    queue(transcript, "enqueue", "Use tabs")
    first = read(str(transcript.path), 0)
    assert event_summaries(first) == [("AssistantMessage", "", "Working on it.")]
    queue(transcript, "remove")
    second = read(str(transcript.path), first.next_offset)
    assert event_summaries(second) == [("UserPromptSubmit", "", "Use tabs")]
    assert second.next_offset == transcript.path.stat().st_size


def test_a_summary_by_the_client_is_a_recap(transcript: Transcript) -> None:
    transcript.prompt(
        "This session is being continued…\nSummary:\n1. Intent", isCompactSummary=True
    )
    transcript.entry("system", subtype="away_summary", content="Two tests are left")
    transcript.entry("system", subtype="turn_duration", content="12 s")
    assert told(transcript) == [
        ("ConversationRecap", "", "This session is being continued…\nSummary:\n1. Intent"),
        ("ConversationRecap", "", "Two tests are left"),
    ]


def test_titles(transcript: Transcript) -> None:
    transcript.titled("summary", summary="Of another conversation", leafUuid="1")
    assert read(str(transcript.path), 0).events == ()
    transcript.prompt("Fix the sum.")
    transcript.titled("ai-title", aiTitle="Fix the sum of an order", sessionId=SESSION)
    transcript.titled("ai-title", aiTitle=["no text"], sessionId=SESSION)
    transcript.say("Done.")
    transcript.titled("summary", summary="Sum of an order fixed", leafUuid="2")
    transcript.titled("custom-title", customTitle="sums", sessionId=SESSION)
    found = read(str(transcript.path), 0)
    titles = [event for event in found.events if event.name == "SessionTitle"]
    assert [(event.text, event.speaker) for event in titles] == [
        ("Fix the sum of an order", "agent"),
        ("Sum of an order fixed", "agent"),
        ("sums", "user"),
    ]
    # They belong to the time and place of the line before them.
    prompt, first = found.events[:2]
    assert (first.at, first.folder) == (prompt.at, prompt.folder)
    behind = transcript.path.read_bytes().index(b'{"type": "ai-title"')
    assert read(str(transcript.path), behind).events == found.events[1:]


def test_older_shapes(transcript: Transcript) -> None:
    calls = [
        {"type": "text", "text": "Two at once."},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "t2", "name": "Glob", "input": {"pattern": "/a"}},
    ]
    transcript.entry("assistant", message={"id": "m1", "content": calls})
    results = [
        {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "two"}]},
        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
    ]
    transcript.entry("user", message={"content": results}, toolUseResult={"stdout": "one"})
    transcript.entry("assistant", message={"content": "As it once was written."})
    assert told(transcript) == [
        ("AssistantMessage", "", "Two at once."),
        ("PostToolUse", "Glob", "two"),
        ("PostToolUse", "Bash", "one"),
        ("AssistantMessage", "", "As it once was written."),
    ]


def test_transcripts_of_subagents_are_found(transcript: Transcript) -> None:
    transcript.prompt("Let somebody look.")
    agent = transcript.subagent("a1b2")
    agent.prompt("Look at it.")
    agent.say("I look.")
    agent.bash("ls", "src")
    old = Transcript(transcript.path.parent, "agent-old")
    old.session = SESSION
    old._more = {"isSidechain": True, "agentId": "old"}
    old.say("I am of an older client.")
    stranger = Transcript(transcript.path.parent, "agent-stranger")
    stranger.session = "another"
    stranger.say("I work for somebody else.")

    paths = transcripts.of_subagents(str(transcript.path), 0)
    assert paths == [str(agent.path), str(old.path)]
    assert event_summaries(read(paths[0], 0)) == [
        ("AssistantMessage", "", "I look.", "a1b2"),
        ("PostToolUse", "Bash", '{"stdout": "src", "stderr": "", "interrupted": false}', "a1b2"),
    ]
    main = {event.payload["transcript_path"] for path in paths for event in read(path, 0).events}
    assert main == {str(transcript.path)}
    in_a_year = (1 << 32) * 1000
    assert transcripts.of_subagents(str(transcript.path), in_a_year) == []


def test_a_tool_call_is_read_with_its_result(transcript: Transcript) -> None:
    transcript.say("I begin.")
    before = transcript.path.stat().st_size
    tool_use = transcript.call("Bash", {"command": "make"})
    found = read(str(transcript.path), 0)
    assert [each[2] for each in event_summaries(found)] == ["I begin."]
    assert found.next_offset == before
    transcript.result(tool_use, "built")
    found = read(str(transcript.path), found.next_offset)
    assert event_summaries(found) == [("PostToolUse", "Bash", "built")]
    assert found.next_offset == transcript.path.stat().st_size


def test_a_call_without_a_result_does_not_block_later_events(
    transcript: Transcript,
) -> None:
    transcript.call("Bash", {"command": "make"})
    transcript.prompt("Go on.")
    assert read(str(transcript.path), 0).next_offset == 0
    transcript.say("I do.")
    found = read(str(transcript.path), 0)
    assert event_summaries(found) == [
        ("UserPromptSubmit", "", "Go on."),
        ("AssistantMessage", "", "I do."),
    ]
    assert found.next_offset == transcript.path.stat().st_size


def test_a_partial_line_is_read_when_it_is_complete(transcript: Transcript) -> None:
    transcript.say("First.")
    size = transcript.path.stat().st_size
    transcript.say("Second.")
    whole = transcript.path.read_bytes()
    for cut in range(size, len(whole) - 2, 7):
        transcript.path.write_bytes(whole[:cut])
        found = read(str(transcript.path), 0)
        assert [each[2] for each in event_summaries(found)] == ["First."]
        assert found.next_offset == size
    transcript.path.write_bytes(whole[:-1])
    assert len(read(str(transcript.path), 0).events) == 2


def test_a_rewritten_file_is_read_from_the_start(transcript: Transcript) -> None:
    transcript.say("A long sentence that is not there later on.")
    seen = read(str(transcript.path), 0).next_offset
    transcript.path.write_text("")
    transcript.say("New.")
    assert event_summaries(read(str(transcript.path), seen)) == [("AssistantMessage", "", "New.")]


def test_invalid_lines_are_skipped(transcript: Transcript) -> None:
    transcript.say("Before.")
    with transcript.path.open("ab") as file:
        file.write(b"\0\xff\xfe\n" + b'{"type":"user","message":' + b"[" * 100_000 + b"\n[]\n")
        file.write(b'{"type": "user", "message": {"content": NaN}}\n"\n\n')
    transcript.say("Behind.")
    found = read(str(transcript.path), 0)
    assert [each[2] for each in event_summaries(found)] == ["Before.", "Behind."]
    assert found.problem == "A line of the transcript is damaged."


def test_a_line_that_is_too_long_is_skipped(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_reader, "LONGEST_LINE", 2_000)
    monkeypatch.setattr(transcript_reader, "CHUNK", 512)
    transcript.say("Before.")
    transcript.say("x" * 3_000)
    transcript.say("Behind.")
    found = read(str(transcript.path), 0)
    assert [each[2] for each in event_summaries(found)] == ["Before.", "Behind."]
    assert found.problem.startswith("A line of more than")


def test_an_unreadable_transcript_is_reported(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (tmp_path / "none.jsonl", tmp_path, pipe):
        found = read(str(path), 7)
        assert (found.events, found.next_offset) == ((), 7)
        assert found.problem.startswith("The transcript ")


def test_session_ids_are_read_from_file_names() -> None:
    names = (f"/p/{SESSION}.jsonl", "/p/agent-1.jsonl", f"/p/{SESSION}", "/p/..jsonl", "/p/a.json")
    assert [transcripts.session_of(name) for name in names] == [SESSION, "", "", "", ""]


def test_reading_in_parts_gives_every_event_once(
    transcript: Transcript,
) -> None:
    fix(transcript)
    transcript.call("Bash", {"command": "make"})
    transcript.say("I did not wait.")
    transcript.titled("ai-title", aiTitle="A sum", sessionId=SESSION)
    whole = read(str(transcript.path), 0).events
    for most in (1, 700, 1_500, 4_000):
        found: dict[str, Event] = {}
        start, before = 0, -1
        while start != before:
            before = start
            part = read(str(transcript.path), start, most=most)
            found |= {event.id: event for event in part.events}
            start = part.next_offset
        # A result may lie further away from its call than is read at once.
        ids = [event.id for event in whole if most > 1 or not event.tool]
        assert list(found) == ids
        assert start == transcript.path.stat().st_size


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)
_block = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", 7])},
    optional={
        name: _json | st.just("t1")
        for name in ("text", "id", "tool_use_id", "name", "input", "content", "is_error")
    },
)
_line: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["user", "assistant", "queue-operation", "ai-title", "summary", "custom-title"]
        )
    },
    optional={
        "operation": st.sampled_from(["enqueue", "dequeue", "remove", "popAll"]) | _json,
        "content": _json,
        "message": st.fixed_dictionaries(
            {"content": st.lists(_block | _json, max_size=3) | st.text() | _json},
            optional={"id": _json, "model": _json},
        )
        | _json,
        "timestamp": st.sampled_from(["2026-01-01T00:00:00Z", "never", "0001-01-01"]) | _json,
        **dict.fromkeys(
            (
                *("uuid", "cwd", "sessionId", "agentId", "isSidechain", "toolUseResult"),
                *("aiTitle", "summary", "customTitle"),
            ),
            _json,
        ),
    },
)


@pytest.mark.slow
@settings(max_examples=effort.times(60), deadline=None)
@given(st.lists(_line | st.binary(max_size=40), max_size=6), st.integers(0, 4000))
def test_any_file_can_be_read(lines: list[dict[str, Any] | bytes], start: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{SESSION}.jsonl"
        data = b"\n".join(
            line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
        )
        path.write_bytes(data)
        for begin in (0, start):
            found = read(str(path), begin)
            assert found == read(str(path), begin)
            assert 0 <= found.next_offset <= max(len(data), begin)
            for event in found.events:
                assert event.id.split("-")[1] == "t"
                assert len(event.id.split("-")[0]) == 13
                json.dumps(event.payload).encode()
