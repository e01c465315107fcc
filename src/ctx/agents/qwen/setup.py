"""Installing ctx for Qwen Code: `~/.qwen/settings.json`."""

import os
from collections.abc import Mapping
from typing import Any

from ctx.agents.claude_code import payloads
from ctx.agents.host_setup import host_files
from ctx.agents.host_setup.host_setups import HookSpec, HostFile, HostSetup, Machine


class QwenSetup(HostSetup):
    name = "qwen"
    title = "Qwen Code"
    program = "qwen"
    # In seconds. Without a terminal, Qwen Code does not report the end of a session.
    hooks = (
        HookSpec("SessionStart", "session-start", 10),
        HookSpec("UserPromptSubmit", "prompt-submit", 10),
        HookSpec("PostToolUse", "post-tool-use", 10),
        HookSpec("PostToolUseFailure", "post-tool-use-failure", 10),
        HookSpec("PreCompact", "pre-compact", 10),
        HookSpec("Stop", "stop", 10),
        HookSpec("SessionEnd", "session-end", 10),
    )

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        path = os.path.join(self.folder(machine), "settings.json")
        return (
            host_files.settings_hooks(path, self),
            host_files.json_server(path, "mcpServers", host_files.command_and_args()),
        )

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        # Without a text, the hook does nothing.
        return payloads.sample(self.event_of(word), folder, prompt="ctx install")


SETUP = QwenSetup()
