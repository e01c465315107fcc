"""The hosts for which `ctx install` works, one per line, beside Claude Code.

Claude Code has its own module, `claude_code/install`: it also has settings of projects, a plugin,
and clients of several versions.
"""

import difflib

from ctx.agents.codex.setup import CodexSetup
from ctx.agents.copilot.setup import CopilotSetup
from ctx.agents.gemini.setup import GeminiSetup
from ctx.agents.host_setup.host_setups import HostSetup
from ctx.agents.host_setup.mcp_hosts import MCP_HOSTS
from ctx.agents.opencode.setup import OpenCodeSetup
from ctx.agents.qwen.setup import QwenSetup
from ctx.errors import UsageError
from ctx.hosts.host_registry import FIRST

SETUPS: tuple[HostSetup, ...] = (
    CodexSetup(),
    GeminiSetup(),
    OpenCodeSetup(),
    CopilotSetup(),
    QwenSetup(),
    *MCP_HOSTS,
)

OTHER = "other"
"""For `--print`: the entry of the MCP server for a host that ctx does not know."""

NAMES = (FIRST, *(host.name for host in SETUPS))
"""Every name for `--host`."""


def setup_named(name: str) -> HostSetup:
    return next(host for host in SETUPS if host.name == name)


def split_names(value: str) -> tuple[str, ...]:
    """The names in `codex,gemini`. UsageError names the nearest known one."""
    names = tuple(dict.fromkeys(word.strip().lower() for word in value.split(",") if word.strip()))
    if not names:
        raise UsageError("--host needs a name.", hint=f"Known: {', '.join(NAMES)}.")
    for name in names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.5)
            guess = f"Did you mean `{near[0]}`? " if near else ""
            raise UsageError(
                f"ctx does not know the host {name}.",
                hint=f"{guess}Known: {', '.join(NAMES)}. For another program:"
                f" `ctx install --host {OTHER} --print`",
            )
    return names
