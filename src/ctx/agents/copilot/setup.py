"""Installing ctx for GitHub Copilot CLI: `hooks/ctx.json` and `mcp-config.json` in `~/.copilot`.

A hook before a tool is never registered: if it fails, the client refuses the tool.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ctx.agents.host_setup import edited_file, host_files
from ctx.agents.host_setup.host_setups import HookSpec, HostFile, HostSetup, Machine
from ctx.errors import CtxError
from ctx.operations.store_checks import DoctorCheck
from ctx.sqlite.connection import path_text


class CopilotSetup(HostSetup):
    name = "copilot"
    title = "Copilot CLI"
    program = "copilot"
    hooks = (
        HookSpec("sessionStart", "session-start", 10),
        HookSpec("userPromptSubmitted", "prompt-submit", 10),
        HookSpec("postToolUse", "post-tool-use", 10),
        HookSpec("postToolUseFailure", "post-tool-use-failure", 10),
        HookSpec("preCompact", "pre-compact", 10),
        HookSpec("agentStop", "stop", 10),
        HookSpec("sessionEnd", "session-end", 10),
    )

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        folder = self.folder(machine)
        entry = host_files.command_and_args(type="local") | {"tools": ["*"]}
        return (
            host_files.owned_file(
                "hooks", os.path.join(folder, "hooks", "ctx.json"), hooks_text(), _is_ours
            ),
            host_files.json_server(os.path.join(folder, "mcp-config.json"), "mcpServers", entry),
        )

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        return {
            "sessionId": "ctx-install-check",
            "timestamp": 1_767_225_600_000,
            "cwd": folder,
            "source": "new",
            "prompt": "",
            "transcriptPath": os.path.join(folder, "events.jsonl") if word == "stop" else "",
            "stopReason": "end_turn",
            "reason": "complete",
        }

    def notes(self, machine: Machine) -> Iterator[str]:
        yield from (f"{check.seen} {check.advice}" for check in self.checks(machine))

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:
        """Copilot also runs Claude Code's hooks of a project, in a folder that it trusts."""
        if not machine.project:
            return
        path = os.path.join(machine.project, ".claude", "settings.json")
        try:
            text = edited_file.read(path) or ""
        except (CtxError, OSError):
            return
        if "ctx hook" in text or "/ctx/agents/claude_code/entry.py" in text:
            seen = f"{path_text(path)} has hooks of ctx, which Copilot CLI runs too."
            advice = "`ctx uninstall --project` removes them; `ctx install` registers them for you."
            yield DoctorCheck(self.name, "warning", seen, advice)


def hooks_text() -> str:
    hooks = {
        spec.event: [
            {"type": "command", "bash": SETUP.command(spec.word), "timeoutSec": spec.timeout}
        ]
        for spec in SETUP.hooks
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"


def _is_ours(text: str) -> bool:
    """Whether a file contains hooks of ctx and no others."""
    try:
        plain = json.loads(text)
        entries = [entry for listed in plain["hooks"].values() for entry in listed]
        return bool(entries) and all(SETUP.word_of(entry.get("bash")) for entry in entries)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


SETUP = CopilotSetup()
