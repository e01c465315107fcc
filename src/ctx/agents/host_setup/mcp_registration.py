"""The entry under which a host starts `ctx mcp`.

It names the program by its path: a host that was not started from a shell has another PATH. That
program does not read modules from the folder in which it runs, unlike `python -m`.
"""

import os
from typing import Any

from ctx.agents.host_setup import hook_commands

NAME = "ctx"
"""What the server is called in every host. Models see it as a part of the names of its tools."""

PLAIN_ENTRY = {"command": "ctx", "args": ["mcp"]}
"""The entry in files that are used on other machines: it runs the `ctx` on the PATH."""


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
