"""The hosts for which `ctx install` works, beside Claude Code.

Those with an adapter describe themselves in `agents/<host>/setup.py`. ctx reaches the others by MCP
alone: editors and desktop programs without hooks of their own. Claude Code has its own module,
`claude_code/install`: it also has settings of projects, a plugin, and clients of several versions.
"""

import difflib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ctx.agents import known_hosts
from ctx.agents.host_setup import host_files, yaml_entries
from ctx.agents.host_setup.host_setups import HostFile, HostSetup, Machine
from ctx.errors import UsageError
from ctx.hosts.host_registry import FIRST


class McpHost(HostSetup):
    reads_shared_skill = False

    def __init__(
        self,
        name: str,
        title: str,
        program: str,
        settings: Callable[[Machine], str],
        register: Callable[[str], HostFile],
    ) -> None:
        self.name, self.title, self.program = name, title, program
        self._settings = settings
        """The path of the file with its servers."""
        self._register = register

    def folder(self, machine: Machine) -> str:
        return os.path.dirname(self._settings(machine))

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        return (self._register(self._settings(machine)),)

    def notes(self, machine: Machine) -> Iterator[str]:  # noqa: ARG002
        yield f"Restart {self.title}. It gets the tools of `ctx mcp`; ctx records nothing there."


def _in_home(*names: str) -> Callable[[Machine], str]:
    return lambda machine: os.path.join(machine.home, *names)


def _application(*names: str) -> Callable[[Machine], str]:
    """Where a desktop program keeps its settings on this system."""
    if sys.platform == "darwin":
        return _in_home("Library", "Application Support", *names)
    return lambda machine: os.path.join(machine.config_home, *names)


def _in_config(*names: str) -> Callable[[Machine], str]:
    return lambda machine: os.path.join(machine.config_home, *names)


def _servers(key: str, **more: Any) -> Callable[[str], HostFile]:
    return lambda path: host_files.json_server(path, key, host_files.command_and_args(**more))


# Zed has no program here: ZFS has one of the same name.
_MCP_HOSTS = (
    McpHost("cursor", "Cursor", "cursor", _in_home(".cursor", "mcp.json"), _servers("mcpServers")),
    McpHost(
        "windsurf",
        "Windsurf",
        "windsurf",
        _in_home(".codeium", "windsurf", "mcp_config.json"),
        _servers("mcpServers"),
    ),
    McpHost(
        "vscode",
        "VS Code",
        "code",
        _application("Code", "User", "mcp.json"),
        _servers("servers", type="stdio"),
    ),
    McpHost("zed", "Zed", "", _in_config("zed", "settings.json"), _servers("context_servers")),
    McpHost(
        "claude-desktop",
        "Claude Desktop",
        "",
        _application("Claude", "claude_desktop_config.json"),
        _servers("mcpServers"),
    ),
    McpHost(
        "goose", "Goose", "goose", _in_config("goose", "config.yaml"), yaml_entries.goose_extension
    ),
)

SETUPS: tuple[HostSetup, ...] = (*known_hosts.setups(), *_MCP_HOSTS)

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
            near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.7)
            guess = f"Did you mean `{near[0]}`? " if near else ""
            raise UsageError(
                f"ctx does not know the host {name}.",
                hint=f"{guess}Known: {', '.join(NAMES)}. For another program:"
                f" `ctx install --host {OTHER} --print`",
            )
    return names
