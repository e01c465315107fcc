"""What a hook process knows about Gemini CLI.

The fields of payloads are Claude Code's; the names of events are its own.

The context of a session comes with its first prompt: a headless session puts the answer at the
start in front of that prompt, and drops both when it is resumed. Every hook loads this module, so
it imports nothing slow.
"""

from ctx.agents.claude_code.hooks import ClaudeStyleHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ctx.hosts.hook_events import HookAnswer, HookEvent

EVENTS = {"UserPromptSubmit": "BeforeAgent", "PostToolUse": "AfterTool", "Stop": "AfterAgent"}
"""The names of events that Gemini CLI names differently."""

OPENING, CLOSING = "<hook_context>", "</hook_context>"


class GeminiHooks(ClaudeStyleHooks):
    spool_name = "gemini"
    reader = "read_file"
    largest_answer = 100_000
    """Twice as much was taken whole. It limits results, not contexts, which are much smaller."""
    starts_with_prompt = True
    by_agent = (b'"type":"gemini"', b'"type": "gemini"')
    context_mark = OPENING.encode()
    variables = ("GEMINI_", "CLAUDE_PROJECT")
    session_variable = "GEMINI_SESSION_ID"
    project_variables = ("GEMINI_PROJECT_DIR",)

    def event(self, fields: "Mapping[str, Any]", payload: bytes) -> "HookEvent":
        found = super().event(fields, payload)
        return found._replace(prompt=without_context(found.prompt))

    def write(self, name: str, answer: "HookAnswer") -> bytes:
        return super().write(EVENTS.get(name, name), answer)


def without_context(text: str) -> str:
    """A text without the context of any hook.

    Gemini CLI wraps it and stores it with the text that it belongs to: in front of the first
    prompt, after a prompt, after the result of a tool. It comes back in later payloads.
    """
    if OPENING not in text:
        return text
    kept, *parts = text.split(OPENING)
    for part in parts:
        _, closing, after = part.partition(CLOSING)
        kept = f"{kept.rstrip()}\n\n{after.lstrip()}" if closing else f"{kept}{OPENING}{part}"
    return kept.strip()


HOOKS = GeminiHooks()
