"""The hosts that ctx supports, one per line. Entry points add them to the environment."""

from ctx.hosts.host_registry import FIRST, Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.host_adapter import Host


def _claude_code() -> "Host":
    from ctx.agents.claude_code.claude_adapter import ClaudeCode

    return ClaudeCode()


def _copilot() -> "Host":
    from ctx.agents.copilot.copilot_adapter import Copilot

    return Copilot()


def _opencode() -> "Host":
    from ctx.agents.opencode.opencode_adapter import OpenCode

    return OpenCode()


def _qwen() -> "Host":
    from ctx.agents.qwen.qwen_adapter import Qwen

    return Qwen()


def _codex() -> "Host":
    from ctx.agents.codex.codex_adapter import Codex

    return Codex()


def _gemini() -> "Host":
    from ctx.agents.gemini.gemini_adapter import Gemini

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
