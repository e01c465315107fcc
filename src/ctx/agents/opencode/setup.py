"""Installing ctx for OpenCode: one plugin file, and an entry in `opencode.json`.

The plugin is plain JavaScript and needs nothing from npm. With any plugin, OpenCode runs an npm
install in its folder at the start, which takes long without a network.
"""

import json
import os
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from ctx.agents.host_setup import hook_commands, host_files
from ctx.agents.host_setup.host_setups import HostFile, HostSetup, Machine
from ctx.operations.store_checks import DoctorCheck, ok
from ctx.sqlite.connection import path_text

_WORDS = (
    "session-start",
    "prompt-submit",
    "post-tool-use",
    "post-tool-use-failure",
    "pre-compact",
    "stop",
    "session-end",
)

_FIRST_LINE = "// The plugin of ctx for OpenCode"
_COMMAND = 'const COMMAND = ["ctx", "hook", "opencode"]'
_NAMES = ("opencode.json", "opencode.jsonc")


class OpenCodeSetup(HostSetup):
    name = "opencode"
    title = "OpenCode"
    program = "opencode"
    reads_claude_skill = True

    def folder(self, machine: Machine) -> str:
        return os.path.join(machine.config_home, "opencode")

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        folder = self.folder(machine)
        paths = [os.path.join(folder, name) for name in _NAMES]
        settings = next((path for path in paths if os.path.lexists(path)), paths[0])
        entry = {"type": "local", "command": host_files.server_command(), "enabled": True}
        return (
            host_files.owned_file(
                "plugin", os.path.join(folder, "plugins", "ctx.js"), plugin_text(), is_our_plugin
            ),
            host_files.json_server(settings, "mcp", entry),
        )

    def hook_commands(self) -> Mapping[str, str]:
        return {word: self.command(word) for word in _WORDS}

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:  # noqa: ARG002
        return {
            "session": "ctx-install-check",
            "folder": folder,
            "agent": "",
            "source": "startup",
            "prompt": "",
            "messages": [],
        }

    def notes(self, machine: Machine) -> Iterator[str]:  # noqa: ARG002
        yield _OFFLINE

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:
        if machine.variables.get("npm_config_fetch_retries") == "0":
            yield ok(self.name, "starts without waiting for npm")
        else:
            yield ok(self.name, _OFFLINE)
        copies = [
            folder
            for folder in (machine.shared_skill, machine.claude_skill)
            if os.path.lexists(os.path.join(folder, "SKILL.md"))
        ]
        if len(copies) == 2:
            seen = f"reads the skill twice: {' and '.join(map(path_text, copies))}"
            yield ok(self.name, seen)
        for folder in (os.path.join(self.folder(machine), "plugin"), *_project_folders(machine)):
            path = os.path.join(folder, "ctx.js")
            if os.path.lexists(path):
                seen = f"{path_text(path)} is a second plugin of this name, so events come twice."
                yield DoctorCheck(self.name, "warning", seen, "Remove it.")


_OFFLINE = (
    "OpenCode runs `npm install` for plugins when it starts, which takes a minute without a"
    " network. Offline, set npm_config_fetch_retries=0."
)


def _project_folders(machine: Machine) -> Iterator[str]:
    for name in ("plugins", "plugin") if machine.project else ():
        yield os.path.join(machine.project, ".opencode", name)


def plugin_text() -> str:
    """The plugin, with the command of this installation."""
    text = resources.files("ctx.agents.opencode").joinpath("ctx.js").read_text("utf-8")
    entry = hook_commands.entry_script("opencode")
    command = [hook_commands.interpreter(), "-I", "-S", entry]
    assert _COMMAND in text, "the plugin has no command to replace"
    return text.replace(_COMMAND, f"const COMMAND = {json.dumps(command, ensure_ascii=False)}")


def is_our_plugin(text: str) -> bool:
    return text.startswith(_FIRST_LINE)


SETUP = OpenCodeSetup()
