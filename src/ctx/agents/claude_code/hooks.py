"""What a hook process knows about Claude Code: payloads, answers, variables and limits.

Codex, Gemini CLI and Qwen Code copied the payloads and the answers. Every hook of these hosts loads
this module, so it imports nothing slow.
"""

from ctx.agents.runtime.host_hooks import HostHooks, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ctx.hosts.hook_events import HookAnswer, HookEvent


class ClaudeStyleHooks(HostHooks):
    """The hooks of a host that copied those of Claude Code."""

    session_key = "session_id"
    folder_key = "cwd"
    transcript_key = "transcript_path"
    agent_key = "agent_id"
    tool_key = "tool_name"
    read_key = "file_path"

    def is_of_subagent(self, payload: bytes) -> bool:
        # Behind it are objects that may have such a field too: background tasks, tool inputs.
        head = payload[:1] + payload[1:].partition(b"{")[0]
        return super().is_of_subagent(head)

    def event(self, fields: "Mapping[str, Any]", payload: bytes) -> "HookEvent":
        idle_s = fields.get("seconds_since_last_response")
        return (
            super()
            .event(fields, payload)
            ._replace(
                is_cleared=fields.get("reason") == "clear",
                idle_s=idle_s if isinstance(idle_s, int | float) else None,
            )
        )

    def write(self, name: str, answer: "HookAnswer") -> bytes:
        if not any(answer):
            return self.nothing
        import json

        keys: dict[str, Any] = {}
        if answer.text:
            keys["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": answer.text}
        if answer.message:
            keys["systemMessage"] = answer.message
        return json.dumps(keys).encode() + b"\n"


class ClaudeHooks(ClaudeStyleHooks):
    nothing = b"{}\n"
    by_agent = (b'"type":"assistant"', b'"type": "assistant"')
    context_mark = b"hook_additional_context"
    variables = ("CLAUDE",)
    session_variable = "CLAUDE_CODE_SESSION_ID"
    process_variable = "CLAUDE_PID"
    project_variables = ("CLAUDE_PROJECT_DIR",)

    def length(self, text: str) -> int:
        """In UTF-16, as JavaScript counts."""
        return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

    def edited_files(self, payload: bytes) -> "list[str]":
        return [field(payload, "file_path") or field(payload, "notebook_path")]

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        """Copilot CLI also runs the hooks in a project's `.claude`. It reports to its own."""
        return bool(environment.get("COPILOT_CLI")) and not environment.get("CLAUDECODE")

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:
        from ctx.agents.claude_code import session_lineage

        return session_lineage.forked_from(event, process, now_s)


HOOKS = ClaudeHooks()
