"""What a hook process knows about Codex. Payloads and answers are Claude Code's, except for these.

Codex ignores an answer with an unknown field, and cuts a text after a number of bytes. It passes on
no process id. Every hook loads this module, so it imports nothing slow.
"""

from ctx.agents.claude_code.hooks import ClaudeHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx.hosts.hook_events import HookAnswer, HookEvent

_HOME = "CODEX_HOME"
_BY_AGENT = (b'"role":"assistant"', b'"role": "assistant"')
_CHANGED_FILE = b"*** Update File: "
_CONTEXT_OF_HOOK = b"hooks.additional_context"


class CodexHooks(ClaudeHooks):
    spool_name = "codex"
    nothing = b""
    largest_answer = 10_000

    def edited_files(self, payload: bytes) -> "list[str]":
        """The files of a patch, whose lines are joined by escaped line breaks in JSON."""
        folder = self.folder(payload)
        parts = payload.split(_CHANGED_FILE)[1:]
        names = [part.partition(b"\\n")[0].decode("utf-8", "replace").strip() for part in parts]
        return [name if name.startswith("/") else f"{folder}/{name}" for name in names if name]

    def length(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass"))

    def is_by_agent(self, line: bytes) -> bool:
        return any(mark in line for mark in _BY_AGENT)

    def process(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def project_folder(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        return {
            name: value
            for name, value in environment.items()
            if not name.startswith("CODEX_") or name == _HOME
        }

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:  # noqa: ARG002
        return ""

    def remembers(self, event: "HookEvent") -> bool:
        """A resumed conversation keeps the context of hooks. Compaction removes it, and is followed
        by another start."""
        from ctx.agents.runtime.transcript_ends import mentions

        return mentions(event.transcript, _CONTEXT_OF_HOOK)

    def write(self, name: str, answer: "HookAnswer") -> bytes:
        return super().write(name, answer) if any(answer) else b""
