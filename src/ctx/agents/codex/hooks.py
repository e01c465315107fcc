"""What a hook process knows about Codex. Payloads and answers are Claude Code's, except for these.

Codex ignores an answer with an unknown field, and cuts a text after a number of bytes. It passes on
no process id, and starts the MCP server with a bare environment. Every hook loads this module, so
it imports nothing slow.
"""

import os

from ctx.agents.claude_code.hooks import ClaudeStyleHooks
from ctx.agents.runtime.host_hooks import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_CHANGED_FILE = b"*** Update File: "
_COMMAND = b'"command":'
_READERS = (b"cat", b"head", b"nl", b"rg", b"sed", b"tail")
_LONGEST = 4_000


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
        parts = payload.split(_CHANGED_FILE)[1:]
        return self._paths(payload, [part.partition(b"\\n")[0] for part in parts])

    def read_files(self, payload: bytes) -> "list[str]":
        """The last word of a command such as `sed -n 1,80p FILE`. Nothing is parsed, because most
        commands read no file that memory knows."""
        if field(payload, self.tool_key) != "Bash":
            return []
        line = payload.partition(_COMMAND)[2][:_LONGEST].lstrip()[1:]
        line = line.replace(b'\\"', b"").partition(b'"')[0]
        words = line.partition(b" | ")[0].split()
        return self._paths(payload, words[-1:]) if words[:1] and words[0] in _READERS else []

    def _paths(self, payload: bytes, names: "list[bytes]") -> "list[str]":
        folder = self.folder(payload)
        texts = [name.decode("utf-8", "replace").strip(" '") for name in names]
        return [os.path.join(folder, text) for text in texts if text]

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
