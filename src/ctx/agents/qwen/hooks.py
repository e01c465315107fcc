"""What a hook process knows about Qwen Code.

Payloads and answers are Claude Code's. A prompt is reported before every request to the model,
with an empty text except for the first one. Every hook loads this module, so it imports nothing
slow.
"""

from ctx.agents.claude_code.hooks import ClaudeStyleHooks
from ctx.agents.runtime.host_hooks import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "qwen"


class QwenHooks(ClaudeStyleHooks):
    spool_name = NAME
    reader = "read_file"
    by_agent = (b'"type":"assistant"', b'"type": "assistant"')
    variables = ("QWEN_", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    session_variable = "QWEN_CODE_SESSION_ID"
    project_variables = ("QWEN_PROJECT_DIR",)
    doubling_client = "qwen-cli-mcp-client"

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        return word == "prompt-submit" and not field(payload, "prompt").strip()


HOOKS = QwenHooks()
