"""The keys of a host's payloads and transcripts stand in its adapter, `agents/<host>/`, alone."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "ctx"

KEYS = (
    "tool_use_id tool_name tool_input tool_response hook_event_name transcript_path"
    " last_assistant_message toolUseResult sessionId parentUuid isSidechain isMeta isCompactSummary"
    " isApiErrorMessage gitBranch promptId old_string originalFile notebook_path hookSpecificOutput"
    " additionalContext CLAUDE_PID CLAUDE_PROJECT_DIR"
).split()

EXCEPTIONS = {
    # The hook process is started by Claude Code alone so far: it finds the session, the transcript
    # and the client's process in the payload without parsing it, and writes the answer.
    "agents/runtime/hook_answers.py": {"hookSpecificOutput", "additionalContext"}
    | {"CLAUDE_PID", "CLAUDE_PROJECT_DIR"},
    "agents/runtime/hook.py": {"transcript_path", "CLAUDE_PID"},
    "agents/runtime/session_context.py": {"transcript_path"},
    # `ctx hook` prints what a hook answers, and tries one by hand.
    "cli/hook.py": {"additionalContext", "hookSpecificOutput", "CLAUDE_PROJECT_DIR"},
}


def test_only_an_adapter_knows_the_keys_of_its_host() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(KEYS)})\b")
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith("agents/claude_code/") and (
            keys := set(pattern.findall(path.read_text()))
        ):
            found[name] = keys
    assert found == EXCEPTIONS


def test_nothing_below_the_agents_knows_a_host() -> None:
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(("agents/", "cli/")):
            assert "ctx.agents.claude_code" not in path.read_text(), name
