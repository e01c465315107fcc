"""Installing ctx for Qwen Code: `~/.qwen/settings.json`."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ctx.agents.host_setup import mcp_entries
from ctx.agents.host_setup.hook_entries import HookScript, HookSpec, settings_hooks
from ctx.agents.host_setup.host_setups import HostFile, Machine
from ctx.operations.store_checks import DoctorCheck

# In seconds. Without a terminal, Qwen Code does not report the end of a session.
HOOKS = (
    HookSpec("SessionStart", "session-start", 10),
    HookSpec("UserPromptSubmit", "prompt-submit", 10),
    HookSpec("PostToolUse", "post-tool-use", 10),
    HookSpec("PostToolUseFailure", "post-tool-use-failure", 10),
    HookSpec("PreCompact", "pre-compact", 10),
    HookSpec("Stop", "stop", 10),
    HookSpec("SessionEnd", "session-end", 10),
)
SCRIPT = HookScript("qwen")


class QwenSetup:
    name = "qwen"
    title = "Qwen Code"
    program = "qwen"
    reads_shared_skill = True

    def folder(self, machine: Machine) -> str:
        return os.path.join(machine.home, ".qwen")

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        path = os.path.join(self.folder(machine), "settings.json")
        return (
            settings_hooks(path, SCRIPT, HOOKS),
            mcp_entries.json_server(path, "mcpServers", mcp_entries.command_and_args()),
        )

    def hook_commands(self) -> Mapping[str, str]:
        return SCRIPT.commands(HOOKS)

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        return {
            "session_id": "ctx-install-check",
            "transcript_path": os.path.join(folder, "chat.jsonl"),
            "cwd": folder,
            "hook_event_name": next(spec.event for spec in HOOKS if spec.word == word),
            "source": "startup",
            # Without a text, the hook does nothing.
            "prompt": "ctx install",
            "trigger": "manual",
            "stop_hook_active": False,
        }

    def notes(self, machine: Machine) -> Iterator[str]:  # noqa: ARG002
        return iter(())

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:  # noqa: ARG002
        return iter(())
