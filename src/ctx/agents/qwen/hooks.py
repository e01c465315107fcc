"""What a hook process knows about Qwen Code.

Payloads and answers are Claude Code's. A prompt is reported before every request to the model,
with an empty text except for the first one. Every hook loads this module, so it imports nothing
slow.
"""

from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.runtime.hook import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx.hosts.hook_events import HookAnswer, HookEvent

NAME = "qwen"

_OF_SESSION = (
    *("QWEN_CODE_SESSION_ID", "QWEN_PROJECT_DIR"),
    *("GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
)


class QwenHooks(ClaudeHooks):
    spool_name = NAME
    nothing = b""
    largest_answer = 10_000
    """The client takes three times as much, but no session needs it."""

    def length(self, text: str) -> int:
        return len(text)

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        return word == "prompt-submit" and not field(payload, b"prompt").strip()

    def process(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def project_folder(self, environment: "Mapping[str, str]") -> str:
        return environment.get("QWEN_PROJECT_DIR", "")

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        return {name: environment[name] for name in environment if name not in _OF_SESSION}

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:  # noqa: ARG002
        return ""

    def remembers(self, event: "HookEvent") -> bool:  # noqa: ARG002
        """A resumed session has only the context of its last start."""
        return False

    def write(self, name: str, answer: "HookAnswer") -> bytes:
        return super().write(name, answer) if any(answer) else self.nothing
