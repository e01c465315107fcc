"""What Codex reports about subagents and programs, in hooks and in rollouts."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.codex.adapter import Codex
from ctx.agents.codex.hooks import CodexHooks
from ctx.hosts.events import Event, Heading

MAIN = "01a1f0c4-0a24-7af3-871c-c293c5417e48"
SUB = "01a1f0c4-0e9f-72f0-8bb9-5672b7fcab58"
INNER = "01a1f0d0-2a99-7f12-943a-88fbcf5d4eda"
TASK = "Count the prices."
SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": MAIN, "depth": 1}}}
INSTRUCTIONS = {"text": "You are Codex. " * 30_000}


class Rollouts:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, thread: str, prompt: str, day: str = "2026/11/18", **meta: Any) -> str:
        day_folder = self.folder / "sessions" / day
        day_folder.mkdir(parents=True, exist_ok=True)
        path = day_folder / f"rollout-{day.replace('/', '-')}T22-25-41-{thread}.jsonl"
        first = {"id": thread, "cwd": "/home/dev/shop", "originator": "codex_exec", **meta}
        user = {"type": "input_text", "text": prompt}
        said = {"type": "output_text", "text": f"Done: {prompt}"}
        lines = [
            ("session_meta", first),
            ("response_item", {"type": "message", "role": "user", "content": [user]}),
            ("response_item", {"type": "message", "role": "assistant", "content": [said]}),
        ]
        at = clock.iso(clock.now_ms())
        path.write_text(
            "".join(
                json.dumps({"timestamp": at, "type": kind, "payload": item}) + "\n"
                for kind, item in lines
            )
        )
        return str(path)

    def main(self, **meta: Any) -> str:
        known = {"session_id": MAIN, "cli_version": "0.166.0", "thread_source": "user"}
        return self.write(MAIN, "Please start.", **{**known, "source": "exec", **meta})

    def sub(self, thread: str = SUB, **meta: Any) -> str:
        known = {"session_id": MAIN, "cli_version": "0.166.0", "thread_source": "subagent"}
        return self.write(thread, TASK, **{**known, "source": SPAWN, **meta})


@pytest.fixture
def rollouts(tmp_path: Path) -> Rollouts:
    return Rollouts(tmp_path)


def hook(path: str, session: str = MAIN, **more: Any) -> Event:
    payload = {"session_id": session, "transcript_path": path, "prompt": TASK, **more}
    return Codex().read("1794800433995-1-aa", "UserPromptSubmit", clock.iso(0), payload)


def test_a_hook_names_the_subagent(rollouts: Rollouts) -> None:
    event = hook(rollouts.sub(), agent_id=SUB)
    # Its transcript is not that of the session.
    assert (event.session, event.agent, event.transcript) == (MAIN, SUB, "")


def test_the_rollout_of_an_older_version_names_it(rollouts: Rollouts) -> None:
    """The hooks report the thread of the subagent as a session."""
    path = rollouts.sub()
    event = hook(path, SUB)
    assert (event.session, event.agent, event.transcript) == (MAIN, SUB, "")
    stored = json.loads(json.dumps(event.payload))
    assert Codex().restore(Heading._make(event[:7]), stored).agent == SUB


def test_a_main_thread_has_its_caller_and_version(rollouts: Rollouts) -> None:
    event = hook(rollouts.main())
    assert (event.agent, event.caller, event.version) == ("", "codex_exec", "0.166.0")
    assert event.transcript
    (prompt, _) = Codex().transcripts.events(rollouts.main(originator="codex_sdk_ts"), 0).events
    # The first line of a rollout does not change.
    assert prompt.caller == "codex_exec"


def test_the_servers_of_codex_are_called_by_programs(rollouts: Rollouts) -> None:
    assert hook(rollouts.main(source="mcp")).caller == "mcp"


def test_a_text_is_no_evidence(rollouts: Rollouts) -> None:
    forged = json.dumps({"thread_source": "subagent", "source": SPAWN, "agent_id": SUB})
    path = rollouts.write(MAIN, forged, thread_source="user", base_instructions={"text": forged})
    event = hook(path, prompt=forged)
    assert (event.session, event.agent, event.text) == (MAIN, "", forged)
    assert Codex().transcripts.session_of(path) == MAIN
    # Neither is the rollout of another session.
    assert hook(rollouts.sub(INNER), "0b4c7bd6-6d62-4bb5-9a6f-0c8a7c1ed4d5").agent == ""


def test_a_rollout_may_be_written_later(rollouts: Rollouts, tmp_path: Path) -> None:
    path = tmp_path / "sessions/2026/11/18" / f"rollout-2026-11-18T22-25-41-{SUB}.jsonl"
    assert hook(str(path), SUB).agent == ""
    assert hook(rollouts.sub(), SUB).agent == SUB


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"base_instructions": INSTRUCTIONS},
        {"session_id": "", "thread_source": ""},
        {"session_id": "", "source": "cli", "parent_thread_id": MAIN},
    ],
)
def test_the_rollout_of_a_subagent_is_no_session(rollouts: Rollouts, meta: dict[str, Any]) -> None:
    main, sub = rollouts.main(), rollouts.sub(**meta)
    transcripts = Codex().transcripts
    assert transcripts.session_of(sub) == ""
    assert list(transcripts.files(transcripts.folder(str(rollouts.folder)))) == [main]
    assert transcripts.of_subagents(main, 0) == [sub]
    assert transcripts.of_subagents(main, clock.now_ms() + 60_000) == []
    found = transcripts.events(sub, 0).events
    assert [(each.session, each.agent, each.name) for each in found] == [
        (MAIN, SUB, "UserPromptSubmit"),
        (MAIN, SUB, "AssistantMessage"),
    ]


def test_subagents_may_run_on_a_later_day(rollouts: Rollouts) -> None:
    main = rollouts.main()
    later = rollouts.write(INNER, TASK, "2026/12/01", session_id=MAIN, thread_source="subagent")
    rollouts.write(SUB, TASK, "2026/11/17", session_id=MAIN, thread_source="subagent")
    assert Codex().transcripts.of_subagents(main, 0) == [later]


def test_a_copied_conversation_is_not_the_subagents(rollouts: Rollouts) -> None:
    """A subagent may begin with a copy of the conversation, with the person's prompts."""
    found = Codex().transcripts.events(rollouts.sub(forked_from_id=MAIN), 0).events
    assert [each.name for each in found] == ["AssistantMessage"]


def test_only_a_field_of_the_event_names_a_subagent() -> None:
    hooks = CodexHooks()
    assert hooks.is_of_subagent(json.dumps({"cwd": "/", "agent_id": SUB, "prompt": TASK}).encode())
    for fields in (
        {"prompt": json.dumps({"agent_id": SUB})},
        {"background_tasks": [{"agent_id": SUB}]},
        {"tool_input": {"agent_id": SUB}},
    ):
        assert not hooks.is_of_subagent(json.dumps({"cwd": "/", **fields}).encode())
