"""What a hook process knows about Claude Code: payloads, answers, variables and limits.

Every hook loads this module. For an event that needs no answer it parses nothing, so `json` and
everything else is imported by the methods that need it.
"""

from ctx.agents.runtime.hook import field, text_in, with_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ctx.hosts.hook_events import HookAnswer, HookEvent

PROJECT_FOLDER = "CLAUDE_PROJECT_DIR"

_PROCESS = "CLAUDE_PID"
_CLIENT = "CLAUDECODE"
_COPILOT = "COPILOT_CLI"
_CONFIG_FOLDER = "CLAUDE_CONFIG_DIR"
_BY_AGENT = (b'"type":"assistant"', b'"type": "assistant"')


class ClaudeHooks:
    spool_name = ""
    nothing = b"{}\n"
    largest_answer = 10_000
    """The client cuts longer ones."""
    starts_with_prompt = False
    compacts_silently = False

    def length(self, text: str) -> int:
        """In UTF-16, as JavaScript counts."""
        return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

    def session(self, payload: bytes) -> str:
        return field(payload, b"session_id")

    def folder(self, payload: bytes) -> str:
        return field(payload, b"cwd")

    def transcript(self, payload: bytes) -> str:
        return field(payload, b"transcript_path")

    def edited_files(self, payload: bytes) -> "list[str]":
        return [field(payload, b"file_path") or field(payload, b"notebook_path")]

    def is_by_agent(self, line: bytes) -> bool:
        return any(mark in line for mark in _BY_AGENT)

    def is_of_subagent(self, payload: bytes) -> bool:
        # Behind it are objects that may have such a field too: background tasks, tool inputs.
        head = payload[:1] + payload[1:].partition(b"{")[0]
        return bool(field(head, b"agent_id"))

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        """Copilot CLI also runs the hooks in a project's `.claude`. It reports to its own."""
        is_copilot = bool(environment.get(_COPILOT)) and not environment.get(_CLIENT)
        return is_copilot and not self.spool_name

    def has_turn(self, payload: bytes, tail: bytes) -> bool:  # noqa: ARG002
        return True

    def process(self, environment: "Mapping[str, str]") -> str:
        return environment.get(_PROCESS, "")

    def project_folder(self, environment: "Mapping[str, str]") -> str:
        return environment.get(PROJECT_FOLDER, "")

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        return {
            name: value
            for name, value in environment.items()
            if not name.startswith("CLAUDE") or name == _CONFIG_FOLDER
        }

    def read(self, payload: bytes) -> "HookEvent":
        import json

        from ctx.hosts.hook_events import HookEvent

        parsed = json.loads(payload)
        keys = parsed if isinstance(parsed, dict) else {}
        source, idle_s = keys.get("source"), keys.get("seconds_since_last_response")
        return HookEvent(
            text_in(keys, "session_id"),
            text_in(keys, "cwd"),
            text_in(keys, "transcript_path"),
            payload,
            source if isinstance(source, str) else None,
            text_in(keys, "prompt"),
            keys.get("reason") == "clear",
            idle_s if isinstance(idle_s, int | float) else None,
        )

    def with_response(
        self, payload: bytes, session: str, folder: str, response: str
    ) -> "tuple[str, bytes]":
        return with_response(payload, ("session_id", session), ("cwd", folder), response)

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:
        from ctx.agents.claude_code import session_lineage

        return session_lineage.forked_from(event, process, now_s)

    def remembers(self, event: "HookEvent") -> bool:
        from ctx.agents.claude_code import session_lineage

        return session_lineage.remembers(event.transcript)

    def write(self, name: str, answer: "HookAnswer") -> bytes:
        import json

        keys: dict[str, Any] = {}
        if answer.text:
            keys["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": answer.text}
        if answer.message:
            keys["systemMessage"] = answer.message
        return json.dumps(keys).encode() + b"\n"
