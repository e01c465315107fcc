"""The hooks that are registered for a client, and how our hooks are recognised."""

import json
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agents.claude_code import registration
from ctx.agents.claude_code.hooks import HOOKS
from ctx.agents.host_setup import hook_commands
from ctx.agents.host_setup.settings_file import RegisteredHook
from ctx.hook_files.spool import EVENTS

ANSWER = {
    "hookSpecificOutput": {
        "hookEventName": "SessionStart",
        "additionalContext": hook_commands.GONE,
    },
    "systemMessage": hook_commands.GONE,
}
EDITS = "Read|Edit|MultiEdit|Write|NotebookEdit"
ENTRY = shlex.quote(registration.ENTRY)


def entry(word: str, **more: Any) -> dict[str, Any]:
    command = f"'/my tools/python' -I -S {ENTRY} {word} || {otherwise(word)}"
    return {"type": "command", "command": command, "timeout": 10, **more}


def otherwise(word: str) -> str:
    """What runs if ctx cannot."""
    return f"echo '{json.dumps(ANSWER)}'" if word == "session-start" else "true"


def registered(*versions: str | None, budget: int = 2000) -> dict[str, list[dict[str, Any]]]:
    entries = registration.user_entries(versions, interpreter="/my tools/python", budget=budget)
    matchers = {event: group["matcher"] for event, group in entries.items() if group["matcher"]}
    assert matchers == {"PreToolUse": EDITS}
    return {event: group["hooks"] for event, group in entries.items()}


WHAT_ALL_KNOW = {
    event: [entry(word)] for word, event in EVENTS.items() if event != "PostToolUseFailure"
}
WHAT_NEW_ONES_KNOW = {
    **WHAT_ALL_KNOW,
    "PostToolUse": [entry("post-tool-use", **{"async": True})],
    "PostToolUseFailure": [entry("post-tool-use-failure", **{"async": True})],
    "SubagentStop": [entry("subagent-stop", **{"async": True})],
}


@pytest.mark.parametrize("versions", [("2.1.15",), ("2.1.325", "2.1.15"), ("3.0.0-beta.1",)])
def test_new_clients_get_all_hooks(versions: tuple[str, ...]) -> None:
    assert registered(*versions) == WHAT_NEW_ONES_KNOW


@pytest.mark.parametrize("versions", [(), ("2.1.325", "2.0.47"), ("2.1.325", None), ("2.1.14",)])
def test_one_old_client_limits_the_hooks(
    versions: tuple[str | None, ...],
) -> None:
    assert registered(*versions) == WHAT_ALL_KNOW


@pytest.mark.parametrize(
    ("versions", "kept"),
    [((), True), ((None,), True), ((None, "2.1.325"), True), ((None, "2.0.47"), False)],
)
def test_a_shell_that_does_not_find_the_client_drops_no_hook(
    versions: tuple[str | None, ...], *, kept: bool
) -> None:
    present = [
        RegisteredHook(event, "", hook)
        for event, hooks in WHAT_NEW_ONES_KNOW.items()
        for hook in hooks
    ]
    entries = registration.user_entries(
        versions, interpreter="/my tools/python", budget=2000, present=present
    )
    hooks = {event: group["hooks"] for event, group in entries.items()}
    assert hooks == (WHAT_NEW_ONES_KNOW if kept else WHAT_ALL_KNOW)


@pytest.mark.parametrize(
    ("budget", "parts"), [(100, 1), (2500, 1), (2501, 2), (6000, 3), (20_000, 8), (1_000_000, 8)]
)
def test_a_large_context_is_registered_in_parts(budget: int, parts: int) -> None:
    words = [f"session-start --part {number}" for number in range(2, parts + 1)]
    hooks = registered(budget=budget)
    assert hooks["SessionStart"] == [entry("session-start"), *map(entry, words)]
    assert hooks["Stop"] == [entry("stop")]


def test_project_hooks_run_plain_ctx_and_work_in_every_client() -> None:
    assert registration.project_entries() == {
        event: {
            "matcher": EDITS if event == "PreToolUse" else "",
            "hooks": [{"type": "command", "command": f"ctx hook {word} || true", "timeout": 10}],
        }
        for word, event in EVENTS.items()
        if event != "PostToolUseFailure"
    }
    assert registration.plugin_entries() == {
        event: [group] for event, group in registration.project_entries().items()
    }


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_command_line_survives_the_shell_and_is_recognised(path: str) -> None:
    interpreter, script = f"/{path}/python", f"/{path}/ctx/agents/claude_code/entry.py"
    for word in EVENTS:
        line = hook_commands.command_line(word, HOOKS, interpreter=interpreter, entry=script)
        words = [interpreter, "-I", "-S", script, word, "||", *shlex.split(otherwise(word))]
        assert shlex.split(line) == words
        assert registration.word_of(line) == word


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("ctx hook stop", "stop"),
        ("  ctx hook session-start --part 2 || true ", "session-start"),
        ("/usr/local/bin/ctx hook stop", "stop"),
        ('"$HOME/my bin/ctx" hook stop||true', "stop"),
        ("python3 -I -S /x/ctx/agents/claude_code/entry.py stop", "stop"),
        ("'/a b/python' -I -S \"/x y/ctx/agents/claude_code/entry.py\" stop || true\n", "stop"),
    ],
)
def test_our_command_lines_are_recognised(command: str, word: str | None) -> None:
    assert registration.word_of(command) == word
    assert registration.is_ours(command)
    assert not registration.mentions(command)


@pytest.mark.parametrize(
    "command",
    [
        # Whoever has written these would lose something if they were taken for ours.
        "timeout 5 ctx hook stop",
        "CTX_HOME=/data/ctx ctx hook stop",
        "FOO=1 python -I -S /x/ctx/agents/claude_code/entry.py stop || true",
        "python3 /x/ctx/agents/claude_code/entry.py stop",
        "'/x y/python' -I -S '/x y/ctx/agents/claude_code/entry.py' stop 2>/dev/null || true",
        "cd /x && ctx hook stop",
        "make\nctx hook stop",
        "ctx hook stop && make",
        "ctx hook stop; true",
        "ctx hook stop # mine",
        "ctx hook session-start || echo broken",
        "sh -c 'ctx hook stop'",
        "ctx -C /x --db y.db hook stop",
        # From a version that knows more.
        "ctx hook a-word-of-tomorrow || true",
        "python -I -S /x/ctx/agents/claude_code/entry.py a-word-of-tomorrow || true",
        # It runs nothing of ours, but nobody can know that without being a shell.
        "echo ctx hook stop",
        "ctx hook stop" + " " * 100_000,
    ],
)
def test_modified_command_lines_only_mention_our_hooks(command: str) -> None:
    assert registration.mentions(command)
    assert not registration.is_ours(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "make",
        "ctx hook",
        "ctx hook 'stop",
        "sh -c 'ctx hook stopping'",
        "ctx status",
        "notify-send ctx hook fired",
        "echo /ctx/agents/claude_code/entry.py",
        "my-ctx hook stop",
        "ctx hookstop stop",
        "sh -c 'ctx hook stop-words'",
    ],
)
def test_other_command_lines_are_not_ours(command: str) -> None:
    assert not registration.is_ours(command)
    assert not registration.mentions(command)
