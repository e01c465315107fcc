"""What a hook process knows about GitHub Copilot CLI. Every hook loads this module, so it imports
nothing slow."""

from ctx.agents.runtime.host_hooks import HostHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ctx.hosts.hook_events import HookEvent

NAME = "copilot"

SOURCES = {"new": "startup"}
"""How the client calls the start of a session, where ctx calls it otherwise."""


class CopilotHooks(HostHooks):
    spool_name = NAME
    compacts_silently = True
    session_key = "sessionId"
    folder_key = "cwd"
    transcript_key = "transcriptPath"
    agent_key = "agentId"
    tool_key = "toolName"
    reader = "view"
    read_key = "path"
    answer_key = "additionalContext"
    by_agent = (b'"type":"assistant.message"', b'"type": "assistant.message"')
    variables = ("COPILOT_", "CLAUDE_PROJECT_DIR")
    session_variable = "COPILOT_AGENT_SESSION_ID"
    project_variables = ("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    doubling_client = "copilot-cli"

    def has_turn(self, payload: bytes, tail: bytes) -> bool:
        """The client notes the start of this hook behind the turn, with the same time."""
        digits = payload.partition(b'"timestamp":')[2].lstrip()[:13]
        return b'"agentStop"' in tail and digits in tail

    def event(self, fields: "Mapping[str, Any]", payload: bytes) -> "HookEvent":
        found = super().event(fields, payload)
        return found._replace(source=SOURCES.get(found.source or "", found.source))


HOOKS = CopilotHooks()
