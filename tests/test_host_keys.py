"""The keys of a host's payloads and transcripts stand in its adapter, `agents/<host>/`, alone."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "ctx"

KEYS = (
    "tool_use_id tool_name tool_input tool_response hook_event_name transcript_path"
    " last_assistant_message toolUseResult sessionId parentUuid isSidechain isMeta isCompactSummary"
    " isApiErrorMessage gitBranch promptId old_string originalFile notebook_path hookSpecificOutput"
    " additionalContext systemMessage seconds_since_last_response hook_additional_context"
    " CLAUDE_PID CLAUDE_PROJECT_DIR aiTitle customTitle teamName agentName leadSessionId"
).split()


def test_only_an_adapter_knows_the_keys_of_its_host() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(KEYS)})\b")
    strays = {}
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith("agents/claude_code/") and (
            keys := set(pattern.findall(path.read_text()))
        ):
            strays[name] = keys
    assert strays == {}


def test_the_hook_process_knows_no_host() -> None:
    """It does not use keys either that are ordinary words in other modules."""
    pattern = re.compile(r"""claude|["'](?:session_id|cwd|reason)["']""", re.IGNORECASE)
    for path in (SOURCE / "agents" / "runtime").glob("*.py"):
        assert not pattern.search(path.read_text()), path.name


def test_nothing_below_the_agents_knows_a_host() -> None:
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(("agents/", "cli/")):
            assert "ctx.agents.claude_code" not in path.read_text(), name
