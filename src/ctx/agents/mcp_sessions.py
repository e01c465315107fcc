"""Where hosts name the session in which an agent calls the MCP server.

Some set a variable for the server. Codex starts servers with a bare environment, and names the
session in the metadata of each call.
"""

import json
from collections.abc import Mapping
from typing import Any

VARIABLES = (
    "CLAUDE_CODE_SESSION_ID",
    "COPILOT_AGENT_SESSION_ID",
    "GEMINI_SESSION_ID",
    "QWEN_CODE_SESSION_ID",
)

_CODEX_TURN = "x-codex-turn-metadata"


def session_in_environment(variables: Mapping[str, str]) -> str:
    """The session of the host that started the server; empty if it names none."""
    return next((variables[name] for name in VARIABLES if variables.get(name)), "")


def session_in_call(meta: Mapping[str, Any]) -> str:
    """The session that the metadata of a call names; empty if there is none."""
    turn = meta.get(_CODEX_TURN)
    if isinstance(turn, str):
        try:
            turn = json.loads(turn)
        except ValueError:
            return ""
    if not isinstance(turn, Mapping):
        return ""
    named = turn.get("session_id") or turn.get("thread_id")
    return named if isinstance(named, str) else ""
