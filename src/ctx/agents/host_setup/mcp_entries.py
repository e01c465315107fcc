"""The registration of `ctx mcp` in the settings of a host, in each format that hosts use."""

import json
from collections.abc import Mapping
from typing import Any

from ctx.agents.host_setup import json_entries, mcp_registration, toml_tables
from ctx.agents.host_setup.host_setups import HostFile
from ctx.agents.host_setup.mcp_registration import NAME, is_our_server


def command_and_args(**more: Any) -> dict[str, Any]:
    """The entry that most hosts expect."""
    program, *arguments = mcp_registration.server_command()
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
