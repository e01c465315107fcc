"""Installing ctx for Gemini CLI: `~/.gemini/settings.json`.

The context of a session comes with its first prompt: the hook at the start only notes that one is
to be given. A context at the start would be put in front of the prompt, and a later `--resume`
would drop both. Time limits are in milliseconds.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ctx.agents.claude_code import payloads
from ctx.agents.host_setup import host_files, json_entries
from ctx.agents.host_setup.host_setups import HookSpec, HostFile, HostSetup, Machine
from ctx.operations.store_checks import DoctorCheck, ok
from ctx.sqlite.connection import path_text

_TRUSTED = ("TRUST_FOLDER", "TRUST_PARENT")


class GeminiSetup(HostSetup):
    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    hooks = (
        HookSpec("SessionStart", "session-start", 10_000),
        HookSpec("BeforeAgent", "prompt-submit", 10_000),
        HookSpec("AfterTool", "post-tool-use", 10_000),
        HookSpec("AfterAgent", "stop", 10_000),
        HookSpec("SessionEnd", "session-end", 10_000),
    )

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        path = self._settings(machine)
        return (
            host_files.settings_hooks(path, self, {"name": "ctx"}),
            host_files.json_server(path, "mcpServers", host_files.command_and_args()),
        )

    def _settings(self, machine: Machine) -> str:
        return os.path.join(self.folder(machine), "settings.json")

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        return payloads.sample(
            self.event_of(word), folder, prompt_response="", timestamp="2026-01-01T00:00:00.000Z"
        )

    def notes(self, machine: Machine) -> Iterator[str]:
        if not _is_trusted_server(json_entries.read_object(self._settings(machine))):
            yield (
                'Gemini CLI asks before each call of our MCP tools. Add `"trust": true` to'
                " `mcpServers.ctx` to allow them; without it, `gemini -p` does not offer them."
            )

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:
        path = self._settings(machine)
        plain = json_entries.read_object(path)
        config = plain.get("hooksConfig")
        config = config if isinstance(config, dict) else {}
        if config.get("enabled") is False:
            seen = f"{path_text(path)} disables all hooks."
            yield DoctorCheck(self.name, "problem", seen, "Remove `hooksConfig.enabled` from it.")
        disabled = config.get("disabled")
        if isinstance(disabled, list) and "ctx" in disabled:
            seen = f"{path_text(path)} disables the hooks of ctx."
            yield DoctorCheck(
                self.name, "problem", seen, "Enable them with `/hooks` in Gemini CLI."
            )
        if self._needs_trust(machine, plain):
            seen = f"{path_text(machine.project)} is not a trusted folder: hooks do not run there."
            advice = (
                "Start `gemini` there and trust the folder, or set GEMINI_CLI_TRUST_WORKSPACE=true."
            )
            yield DoctorCheck(self.name, "warning", seen, advice)
        if _is_trusted_server(plain):
            yield ok(self.name, "MCP tools are allowed without a question")
        else:
            yield ok(
                self.name,
                "MCP tools ask before each call, and `gemini -p` does not offer them;"
                ' `"trust": true` in `mcpServers.ctx` allows them',
            )

    def _needs_trust(self, machine: Machine, plain: Mapping[str, Any]) -> bool:
        """Whether Gemini CLI would ask if the project is trusted."""
        security = plain.get("security")
        folder_trust = security.get("folderTrust") if isinstance(security, dict) else None
        is_off = isinstance(folder_trust, dict) and folder_trust.get("enabled") is False
        if is_off or machine.variables.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
            return False
        rules = json_entries.read_object(os.path.join(self.folder(machine), "trustedFolders.json"))
        trusted = [os.path.realpath(path) for path, rule in rules.items() if rule in _TRUSTED]
        project = os.path.realpath(machine.project or machine.home)
        return bool(machine.project) and not any(
            project == folder or project.startswith(f"{folder}/") for folder in trusted
        )


def _is_trusted_server(plain: Mapping[str, Any]) -> bool:
    servers = plain.get("mcpServers")
    entry = servers.get("ctx") if isinstance(servers, dict) else None
    return isinstance(entry, dict) and entry.get("trust") is True


SETUP = GeminiSetup()
