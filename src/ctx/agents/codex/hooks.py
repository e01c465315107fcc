"""What a hook process knows about Codex. Payloads and answers are Claude Code's, except for these.

Codex ignores an answer with an unknown field, and cuts a text after a number of bytes. It passes on
no process id, and starts the MCP server with a bare environment. Every hook loads this module, so
it imports nothing slow.
"""

from ctx.agents.claude_code.hooks import ClaudeStyleHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_CHANGED_FILE = b"*** Update File: "


class CodexHooks(ClaudeStyleHooks):
    spool_name = "codex"
    by_agent = (b'"role":"assistant"', b'"role": "assistant"')
    # Compaction removes the context, and is followed by another start.
    context_mark = b"hooks.additional_context"
    variables = ("CODEX_",)

    def length(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass"))

    def edited_files(self, payload: bytes) -> "list[str]":
        """The files of a patch, whose lines are joined by escaped line breaks in JSON."""
        folder = self.folder(payload)
        parts = payload.split(_CHANGED_FILE)[1:]
        names = [part.partition(b"\\n")[0].decode("utf-8", "replace").strip() for part in parts]
        return [name if name.startswith("/") else f"{folder}/{name}" for name in names if name]

    def session_in_call(self, meta: "Mapping[str, Any]") -> str:
        turn = meta.get("x-codex-turn-metadata")
        if isinstance(turn, str):
            import json

            try:
                turn = json.loads(turn)
            except ValueError:
                return ""
        named = isinstance(turn, dict) and (turn.get("session_id") or turn.get("thread_id"))
        return named if isinstance(named, str) else ""


HOOKS = CodexHooks()
