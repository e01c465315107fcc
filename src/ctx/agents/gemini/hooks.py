"""What a hook process knows about Gemini CLI.

The fields of payloads are Claude Code's; the names of events are its own.

The context of a session comes with its first prompt: a headless session puts the answer at the
start in front of that prompt, and drops both when it is resumed. Every hook loads this module, so
it imports nothing slow.
"""

from ctx.agents.claude_code.hooks import ClaudeHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx.hosts.hook_events import HookAnswer, HookEvent

EVENTS = {"UserPromptSubmit": "BeforeAgent", "PostToolUse": "AfterTool", "Stop": "AfterAgent"}
"""The names of events that Gemini CLI names differently."""

_HOME = "GEMINI_CLI_HOME"
_BY_AGENT = (b'"type":"gemini"', b'"type": "gemini"')
_CONTEXT_OF_HOOK = b"<hook_context>"


class GeminiHooks(ClaudeHooks):
    spool_name = "gemini"
    nothing = b""
    largest_answer = 100_000
    """Twice as much was taken whole. It limits results, not contexts, which are much smaller."""
    starts_with_prompt = True

    def length(self, text: str) -> int:
        return len(text)

    def is_by_agent(self, line: bytes) -> bool:
        return any(mark in line for mark in _BY_AGENT)

    def process(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def project_folder(self, environment: "Mapping[str, str]") -> str:
        return environment.get("GEMINI_PROJECT_DIR", "")

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        return {
            name: value
            for name, value in environment.items()
            if not name.startswith(("GEMINI_", "CLAUDE_PROJECT"))
            or name == _HOME
            or name.endswith("_API_KEY")
        }

    def read(self, payload: bytes) -> "HookEvent":
        event = super().read(payload)
        if "<hook_context>" not in event.prompt:
            return event
        from ctx.agents.gemini.hook_context import without_context

        return event._replace(prompt=without_context(event.prompt))

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:  # noqa: ARG002
        return ""

    def remembers(self, event: "HookEvent") -> bool:
        from ctx.agents.runtime.transcript_ends import mentions

        return mentions(event.transcript, _CONTEXT_OF_HOOK)

    def write(self, name: str, answer: "HookAnswer") -> bytes:
        return super().write(EVENTS.get(name, name), answer) if any(answer) else b""
