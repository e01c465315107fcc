"""Hooks in the format of Claude Code's settings, which Codex, Gemini CLI and Qwen Code use too."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ctx.agents.host_setup import hook_commands, settings_file
from ctx.agents.host_setup.host_setups import HostFile
from ctx.hook_files.spool import EVENTS


class HookSpec(NamedTuple):
    """A hook to register."""

    event: str
    """The host's name for the event."""
    word: str
    """Our name for it, with which the script is called."""
    timeout: int
    """In the unit of the host."""
    matcher: str = ""
    """The tools for which the hook runs; empty: for all."""


class HookScript(NamedTuple):
    """The script that runs the hooks of a host."""

    package: str
    """The folder of the host in `agents`."""

    def command(self, word: str) -> str:
        entry = hook_commands.entry_script(self.package)
        return hook_commands.command_line(
            word, interpreter=hook_commands.interpreter(), entry=entry
        )

    def word_of(self, command: Any) -> str | None:
        """The hook that a command line runs; None if it is not ours."""
        if not isinstance(command, str):
            return None
        word = hook_commands.hook_name(command, hook_commands.entry_ending(self.package))
        return word if word in EVENTS else None

    def is_ours(self, command: str) -> bool:
        return self.word_of(command) is not None

    def commands(self, specs: Iterable[HookSpec]) -> dict[str, str]:
        return {spec.word: self.command(spec.word) for spec in specs}


def settings_hooks(
    path: str, script: HookScript, specs: Iterable[HookSpec], more: Mapping[str, Any] | None = None
) -> HostFile:
    """The hooks in a settings file. `more`: further keys of each hook."""
    entries = {
        spec.event: {
            **({"matcher": spec.matcher} if spec.matcher else {}),
            "hooks": [
                {
                    "type": "command",
                    **(more or {}),
                    "command": script.command(spec.word),
                    "timeout": spec.timeout,
                }
            ],
        }
        for spec in specs
    }
    shown = json.dumps(settings_file.as_settings(entries), indent=2, ensure_ascii=False)
    return HostFile(
        "hooks",
        path,
        lambda text: settings_file.with_hooks(text, entries, script.is_ours),
        lambda text: None if text is None else settings_file.without_hooks(text, script.is_ours),
        f"{shown}\n",
    )
