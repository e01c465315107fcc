"""Payloads of a real client become a row in the store, or are refused."""

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctx import clock
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.known_hosts import HOSTS
from ctx.agents.runtime.hook import Hook, answer
from ctx.capture import event_store
from ctx.errors import ContentRefused
from ctx.hook_files import live, spool
from tests.agents.claude_code.hook_processes import NOTHING, SAMPLES, SILENT, WORDS, reap
from tests.conftest import Ctx

SESSIONS = (
    "068df8cf-64de-4ac7-aeaa-8d3902d4a17b",
    "1ccddfd1-735d-4dd1-86af-d846608c3327",
    "25507b15-f354-4db9-b8ea-b970a7f4a9c9",
    "2891f8b6-4997-4fb7-85d6-856d1aa4f5c8",
    "529229f7-0ff7-4cc5-be3e-f44f2503fe7f",
    "5dd65eaa-e3b0-4b25-afae-79ee4238d2da",
    "63898790-2d3e-472c-b4c5-4f9bc8b2f8ef",
    "6683f994-211b-49d8-82c9-69b9beb5e74d",
    "71ed8b62-3216-40d3-9aa2-5d7e04f0205b",
    "733e1480-ccc8-4bc1-8b69-5697e8d09bff",
    "82f43e6e-9215-4850-a64b-3d1a90d0c279",
    "da9ffae2-a3f6-4b0c-b985-353f4e63893d",
    "ddae633e-135a-41ee-9544-cb2a4661f9a9",
    "e7da9ff0-40a9-4c82-9443-e55def6c00b9",
)


class Kept(NamedTuple):
    session: str
    """How it begins."""
    folder: str
    tool: str | None = None
    tool_use: int | None = None


KEPT = {
    "PostToolUse.Agent": Kept("6683f994", "projc", "Agent", 1),
    "PostToolUse.Bash": Kept("5dd65eaa", "proj", "Bash", 1),
    "PostToolUse.Bash.background": Kept("ddae633e", "pbig", "Bash", 7),
    "PostToolUse.Bash.big": Kept("ddae633e", "pbig", "Bash", 1),
    "PostToolUse.Bash.in_subagent": Kept("6683f994", "projc", "Bash", 3),
    "PostToolUse.Edit": Kept("5dd65eaa", "proj", "Edit", 7),
    "PostToolUse.Read": Kept("5dd65eaa", "proj", "Read", 5),
    "PostToolUse.Skill": Kept("e7da9ff0", "projd", "Skill", 1),
    "PostToolUse.TaskCreate": Kept("1ccddfd1", "pmisc/sub", "TaskCreate", 3),
    "PostToolUse.TaskUpdate": Kept("1ccddfd1", "pmisc/sub", "TaskUpdate", 5),
    "PostToolUse.Write": Kept("5dd65eaa", "proj", "Write", 3),
    "PostToolUse.Write.update": Kept("ddae633e", "pbig", "Write", 5),
    "PostToolUse.mcp__demo__recall": Kept("733e1480", "projd", "mcp__demo__recall", 1),
    "PostToolUseFailure.Bash": Kept("5dd65eaa", "proj", "Bash", 9),
    "PostToolUseFailure.Read": Kept("5dd65eaa", "proj", "Read", 12),
    "PreCompact.auto": Kept("82f43e6e", "pauto"),
    "PreCompact.manual": Kept("63898790", "projb"),
    "SessionEnd.clear": Kept("63898790", "projb"),
    "SessionEnd.other": Kept("5dd65eaa", "proj"),
    "SessionEnd.prompt_input_exit": Kept("2891f8b6", "proji"),
    "SessionStart.clear": Kept("da9ffae2", "projb"),
    "SessionStart.clear.interactive": Kept("2891f8b6", "proji"),
    "SessionStart.compact": Kept("63898790", "projb"),
    "SessionStart.compact.interactive": Kept("529229f7", "proji"),
    "SessionStart.fork": Kept("25507b15", "projb"),
    "SessionStart.resume": Kept("63898790", "projb"),
    "SessionStart.startup": Kept("5dd65eaa", "proj"),
    "SessionStart.startup.interactive": Kept("529229f7", "proji"),
    "Stop": Kept("5dd65eaa", "proj"),
    "Stop.after_block": Kept("71ed8b62", "proj"),
    "SubagentStop": Kept("6683f994", "projc"),
    "SubagentStop.compaction": Kept("63898790", "projb"),
    "UserPromptSubmit": Kept("5dd65eaa", "proj"),
    "UserPromptSubmit.slash": Kept("068df8cf", "projd"),
    "UserPromptSubmit.task_notification": Kept("ddae633e", "pbig"),
}
# Events that no hook of ours is registered for.
REFUSED = (
    "CwdChanged",
    "DirectoryAdded",
    "InstructionsLoaded",
    "MessageDisplay",
    "PermissionRequest.Bash",
    "PostCompact.auto",
    "PostCompact.manual",
    "PostToolBatch",
    "PreToolUse.Agent",
    "PreToolUse.Bash",
    "PreToolUse.Bash.in_subagent",
    "PreToolUse.Edit",
    "PreToolUse.Read",
    "PreToolUse.Skill",
    "PreToolUse.TaskCreate",
    "PreToolUse.TaskUpdate",
    "PreToolUse.Write",
    "PreToolUse.mcp__demo__recall",
    "Setup.maintenance",
    "StopFailure",
    "SubagentStart",
    "TaskCompleted",
    "TaskCreated",
    "UserPromptExpansion",
)
# What becomes of each: `CTX_TEST_RENEW=1 pytest tests/capture/test_capture.py` writes it anew.
STEPS = SAMPLES.parent / "steps.json"
# Which names there are in the environment of each event: that is no sample of an event.
NO_SAMPLES = ("_env_names_by_event",)


def test_every_sample_is_expected() -> None:
    names = [*KEPT, *REFUSED, *NO_SAMPLES]
    assert sorted(path.stem for path in SAMPLES.iterdir()) == sorted(names)
    assert len(KEPT) + len(REFUSED) == 59


class Row(NamedTuple):
    """The stored row of an event."""

    session: str
    event: str
    at: str
    folder: str
    tool: str | None
    tool_use: str | None
    status: str
    attempts: int
    reason: str | None
    body: dict[str, Any] | None


@pytest.fixture
def home(surroundings: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a user with one node. Background processes of hooks do nothing."""
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    yield surroundings / ".ctx"
    reap()


def run_hook(home: Path, word: str, said: bytes) -> bytes:
    environment = {"CTX_HOME": str(home), "CLAUDE_PID": "1", "CTX_WORKER_AUTOSTART": "0"}
    return answer(Hook(word, [], environment, ClaudeHooks()), lambda: said)


def rows(home: Path) -> list[Row]:
    with closing(sqlite3.connect(home / "store.db")) as connection:
        found = connection.execute(
            "SELECT session, event, at, folder, tool, tool_use, status, attempts, reason, body"
            " FROM events"
        ).fetchall()
    return [Row._make((*values, json.loads(body) if body else None)) for *values, body in found]


@pytest.mark.parametrize("name", KEPT)
def test_a_valid_sample_is_stored(name: str, home: Path, ctx: Ctx) -> None:
    said = (SAMPLES / f"{name}.json").read_bytes()
    event = name.split(".")[0]
    word = next(word for word in WORDS if spool.EVENTS[word] == event)
    printed = run_hook(home, word, said)
    check_printed(word, printed)
    assert not (home / "hook.log").exists()
    ((event_id, heard_bytes),) = (
        (spool.id_of(each), Path(spool.path_of(str(home), each)).read_bytes())
        for each in spool.pending_names(str(home))
        if spool.kind_of(each) == word
    )
    assert heard_bytes == said
    told = json.loads(said)
    check_live(home, word, told)

    applied = ctx("hook", "apply", "--format", "json").json
    assert (applied["events"], applied["refused"], applied["stops"]) == (1, [], [])
    expected = KEPT[name]
    steps = json.loads(STEPS.read_text())
    (session,) = (each for each in SESSIONS if each.startswith(expected.session))
    tool_use = f"toolu_stub{expected.tool_use:018}" if expected.tool_use else None
    assert rows(home) == [
        Row(
            session,
            event,
            clock.iso(spool.made_ms(event_id)),
            f"/home/dev/{expected.folder}",
            expected.tool,
            tool_use,
            steps[name]["status"],
            1,
            steps[name]["reason"],
            steps[name]["body"],
        )
    ]
    assert spool.pending_names(str(home)) == []


def check_printed(word: str, printed: bytes) -> None:
    if word == "prompt-submit":
        assert printed == NOTHING.out
    elif word == "session-start":
        given = json.loads(printed)
        assert given["systemMessage"].startswith("ctx: 1 node, ")
        assert given["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        assert "Money is in cents." in given["hookSpecificOutput"]["additionalContext"]
    else:
        assert printed == SILENT.out


def check_live(home: Path, word: str, told: dict[str, Any]) -> None:
    """A started session is live, and an ended one is not."""
    found = live.read(str(home), told["session_id"])
    assert found == (f"1\n{told['cwd']}\n" if word == "session-start" else "")


@pytest.mark.parametrize("name", REFUSED)
def test_an_unknown_sample_is_refused(name: str, home: Path, ctx: Ctx) -> None:
    said = (SAMPLES / f"{name}.json").read_bytes()
    for word in WORDS:
        with pytest.raises(ContentRefused) as refused:
            event_store.read(f"1768906800123-4242-9f3a1c77.{word}", said, HOSTS)
        assert refused.value.message == f"It is a different event than {spool.EVENTS[word]}."
    # A client in which somebody has registered one of our hooks for it gets no harm.
    assert run_hook(home, "post-tool-use", said) == SILENT.out
    applied = ctx("hook", "apply", "--format", "json").json
    (refusal,) = applied["refused"]
    assert refusal["kind"] == "post-tool-use"
    assert refusal["reason"] == "It is a different event than PostToolUse."
    assert applied["events"] == 0
    assert rows(home) == []
    assert spool.pending_names(str(home)) == []
