"""Hosts that ctx reaches by MCP alone: editors and desktop programs without hooks of their own."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ctx.agents.host_setup import mcp_entries, yaml_entries
from ctx.agents.host_setup.host_setups import HostFile, Machine
from ctx.operations.store_checks import DoctorCheck


class McpHost(NamedTuple):
    name: str
    title: str
    program: str
    settings: Callable[[Machine], str]
    """The path of the file with its servers."""
    register: Callable[[str], HostFile]
    reads_shared_skill: bool = False

    def folder(self, machine: Machine) -> str:
        return os.path.dirname(self.settings(machine))

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        return (self.register(self.settings(machine)),)

    def hook_commands(self) -> Mapping[str, str]:
        return {}

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        raise AssertionError(f"{self.name} has no hooks: {word}, {folder}")

    def notes(self, machine: Machine) -> Iterator[str]:  # noqa: ARG002
        yield f"Restart {self.title}. It gets the tools of `ctx mcp`; ctx records nothing there."

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:  # noqa: ARG002
        return iter(())


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
    return lambda path: mcp_entries.json_server(path, key, mcp_entries.command_and_args(**more))


# Zed has no program here: ZFS has one of the same name.
MCP_HOSTS = (
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
