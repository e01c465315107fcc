"""`ctx install --host` and `ctx uninstall --host`: every host but Claude Code."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ctx import layout
from ctx.agents.host_setup import (
    host_files,
    host_install,
    known_setups,
    own_program,
    program_runs,
    skill,
)
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_install import HostParts
from ctx.agents.host_setup.host_setups import HostSetup, InstalledPart, Machine, State, find_host
from ctx.agents.runtime.notices import CAPTURED
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.install_answers import (
    ByHand,
    HostResult,
    HostsResult,
    InstallResult,
    render_hosts,
    render_hosts_by_hand,
)
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.hosts.host_registry import FIRST


class HostChoice(NamedTuple):
    """For which hosts to install."""

    claude_code: bool
    others: tuple[HostSetup, ...]
    is_unknown: bool = False
    """Whether only the entry of the MCP server is wanted, for a host that ctx does not know."""


def host_options(group: argparse._ActionsContainer, doing: str) -> None:
    named = group.add_argument(
        "--host",
        metavar="NAME,…",
        help=f"{doing} these hosts: {', '.join(known_setups.NAMES)}",
    )
    shared.complete_with(named, "host")
    shared.flag(group, "--all", f"{doing} every host on this machine", dest="all_hosts")


def machine_of(settings: Settings) -> Machine:
    home = settings.user_store.home
    project = layout.place(settings.folder, home).folder
    return Machine(settings.expanded("~"), surroundings.variables(), home, project)


def choose_hosts(
    options: argparse.Namespace, machine: Machine, claude_folder: str, output: Output
) -> HostChoice:
    """The hosts that the options name. On a terminal, the user is asked about those that ctx
    finds; elsewhere, it is Claude Code alone."""
    if options.host:
        if options.host.strip().lower() == known_setups.OTHER:
            if not options.only_print:
                raise UsageError(f"--host {known_setups.OTHER} only works with --print.")
            return HostChoice(False, (), is_unknown=True)
        return named_hosts(options.host)
    present = [host for host in known_setups.SETUPS if find_host(host, machine)]
    has_claude = _has_claude_code(machine, claude_folder) or not present
    if options.all_hosts:
        return HostChoice(has_claude, tuple(present))
    is_asked = output.is_interactive and output.is_for_people
    if not is_asked or options.only_print or options.dry_run or options.project:
        return HostChoice(True, ())
    known = [host for host in present if host_install.is_registered(host, machine)]
    new = [host for host in present if host not in known]
    if new and _agrees(output, new, has_claude=has_claude):
        return HostChoice(has_claude, tuple(present))
    return HostChoice(True, tuple(known))


def _has_claude_code(machine: Machine, claude_folder: str) -> bool:
    folders = machine.variables.get("PATH", "").split(os.pathsep)
    return os.path.isdir(claude_folder) or any(program_runs.programs("claude", folders))


def _agrees(output: Output, new: Sequence[HostSetup], *, has_claude: bool) -> bool:
    titles = ", ".join(host.title for host in new)
    more = "Install ctx for them too?" if has_claude else "Install ctx for them?"
    return output.ask(f"On this machine: {titles}. {more} [Y/n]").lower() in ("", "y", "yes")


def named_hosts(names: str) -> HostChoice:
    chosen = known_setups.split_names(names)
    others = [known_setups.setup_named(name) for name in chosen if name != FIRST]
    return HostChoice(FIRST in chosen, tuple(others))


# Installing


class HostInstall:
    """An installation for other hosts than Claude Code, or what it would do."""

    def __init__(
        self,
        options: argparse.Namespace,
        settings: Settings,
        machine: Machine,
        output: Output,
        choice: HostChoice,
    ) -> None:
        self._options, self._settings, self._output = options, settings, output
        self._machine, self._choice = machine, choice
        self._parts = HostParts(
            not options.no_hooks, not options.no_skill, mcp=options.mcp is not False
        )
        self._needs_skill = self._parts.skill and host_install.shared_skill_is_needed(
            choice.others, machine
        )

    def run(self, claude_code: Callable[[], InstallResult] | None) -> None:
        """Everything is checked before anything is written, also for Claude Code."""
        store = InstalledPart("store", self._settings.database, store_state(self._settings))
        rendered = render_hosts
        if self._options.only_print:
            rendered, work = render_hosts_by_hand, self._print
        else:
            work = self._plan if self._options.dry_run else self._install
        parts, hosts, first = work(claude_code)
        is_dry = self._options.dry_run or self._options.only_print
        answer = HostsResult(is_dry, (store, *parts), hosts, first)
        self._output.show(answer, partial(rendered, home=self._machine.home))

    def _print(self, claude_code: Callable[[], InstallResult] | None) -> "_Work":
        """What to add manually. It works without reading the files."""
        hosts = []
        for host in self._choice.others:
            files = self._parts.files(host, self._machine)
            listed = tuple(InstalledPart(file.what, file.path, "added") for file in files)
            by_hand = tuple(ByHand(file.path, file.by_hand) for file in files)
            hosts.append(HostResult(host.name, host.title, listed, by_hand=by_hand))
        if self._choice.is_unknown:
            # The format that most hosts read.
            entry = host_files.json_server("", "mcpServers", host_files.command_and_args())
            by_hand = (ByHand("the file with its MCP servers", entry.by_hand),)
            hosts.append(HostResult(known_setups.OTHER, "Another host", (), by_hand=by_hand))
        return (), tuple(hosts), claude_code() if claude_code else None

    def _plan(self, claude_code: Callable[[], InstallResult] | None) -> "_Work":
        machine, hosts = self._machine, []
        for host in self._choice.others:
            changes = list(host_install.write_files(host, machine, self._parts, dry_run=True))
            diff = "".join(change.diff for change in changes)
            hosts.append(self._result(host, changes)._replace(diff=diff))
        parts: tuple[InstalledPart, ...] = ()
        if self._needs_skill:
            state = skill.planned_state(machine.shared_skill)
            parts = (InstalledPart("skill", machine.shared_skill, state),)
        return parts, tuple(hosts), claude_code() if claude_code else None

    def _install(self, claude_code: Callable[[], InstallResult] | None) -> "_Work":
        machine, output = self._machine, self._output
        with output.progress("Trying the hooks"):
            tried = self._check()
        first = claude_code() if claude_code else None
        with opening.adding(self._settings, output):
            # Opening a missing store creates it.
            parts = (self._write_skill(),) if self._needs_skill else ()
        hosts = []
        for host in self._choice.others:
            changes = list(host_install.write_files(host, machine, self._parts))
            hosts.append(self._result(host, changes)._replace(tried=tried.get(host.name, ())))
        return parts, tuple(hosts), first

    def _check(self) -> dict[str, tuple[str, ...]]:
        """Raise an error if something cannot be installed. The hooks that were tried, by host."""
        for host in self._choice.others:
            list(host_install.write_files(host, self._machine, self._parts, dry_run=True))
        if self._needs_skill:
            skill.planned_state(self._machine.shared_skill)
        if not self._parts.hooks:
            return {}
        own_program.compile_bytecode()
        variables = self._machine.variables
        return {host.name: host_install.try_hooks(host, variables) for host in self._choice.others}

    def _write_skill(self) -> InstalledPart:
        folder = self._machine.shared_skill
        changed = skill.edited_pages(folder)
        part = InstalledPart("skill", folder, skill.write(folder))
        for path in changed if part.state == "updated" else ():
            self._output.warn(f"{path} was modified; the old file is kept beside it.")
        return part

    def _result(self, host: HostSetup, changes: Sequence[FileChange]) -> HostResult:
        pairs = zip(self._parts.files(host, self._machine), changes, strict=True)
        listed = tuple(host_install.added_part(file, change) for file, change in pairs)
        backups = tuple(change.backup for change in changes if change.backup)
        return HostResult(host.name, host.title, listed, backups, len(host.hook_commands()))

    def show_notes(self) -> None:
        """What the user must know now."""
        output, hosts = self._output, self._choice.others
        if not self._choice.claude_code:
            for warning in environment_warnings(self._settings, "the agent"):
                output.warn(warning)
        if self._options.only_print or self._options.dry_run:
            return
        for host in hosts:
            for note in host.notes(self._machine):
                output.note(note)
        if self._choice.claude_code:
            return
        names = ",".join(host.name for host in hosts)
        output.note(f"To check: `ctx doctor`. To remove: `ctx uninstall --host {names}`")
        if self._parts.hooks and any(host.hook_commands() for host in hosts):
            output.note(f"From then on, {CAPTURED}")


_Work = tuple[tuple[InstalledPart, ...], tuple[HostResult, ...], InstallResult | None]
"""The parts that hosts share, the hosts, and Claude Code."""


def store_state(settings: Settings) -> State:
    return "there" if os.path.exists(settings.database) else "made"


def environment_warnings(settings: Settings, title: str) -> Iterator[str]:
    """Variables that hooks need too."""
    usual = os.path.abspath(settings.expanded("~/.ctx"))
    environment = settings.environment
    chosen = {
        "CTX_HOME": settings.user_store.home != usual,
        "CTX_DB": bool(environment.get("CTX_DB")),
    }
    for name in (name for name, is_chosen in chosen.items() if is_chosen):
        yield (
            f"{name} is set here. Set it where you start {title} too; otherwise hooks use"
            f" {os.path.join(usual, 'store.db')}."
        )
    if environment.get("CTX_OFF", "") not in ("", "0"):
        yield "CTX_OFF is set: hooks do nothing."


# Uninstalling


def hosts_to_remove(options: argparse.Namespace, machine: Machine) -> HostChoice:
    if options.host:
        return named_hosts(options.host)
    others = tuple(registered_hosts(machine)) if options.all_hosts else ()
    return HostChoice(True, others)


def registered_hosts(machine: Machine) -> Iterator[HostSetup]:
    for host in known_setups.SETUPS:
        if host_install.is_registered(host, machine):
            yield host


def uninstall_hosts(
    hosts: Sequence[HostSetup], machine: Machine, options: argparse.Namespace
) -> tuple[tuple[HostResult, ...], InstalledPart | None]:
    """Remove what was installed for some hosts, and the skill unless another host reads it."""
    results = []
    for host in hosts:
        pairs = list(host_install.remove_files(host, machine, dry_run=options.dry_run))
        listed = tuple(
            InstalledPart(file.what, file.path, "removed" if change.is_one else "missing")
            for file, change in pairs
        )
        backups = tuple(change.backup for _, change in pairs if change.backup)
        diff = "".join(change.diff for _, change in pairs) if options.dry_run else ""
        results.append(HostResult(host.name, host.title, listed, backups, diff=diff))
    staying = [host for host in registered_hosts(machine) if host not in hosts]
    if any(host.reads_shared_skill for host in staying):
        return tuple(results), None
    return tuple(results), host_install.remove_shared_skill(
        machine, force=options.force, dry_run=options.dry_run
    )
