"""The keys of the payloads and transcripts of a host are only in `agents/<host>/`."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "ctx"

KEYS = (
    "tool_use_id tool_name tool_input tool_response hook_event_name transcript_path"
    " last_assistant_message toolUseResult sessionId parentUuid isSidechain isMeta isCompactSummary"
    " isApiErrorMessage gitBranch promptId old_string originalFile notebook_path hookSpecificOutput"
    " additionalContext systemMessage seconds_since_last_response hook_additional_context"
    " CLAUDE_PID CLAUDE_PROJECT_DIR aiTitle customTitle teamName agentName leadSessionId"
    # Copilot CLI
    " toolName toolArgs toolResult textResultForLlm transcriptPath hookType toolCallId"
    " transformedContent summaryContent COPILOT_PROJECT_DIR"
    # Codex
    " response_item turn_context custom_tool_call function_call_output content_item_kinds"
    # Gemini CLI
    " llmContent returnDisplay resultDisplay toolCalls functionResponse prompt_response"
    " hook_context originalContent BeforeAgent AfterTool AfterAgent GEMINI_PROJECT_DIR"
).split()
ADAPTER = re.compile(r"agents/(?!runtime/|host_setup/)\w+/")


def test_only_the_adapter_of_a_host_contains_its_keys() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(KEYS)})\b")
    strays = {}
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not ADAPTER.match(name) and (keys := set(pattern.findall(path.read_text()))):
            strays[name] = keys
    assert strays == {}


def test_the_hook_process_contains_no_keys_of_a_host() -> None:
    """Not even keys that are ordinary words in other modules."""
    pattern = re.compile(
        r"""claude|codex|gemini|["'](?:session_id|cwd|reason)["']""", re.IGNORECASE
    )
    for path in (SOURCE / "agents" / "runtime").glob("*.py"):
        assert not pattern.search(path.read_text()), path.name


def test_no_layer_below_the_agents_names_a_host() -> None:
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(("agents/", "cli/")):
            assert not re.search(r"ctx\.agents\.(?!known_hosts)", path.read_text()), name
