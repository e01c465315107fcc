"""The files that ctx edits for a host: its hooks, and the registration of `ctx mcp`, in each format
that hosts use.

The entry of the server names the program by its path: a host that was not started from a shell has
another PATH. That program does not read modules from the folder in which it runs, unlike
`python -m`.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ctx.agents.host_setup import hook_commands, json_entries, settings_file, toml_tables
from ctx.agents.host_setup.host_setups import HostFile, HostSetup
from ctx.errors import SettingsUnreadable

NAME = "ctx"
"""What the server is called in every host. Models see it as a part of the names of its tools."""

PLAIN_ENTRY = {"command": "ctx", "args": ["mcp"]}
"""The entry in files that are used on other machines: it runs the `ctx` on the PATH."""


def settings_hooks(path: str, host: HostSetup, more: Mapping[str, Any] | None = None) -> HostFile:
    """The hooks in a settings file in the format of Claude Code, which most hosts use too.

    `more`: further keys of each hook.
    """
    entries = {
        spec.event: {
            **({"matcher": spec.matcher} if spec.matcher else {}),
            "hooks": [
                {
                    "type": "command",
                    **(more or {}),
                    "command": host.command(spec.word),
                    "timeout": spec.timeout,
                }
            ],
        }
        for spec in host.hooks
    }
    shown = json.dumps(settings_file.as_settings(entries), indent=2, ensure_ascii=False)
    return HostFile(
        "hooks",
        path,
        lambda text: settings_file.with_hooks(text, entries, host.is_ours),
        lambda text: None if text is None else settings_file.without_hooks(text, host.is_ours),
        f"{shown}\n",
    )


def owned_file(
    what: Literal["hooks", "plugin"], path: str, content: str, is_ours: Callable[[str], bool]
) -> HostFile:
    """A file that ctx writes as a whole. `is_ours`: whether a text is such a file, of any version.

    A file of somebody else with this name is left alone.
    """
    assert is_ours(content), "the file could not be recognized"

    def add(text: str | None) -> str:
        if text is not None and not is_ours(text):
            raise SettingsUnreadable("this file was not written by ctx.")
        return content

    def remove(text: str | None) -> str | None:
        return None if text is None or is_ours(text) else text

    return HostFile(what, path, add, remove, content)


def command_and_args(**more: Any) -> dict[str, Any]:
    """The entry that most hosts expect."""
    program, *arguments = server_command()
    return {**more, "command": program, "args": arguments}


def json_server(path: str, key: str, entry: Mapping[str, Any]) -> HostFile:
    """An entry in a JSON file; `key` is the member that contains all servers."""
    where = (key, NAME)
    shown = json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)
    return HostFile(
        "mcp",
        path,
        lambda text: json_entries.with_entry(text, where, entry, is_our_server),
        lambda text: json_entries.without_entry(text, where, is_our_server),
        f"{shown}\n",
    )


def toml_server(path: str, key: str) -> HostFile:
    """A table in a TOML file."""
    where, entry = (key, NAME), command_and_args()
    return HostFile(
        "mcp",
        path,
        lambda text: toml_tables.with_table(text, where, entry, is_our_server),
        lambda text: toml_tables.without_table(text, where, is_our_server),
        toml_tables.with_table(None, where, entry, is_our_server),
    )


def server_command() -> list[str]:
    """The command line of the server."""
    interpreter = hook_commands.interpreter()
    program = os.path.join(os.path.dirname(interpreter), "ctx")
    if os.access(program, os.X_OK):
        return [program, "mcp"]
    return [interpreter, "-P", "-m", "ctx", "mcp"]


def is_our_server(entry: Any) -> bool:
    """Whether an entry starts `ctx mcp`, in whichever installation and format."""
    if not isinstance(entry, dict):
        return False
    words: list[Any] = []
    for key in ("command", "cmd", "args"):
        value = entry.get(key, [])
        # Some formats have an object with the program in it, or one list for everything.
        value = value.get("path", []) if isinstance(value, dict) else value
        words += value if isinstance(value, list) else [value]
    match words:
        case [str() as program, "mcp"]:
            return os.path.basename(program) == "ctx"
        case [str(), *_, "-m", "ctx", "mcp"]:
            return True
        case _:
            return False
