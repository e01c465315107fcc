"""Installs ctx for a host, and uninstalls it: its files, and the skill that hosts share."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import blake2s
from typing import NamedTuple

from ctx import disk
from ctx.agents.host_setup import edited_file, hook_trials, skill
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import HostFile, HostSetup, InstalledPart, Machine
from ctx.errors import CtxError, HookFailed


class HostParts(NamedTuple):
    """Which parts of a host to install."""

    hooks: bool = True
    skill: bool = True
    mcp: bool = True

    def files(self, host: HostSetup, machine: Machine) -> tuple[HostFile, ...]:
        left_out = (() if self.hooks else WITH_HOOKS) + (() if self.mcp else ("mcp",))
        return tuple(file for file in host.files(machine) if file.what not in left_out)


WITH_HOOKS = ("hooks", "plugin")


# Installing


def try_hooks(host: HostSetup, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Run every hook as the host would. Raises HookFailed if one of them fails."""
    commands = host.hook_commands()
    for word, command in commands.items():
        payload = partial(host.sample_payload, word)
        if problem := hook_trials.try_command(command, payload, environment):
            raise HookFailed(
                f"The hook {word} for {host.title} does not work: {problem}", detail=f"  {command}"
            )
    return tuple(commands)


def write_files(
    host: HostSetup, machine: Machine, parts: HostParts, *, dry_run: bool = False
) -> Iterator[FileChange]:
    """The change of each file; SettingsUnreadable if one is not possible."""
    by_hand = f"add it by hand: `ctx install --host {host.name} --print` shows it"
    for file in parts.files(host, machine):
        backup = backup_path(machine, host, file)
        yield edited_file.change(file.path, file.add, backup, by_hand=by_hand, dry_run=dry_run)


def added_part(file: HostFile, change: FileChange) -> InstalledPart:
    """One word for what an installation did to a file."""
    if not change.is_one:
        return InstalledPart(file.what, file.path, "current")
    was_there = file.remove(change.before) != change.before
    return InstalledPart(file.what, file.path, "updated" if was_there else "added")


def shared_skill_is_needed(hosts: Iterable[HostSetup], machine: Machine) -> bool:
    """Whether one of these hosts reads the shared skill and no other copy."""
    has_other = os.path.lexists(os.path.join(machine.claude_skill, "SKILL.md"))
    return any(
        host.reads_shared_skill and not (host.reads_claude_skill and has_other) for host in hosts
    )


# Uninstalling


def remove_files(
    host: HostSetup, machine: Machine, *, dry_run: bool = False
) -> Iterator[tuple[HostFile, FileChange]]:
    by_hand = "remove by hand what `ctx install` added"
    for file in reversed(host.files(machine)):
        backup = backup_path(machine, host, file)
        change = edited_file.change(
            file.path, file.remove, backup, by_hand=by_hand, dry_run=dry_run
        )
        if change.is_one and change.after is None and not dry_run:
            _remove_empty_folders(os.path.dirname(file.path), machine.home)
        yield file, change


def is_registered(
    host: HostSetup, machine: Machine, parts: Collection[str] = ("hooks", "mcp", "plugin")
) -> bool:
    """Whether a file of the host contains our part, or one of these parts."""
    for file in host.files(machine):
        if file.what not in parts:
            continue
        with suppress(CtxError):
            if edited_file.plan_change(file.path, file.remove).is_one:
                return True
    return False


def remove_shared_skill(machine: Machine, *, force: bool, dry_run: bool) -> InstalledPart:
    folder = machine.shared_skill
    state = skill.remove(folder, force=force, dry_run=dry_run)
    if state == "removed" and not dry_run:
        _remove_empty_folders(os.path.dirname(folder), machine.home)
    return InstalledPart("skill", folder, state)


def _remove_empty_folders(folder: str, home: str) -> None:
    """Folders that were created for a file go with it."""
    while folder.startswith(f"{home}/") and not disk.names(folder):
        with suppress(OSError):
            os.rmdir(folder)
        folder = os.path.dirname(folder)


def backup_path(machine: Machine, host: HostSetup, file: HostFile) -> str:
    """The path of a backup, without the time. Each file has its own."""
    number = blake2s(os.fsencode(os.path.realpath(file.path)), digest_size=4).hexdigest()
    name = f"{os.path.basename(file.path)}-of-{host.name}-{number}"
    return os.path.join(machine.ctx_home, "backups", name)
