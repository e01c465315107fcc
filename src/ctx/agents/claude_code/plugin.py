"""The plugin: hooks, MCP server, skill and slash commands as one folder.

It runs plain `ctx` from the PATH, so the folder can be copied to another machine. It is also a
marketplace with one plugin, so that `claude plugin install` can install it from its folder. In the
repository of ctx, `scripts/plugins` writes both for everybody.
"""

import json
import os
from importlib import resources
from typing import Any

from ctx import __version__, disk
from ctx.agents.claude_code import registration
from ctx.agents.host_setup import edited_file, host_files, skill
from ctx.errors import PathRefused

NAME = "ctx"
MARKETPLACE = "ctx-memory"
MARKETPLACE_FILE = os.path.join(".claude-plugin", "marketplace.json")
COMMANDS = ("recall.md", "remember.md", "status.md")

_MANIFEST = os.path.join(".claude-plugin", "plugin.json")
_SKILL = os.path.join("skills", "ctx")
_DESCRIPTION = (
    "Durable memory across conversations: what was decided, learned and tried is kept on this"
    " machine, and the next conversation begins with what matters."
)


def files() -> dict[str, str]:
    """The paths and texts of all files in the folder."""
    return {**plugin_files(), MARKETPLACE_FILE: marketplace_text("./")}


def marketplace_text(source: str) -> str:
    """The file that offers the plugin; `source` is the plugin's folder, as seen from the root."""
    offered = {"name": NAME, "source": source, "description": _DESCRIPTION}
    return _json(
        {
            "name": MARKETPLACE,
            "description": _DESCRIPTION,
            "owner": {"name": NAME},
            # Older clients look for the description here.
            "metadata": {"description": _DESCRIPTION},
            "plugins": [offered],
        }
    )


def plugin_files() -> dict[str, str]:
    """The paths and texts of the plugin alone."""
    texts = resources.files("ctx.agents.claude_code").joinpath("texts")
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": _DESCRIPTION,
        "author": {"name": NAME},
        "license": "Apache-2.0",
        "keywords": ["memory", "context", "recall"],
    }
    return {
        _MANIFEST: _json(manifest),
        ".mcp.json": _json({"mcpServers": {host_files.NAME: host_files.PLAIN_ENTRY}}),
        os.path.join("hooks", "hooks.json"): _json({"hooks": registration.plugin_entries()}),
        **{
            os.path.join("commands", name): texts.joinpath("commands", name).read_text("utf-8")
            for name in COMMANDS
        },
        **{os.path.join(_SKILL, name): text for name, text in skill.files().items()},
        "README.md": texts.joinpath("README.md").read_text("utf-8"),
    }


def planned_paths(folder: str) -> tuple[str, ...]:
    """The paths that would be written."""
    with disk.explain_errors("looking at the plugin"):
        _refuse_other_contents(folder)
        paths = {os.path.join(folder, name): text for name, text in files().items()}
        return tuple(path for path in paths if disk.read_or_none(path) != paths[path].encode())


def write(folder: str) -> tuple[str, ...]:
    """Write or update the plugin, and return the written paths."""
    written = planned_paths(folder)
    # Others must be able to read the files, or the plugin could not be shared.
    mode = disk.shared_mode()
    with disk.explain_errors("writing the plugin"):
        for name, text in files().items():
            path = os.path.join(folder, name)
            if path in written and not name.startswith(_SKILL):
                edited_file.put(path, text.encode(), mode)
        # Files that the user has changed are kept.
        skill.write(os.path.join(folder, _SKILL), mode=mode)
    return written


def _refuse_other_contents(folder: str) -> None:
    if not os.path.lexists(folder) or (os.path.isdir(folder) and not disk.names(folder)):
        return
    if not os.path.isdir(folder):
        raise PathRefused(f"{folder} is not a folder.", hint="Name one that is empty or new.")
    try:
        manifest = json.loads(disk.read_plain(os.path.join(folder, _MANIFEST), 64 * 1024))
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("name") != NAME:
        raise PathRefused(
            f"{folder} is not empty and does not contain our plugin.",
            hint="Name a folder that is empty or new.",
        )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
