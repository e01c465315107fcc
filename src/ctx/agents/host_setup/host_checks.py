"""What `ctx doctor` checks for a host other than Claude Code. It changes nothing."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from ctx import clock
from ctx.agents.host_setup import edited_file, hook_trials, host_install, skill
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import HostFile, HostSetup, Machine, find_host
from ctx.errors import CtxError
from ctx.operations.store_checks import DoctorCheck, guard_check, ok
from ctx.sqlite.connection import path_text

EXTENSION = "ctx-memory"
"""What our extension is called in hosts that have extensions."""

_PARTS = {"hooks": "hooks", "mcp": "MCP server", "plugin": "plugin"}


def records(host: HostSetup, machine: Machine) -> bool:
    """Whether the host runs our hooks."""
    return os.path.isdir(_extension(host, machine)) or host_install.is_registered(
        host, machine, host_install.WITH_HOOKS
    )


def _extension(host: HostSetup, machine: Machine) -> str:
    return os.path.join(host.folder(machine), "extensions", EXTENSION)


def check_hosts(
    hosts: Sequence[HostSetup], machine: Machine, tick: clock.Tick = clock.no_tick
) -> Iterator[DoctorCheck]:
    """All checks of the hosts that are on this machine, or that ctx is registered with."""
    for done, host in enumerate(hosts):
        tick(done, len(hosts))
        extension = _extension(host, machine)
        if host_install.is_registered(host, machine):
            yield from guard_check(host.name, _registered_host(host, machine))
            if os.path.isdir(extension):
                yield _registered_twice(host, extension)
        elif os.path.isdir(extension):
            yield ok(host.name, f"the extension {path_text(extension)} provides the hooks")
        elif where := find_host(host, machine):
            command = f"`ctx install --host {host.name}`"
            yield ok(
                host.name, f"{host.title} is here ({path_text(where)}), without ctx: {command}"
            )


def _registered_twice(host: HostSetup, extension: str) -> DoctorCheck:
    seen = f"{host.title} also has the extension {path_text(extension)}: every event comes twice."
    advice = f"Remove the extension, or run `ctx uninstall --host {host.name}`."
    return DoctorCheck(host.name, "warning", seen, advice)


def _registered_host(host: HostSetup, machine: Machine) -> Iterator[DoctorCheck]:
    command = f"ctx install --host {host.name}"
    current: list[HostFile] = []
    for file in host.files(machine):
        try:
            change = edited_file.plan_change(file.path, file.add)
        except CtxError as error:
            yield DoctorCheck(host.name, "problem", error.message, error.hint or "")
            continue
        if not change.is_one:
            current.append(file)
        else:
            yield _outdated_part(host, file, change, command)
    if current:
        parts = ", ".join(f"{_PARTS[file.what]} in {path_text(file.path)}" for file in current)
        yield ok(host.name, f"{parts}, up to date")
    yield from _skill(host, machine, command)
    if any(file.what in ("hooks", "plugin") for file in current):
        yield from _trials(host, machine, command)
    yield from host.checks(machine)


def _outdated_part(
    host: HostSetup, file: HostFile, change: FileChange, command: str
) -> DoctorCheck:
    where = path_text(file.path)
    if file.remove(change.before) == change.before:
        # Without hooks nothing is recorded; without the server the agent can still run `ctx`.
        state: Literal["warning", "problem"] = "warning" if file.what == "mcp" else "problem"
        seen = f"{host.title}: the {_PARTS[file.what]} of ctx is not in {where}."
        return DoctorCheck(host.name, state, seen, f"`{command}` adds it.")
    seen = f"{where} differs from what this ctx registers."
    then = host.after_update if file.what in host_install.WITH_HOOKS else ""
    return DoctorCheck(host.name, "warning", seen, f"`{command}` updates it.{then}")


def _skill(host: HostSetup, machine: Machine, command: str) -> Iterator[DoctorCheck]:
    if not host_install.shared_skill_is_needed([host], machine):
        return
    folder = machine.shared_skill
    if not os.path.lexists(os.path.join(folder, "SKILL.md")):
        seen = f"The skill is not in {path_text(folder)}, so the agent does not know the commands."
        yield DoctorCheck(host.name, "warning", seen, f"`{command}` writes it.")
    elif not skill.is_current(folder) and not skill.edited_pages(folder):
        seen = f"{path_text(folder)} is from another version of ctx."
        yield DoctorCheck(host.name, "warning", seen, f"`{command}` updates it.")


def _trials(host: HostSetup, machine: Machine, command: str) -> Iterator[DoctorCheck]:
    """Run each hook as the host would."""
    commands = host.hook_commands()
    failures: dict[str, list[str]] = {}
    for word, line in commands.items():
        payload = partial(host.sample_payload, word)
        if problem := hook_trials.try_command(line, payload, machine.variables):
            failures.setdefault(problem, []).append(word)
    for problem, words in failures.items():
        seen = f"{', '.join(words)}: {problem}"
        yield DoctorCheck(host.name, "problem", seen, f"`{command}` registers it again.")
    if commands and not failures:
        yield ok(host.name, f"tried {', '.join(commands)}: fine")
