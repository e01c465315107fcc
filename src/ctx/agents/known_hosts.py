"""The hosts that ctx supports, one per line. Entry points add them to the environment."""

from ctx.hosts.host_registry import FIRST, Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.host_adapter import Hooks, Host


def _claude_code() -> "Host":
    from ctx.agents.claude_code.adapter import ClaudeCode

    return ClaudeCode()


def _copilot() -> "Host":
    from ctx.agents.copilot.adapter import Copilot

    return Copilot()


def _opencode() -> "Host":
    from ctx.agents.opencode.adapter import OpenCode

    return OpenCode()


def _qwen() -> "Host":
    from ctx.agents.qwen.adapter import Qwen

    return Qwen()


def _codex() -> "Host":
    from ctx.agents.codex.adapter import Codex

    return Codex()


def _gemini() -> "Host":
    from ctx.agents.gemini.adapter import Gemini

    return Gemini()


HOSTS = Hosts(
    {
        FIRST: _claude_code,
        "codex": _codex,
        "gemini": _gemini,
        "opencode": _opencode,
        "copilot": _copilot,
        "qwen": _qwen,
    }
)


def hooks_of(name: str) -> "Hooks | None":
    """The hooks of a host, without its adapter, which takes longer to load; None: unknown host."""
    match name:
        case "claude-code":
            from ctx.agents.claude_code.hooks import ClaudeHooks

            return ClaudeHooks()
        case "codex":
            from ctx.agents.codex.hooks import CodexHooks

            return CodexHooks()
        case "gemini":
            from ctx.agents.gemini.hooks import GeminiHooks

            return GeminiHooks()
        case "opencode":
            from ctx.agents.opencode.hooks import OpenCodeHooks

            return OpenCodeHooks()
        case "copilot":
            from ctx.agents.copilot.hooks import CopilotHooks

            return CopilotHooks()
        case "qwen":
            from ctx.agents.qwen.hooks import QwenHooks

            return QwenHooks()
    return None
