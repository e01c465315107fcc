"""Installs ctx for Claude Code, and uninstalls it.

It needs three things: the store, the skill, and the hooks in the client's settings. The MCP server
is registered too if the user wants it. The order
ensures that nothing is left half done: the settings are read and the hooks are tried first, as the
client would run them, and nothing is written if either fails.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2s
from typing import Any, Literal, NamedTuple

from ctx import disk
from ctx.agents.claude_code import payloads, registration
from ctx.agents.claude_code.registration import Group
from ctx.agents.host_setup import edited_file, hook_trials, host_files, settings_file, skill
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import HostFile, InstalledPart
from ctx.errors import HookFailed, PathRefused
from ctx.hook_files.spool import EVENTS
from ctx.sqlite.connection import path_text

_SHOWN_LINE = 200
_ADD_BY_HAND = "add the hooks by hand: `ctx install --print` shows them"
_REMOVE_BY_HAND = (
    "remove the hooks by hand: their commands contain `ctx hook` or `claude_code/entry.py`"
)


class InstallTarget(NamedTuple):
    """Whose settings are changed: the user's, or a project's."""

    level: Literal["user", "project"]
    folder: str
    """`…/.claude`, or the value of `CLAUDE_CONFIG_DIR`."""
    backup: str
    """The path of the settings' backup, without the time."""
    server: HostFile
    """Where the client finds the MCP server."""

    @property
    def settings(self) -> str:
        return os.path.join(self.folder, "settings.json")

    @property
    def skill(self) -> str:
        return os.path.join(self.folder, "skills", "ctx")

    @property
    def mode(self) -> int:
        """The mode of new files. Everybody who works on a project can read those of the project."""
        return disk.shared_mode() if self.level == "project" else disk.FILE_MODE


def user_place(claude_folder: str, ctx_home: str, server: HostFile) -> InstallTarget:
    name = os.path.basename(claude_folder)
    # There may be several, each with its own settings.
    backup = "settings.json" if name == ".claude" else _backup_of(claude_folder, name)
    return InstallTarget("user", claude_folder, os.path.join(ctx_home, "backups", backup), server)


def project_place(root: str, ctx_home: str) -> InstallTarget:
    """The settings of a project. A symbolic link in a clone is not followed, because it may point
    anywhere."""
    folder = os.path.join(root, ".claude")
    backup = _backup_of(root, os.path.basename(root))
    servers = os.path.join(root, ".mcp.json")
    server = host_files.json_server(servers, "mcpServers", host_files.PLAIN_ENTRY)
    place = InstallTarget("project", folder, os.path.join(ctx_home, "backups", backup), server)
    for path in (place.settings, place.skill, servers):
        real = os.path.realpath(path)
        if os.path.commonpath([real, os.path.realpath(root)]) != os.path.realpath(root):
            raise PathRefused(
                f"{path_text(path)} is a link to a place outside the project: {path_text(real)}.",
                hint="Replace the link by a plain file or folder.",
            )
    return place


def user_server(home: str, environment: Mapping[str, str]) -> HostFile:
    """In the file where the client keeps its state, which is beside `~/.claude`."""
    path = os.path.join(environment.get("CLAUDE_CONFIG_DIR") or home, ".claude.json")
    return host_files.json_server(path, "mcpServers", host_files.command_and_args(type="stdio"))


def _backup_of(folder: str, name: str) -> str:
    """The path of a backup. Folders of the same name in different places have separate backups."""
    number = blake2s(os.fsencode(os.path.realpath(folder)), digest_size=4).hexdigest()
    return f"settings.json-of-{name}-{number}"


# Installing


def write_skill(place: InstallTarget, *, dry_run: bool) -> InstalledPart:
    state = skill.write(place.skill, mode=place.mode, dry_run=dry_run)
    return InstalledPart("skill", place.skill, state)


def register(place: InstallTarget, entries: Mapping[str, Group], *, dry_run: bool) -> FileChange:
    """Register these hooks; SettingsUnreadable if it is not possible."""
    return edited_file.change(
        *(place.settings, _add_hooks(entries), place.backup),
        by_hand=_ADD_BY_HAND,
        mode=place.mode,
        dry_run=dry_run,
    )


def change_server(place: InstallTarget, edit: edited_file.Edit, *, dry_run: bool) -> FileChange:
    """Register the MCP server, or remove it: `edit` is the one or the other of its file."""
    path = place.server.path
    backup = os.path.join(os.path.dirname(place.backup), _backup_of(path, "mcp"))
    return edited_file.change(
        *(path, edit, backup),
        by_hand="see docs/mcp.md",
        mode=place.mode,
        dry_run=dry_run,
    )


def _add_hooks(entries: Mapping[str, Group]) -> edited_file.Edit:
    return lambda text: settings_file.with_hooks(text, entries, registration.is_ours)


def hooks_part(change: FileChange) -> InstalledPart:
    """One word for what registering did to the settings."""
    if not change.is_one:
        return InstalledPart("hooks", change.path, "current")
    known = settings_file.registered_hooks(change.before or "", registration.is_ours)
    return InstalledPart("hooks", change.path, "updated" if known else "added")


def matcher_warnings(change: FileChange) -> Iterator[str]:
    """Warnings about hooks of ctx to which the user added a matcher."""
    for hook in settings_file.registered_hooks(change.after or "", registration.is_ours):
        if hook.is_narrowed:
            yield (
                f"{path_text(change.path)} runs {hook.event} only for `{hook.matcher}`, as you set"
                ' it: ctx does not see other calls. The matcher "" matches all.'
            )


def unmanaged_hook_warnings(change: FileChange, advice: str) -> Iterator[str]:
    """Warnings about hooks that run ctx but were not written by it. They are not changed."""
    others = settings_file.unmanaged_hooks(
        change.after or "", registration.is_ours, registration.mentions
    )
    for hook in others:
        line = hook.line if len(hook.line) <= _SHOWN_LINE else f"{hook.line[:_SHOWN_LINE]}…"
        yield (
            f"{path_text(change.path)}, {hook.place}: this hook for {hook.event} runs ctx, differs"
            f" from what `ctx install` writes, and was not changed. {advice} It is: {line}"
        )


# Uninstalling


def remove_skill(place: InstallTarget, *, force: bool, dry_run: bool) -> InstalledPart:
    state = skill.remove(place.skill, force=force, dry_run=dry_run)
    return InstalledPart("skill", place.skill, state)


def unregister(place: InstallTarget, *, dry_run: bool) -> FileChange:
    """Remove our hooks from the settings. A file that was created for them is deleted."""
    return edited_file.change(
        *(place.settings, _remove_hooks, place.backup), by_hand=_REMOVE_BY_HAND, dry_run=dry_run
    )


def remove_folder(place: InstallTarget) -> None:
    """Remove the client's folder if it is empty."""
    with suppress(OSError):
        os.rmdir(place.folder)


def _remove_hooks(text: str | None) -> str | None:
    return None if text is None else settings_file.without_hooks(text, registration.is_ours)


# Trying hooks


def try_hooks(entries: Mapping[str, Group], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Run every command as the client would. Raises HookFailed if one of them fails."""
    commands = [hook["command"] for group in entries.values() for hook in group["hooks"]]
    words = {command: registration.word_of(command) or "" for command in commands}
    for command, word in words.items():
        problem = try_command(command, word, environment)
        if problem:
            raise HookFailed(f"The hook {word} does not work: {problem}", detail=f"  {command}")
    return tuple(dict.fromkeys(words.values()))


def try_command(command: str, word: str, environment: Mapping[str, str]) -> str:
    """Run a registered command as the client would, and return the problem, or an empty text."""

    def payload(folder: str) -> Mapping[str, Any]:
        edited = {"file_path": os.path.join(folder, hook_trials.EDITED)}
        return payloads.sample(EVENTS.get(word, ""), folder, tool_input=edited)

    return hook_trials.try_command(command, payload, environment)
