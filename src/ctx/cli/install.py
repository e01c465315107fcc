"""`ctx install`"""

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ctx import layout
from ctx.agents.claude_code import clients, install, registration
from ctx.agents.claude_code.clients import Client
from ctx.agents.claude_code.install import InstallTarget
from ctx.agents.claude_code.registration import Group
from ctx.agents.claude_code.settings import read_settings
from ctx.agents.host_setup import (
    edited_file,
    hook_commands,
    host_install,
    own_program,
    program_runs,
    settings_file,
    skill,
)
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import InstalledPart, Machine
from ctx.agents.runtime.notices import CAPTURED
from ctx.cli import git_hook, install_hosts, install_questions, opening
from ctx.cli.install_answers import ByHand, InstallResult, render, render_by_hand
from ctx.cli.install_hosts import HostInstall
from ctx.cli.options import flag
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.config import resolve
from ctx.errors import HookFailed, SettingsUnreadable, UsageError
from ctx.operations import projection
from ctx.operations.projection import ProjectionPlan

EXAMPLES = """
ctx install                          the store, the skill and the hooks, for yourself
ctx install --dry-run                show what would change
ctx install --print                  show what to add by hand
ctx install --host codex,gemini      for other hosts; `--all` for every one on this machine
ctx install --project                in this project's own settings, for everybody there
ctx install --plugin ~/ctx-plugin    write a plugin, with /ctx:remember and more
ctx install --projection             a block in AGENTS.md, for agents without hooks
ctx install --mcp                    the MCP server too; for other hosts than Claude Code, always
ctx install --git                    git's pre-commit hook: memory goes into the same commit
"""


class _InstallPlan(NamedTuple):
    """What to install, and where."""

    place: InstallTarget
    entries: dict[str, Group]
    clients: tuple[Client, ...]
    store: InstalledPart
    skill: bool
    hooks: bool
    server: bool

    @property
    def option(self) -> str:
        """The option for this place, for `ctx install` and `ctx uninstall`."""
        return " --project" if self.place.level == "project" else ""


def configure(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    flag(
        place, "--project", "in this project's .claude, which is committed, rather than in your own"
    )
    place.add_argument("--plugin", metavar="DIR", help="only write a plugin, into a folder")
    projection_option(
        place, "only write the memory of this project into AGENTS.md, or another file"
    )
    flag(place, "--git", "only add git's pre-commit hook, which commits memory")
    install_hosts.host_options(place, "for")
    only = parser.add_mutually_exclusive_group()
    flag(only, "--print", "only print what to add manually", dest="only_print")
    flag(only, "--dry-run", "only show what would change")
    flag(parser, "--no-skill", "leave the skill out")
    flag(parser, "--no-hooks", "leave the hooks out")
    parser.add_argument(
        "--mcp",
        action=argparse.BooleanOptionalAction,
        help="register the MCP server, or leave it out; asked for Claude Code if neither is given",
    )


def projection_option(group: argparse._ActionsContainer, help_text: str) -> None:
    group.add_argument("--projection", nargs="?", const="", metavar="FILE", help=help_text)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home = settings.expanded("~")
    if settings.chosen_database is not None and options.projection is None:
        raise UsageError(
            "--db has no effect on hooks: they read the environment of the client.",
            hint="Leave out --db, and set CTX_DB where you start Claude Code.",
        )
    if options.plugin is None and options.projection is None and not options.no_hooks:
        own_program.refuse_temporary_environment()
    for option, is_asked, write in (
        ("--plugin", options.plugin is not None, _plugin),
        ("--projection", options.projection is not None, _projection),
        ("--git", options.git, _git),
    ):
        if is_asked:
            others = (
                options.only_print,
                options.no_skill,
                options.no_hooks,
                options.mcp is not None,
            )
            if any(others):
                raise UsageError(f"{option} cannot be combined with other options.")
            output.show(write(options, settings, output), partial(render, home=home))
            return
    machine = install_hosts.machine_of(settings)
    choice = install_hosts.choose_hosts(options, machine, settings.claude_folder, output)
    claude = _ClaudeInstall(options, settings, machine, output) if choice.claude_code else None
    if choice.others or choice.is_unknown or claude is None:
        first = None if claude is None else claude.answer
        hosts = HostInstall(options, settings, machine, output, choice)
        hosts.run(first)
        if claude is not None:
            claude.show_messages()
        hosts.show_notes()
        _offer_past_conversations(options, settings, output)
        return
    shown = partial(render_by_hand, home=home, project=claude.plan.option)
    answer = claude.answer()
    output.show(answer, shown if options.only_print else partial(render, home=home))
    claude.show_messages()
    _offer_past_conversations(options, settings, output)


def _offer_past_conversations(
    options: argparse.Namespace, settings: Settings, output: Output
) -> None:
    if options.only_print or options.dry_run or options.project:
        return
    with opening.adding(settings, output) as memory:
        found = install_questions.find(memory, settings)
    if not (output.is_interactive and output.is_for_people):
        install_questions.note(found, output)
    elif found:
        what = f"{install_questions.number_of(found)} found ({', '.join(found)})"
        if output.ask(f"{what}. Import them? [y/N]").lower() not in ("y", "yes"):
            install_questions.remember(settings, found)
            return
        from ctx.cli.import_ import import_host

        for host in found:
            import_host(host, settings, output)


class _ClaudeInstall:
    """An installation for Claude Code, or what it would do."""

    def __init__(
        self, options: argparse.Namespace, settings: Settings, machine: Machine, output: Output
    ) -> None:
        self._options, self._settings, self._output = options, settings, output
        self._variables = dict(machine.variables)
        self.plan = _install_plan(options, settings, self._variables.get("PATH", ""), output)
        self._change: FileChange | None = None

    def answer(self) -> InstallResult:
        if self._options.only_print:
            return _manual_steps(self.plan)
        if self._options.dry_run:
            answer, self._change = _dry_run_result(self.plan)
        else:
            answer, self._change = _carry_out_plan(
                self.plan, self._settings, self._variables, self._output
            )
            if self._options.mcp is not None:
                install_questions.remember(self._settings, [install_questions.MCP])
        return answer

    def show_messages(self) -> None:
        """Warnings, and what to do next."""
        plan, output = self.plan, self._output
        if not (plan.skill or plan.hooks):
            return
        for warning in _warnings(plan, self._settings, self._change):
            output.warn(warning)
        if self._options.only_print or self._options.dry_run:
            return
        program = own_program.program_on_path(self._variables)
        if program.advice:
            output.warn(f"{program.summary} Claude calls `ctx` in a shell. {program.advice}")
        output.note(
            "Start a new conversation to use it. To check: `ctx doctor`. "
            f"To remove: `ctx uninstall{plan.option}`"
        )
        if plan.hooks:
            output.note(f"From then on, {CAPTURED}")


def _warnings(plan: _InstallPlan, settings: Settings, change: FileChange | None) -> Iterator[str]:
    """What keeps the hooks from working."""
    if change is not None:
        if reason := settings_file.without_effect(change.after or ""):
            yield f"{plan.place.settings}, {reason}."
        yield from _incompatible_events(plan, change.after or "")
        yield from install.matcher_warnings(change)
        yield from install.unmanaged_hook_warnings(change, "Remove it, or both run.")
    if plan.hooks and plan.place.level == "user":
        for client in plan.clients:
            if client.version is None:
                yield (
                    f"The version of {client.path} is unknown: it gets only the hooks"
                    " that all versions support."
                )
    yield from install_hosts.environment_warnings(settings, "Claude Code")


def _incompatible_events(plan: _InstallPlan, text: str) -> Iterator[str]:
    """Events that make an older client ignore every hook of the file."""
    versions = [client.version for client in plan.clients if client.version]
    for event, place in settings_file.named_events(text):
        for version in versions:
            if clients.breaks_hooks(event, version):
                yield (
                    f"{plan.place.settings}, {place}: Claude Code {version} does not know"
                    f" {event}, so it runs no hook of this file."
                )


def _install_plan(
    options: argparse.Namespace, settings: Settings, path: str, output: Output
) -> _InstallPlan:
    place = place_of(options, settings)
    with output.progress("Asking Claude Code for its version") as tick:
        installed = clients.find_clients(path, settings.expanded("~"), settings.claude_folder, tick)
    return _InstallPlan(
        place,
        _entries(place, installed, settings, output),
        installed,
        InstalledPart("store", settings.database, install_hosts.store_state(settings)),
        skill=not options.no_skill,
        hooks=not options.no_hooks,
        server=_wants_server(options, settings, place, output),
    )


def _wants_server(
    options: argparse.Namespace, settings: Settings, place: InstallTarget, output: Output
) -> bool:
    """Whether to register the MCP server; the user is asked about it once."""
    if options.mcp is None:
        with suppress(SettingsUnreadable):
            if edited_file.plan_change(place.server.path, place.server.remove).is_one:
                return True
        changes = not (options.only_print or options.dry_run or options.project)
        is_asked = changes and output.is_interactive and output.is_for_people
        if not is_asked or install_questions.MCP in install_questions.answered(settings):
            return False
        wants = output.ask("Register ctx as an MCP server too, with tools to search? [y/N]")
        options.mcp = wants.lower() in ("y", "yes")
    return bool(options.mcp)


def _manual_steps(plan: _InstallPlan) -> InstallResult:
    """Works without reading the settings, for those that cannot be read."""
    parts = [plan.store]
    if plan.skill:
        parts.append(InstalledPart("skill", plan.place.skill, "written"))
    if plan.hooks:
        parts.append(InstalledPart("hooks", plan.place.settings, "added"))
    settings = settings_file.as_settings(plan.entries) if plan.hooks else {}
    server = plan.place.server
    by_hand = (ByHand(server.path, server.by_hand),) if plan.server else ()
    return InstallResult(True, tuple(parts), settings, clients=plan.clients, by_hand=by_hand)


def _dry_run_result(plan: _InstallPlan) -> tuple[InstallResult, FileChange | None]:
    parts = [plan.store]
    if plan.skill:
        parts.append(install.write_skill(plan.place, dry_run=True))
    change = install.register(plan.place, plan.entries, dry_run=True) if plan.hooks else None
    server = _register_server(plan, dry_run=True)
    answer = _answer(plan, parts, change, server)
    diff = "".join(each.diff for each in (change, server) if each)
    return answer._replace(dry_run=True, diff=diff), change


def _register_server(plan: _InstallPlan, *, dry_run: bool) -> FileChange | None:
    if not plan.server:
        return None
    return install.change_server(plan.place, plan.place.server.add, dry_run=dry_run)


def _carry_out_plan(
    plan: _InstallPlan, settings: Settings, variables: dict[str, str], output: Output
) -> tuple[InstallResult, FileChange | None]:
    tried: tuple[str, ...] = ()
    # A path that cannot hold the skill, unreadable settings and broken hooks are detected before
    # anything is written.
    if plan.skill:
        install.write_skill(plan.place, dry_run=True)
    _register_server(plan, dry_run=True)
    if plan.hooks:
        install.register(plan.place, plan.entries, dry_run=True)
        _require_ctx(plan.place, variables.get("PATH", ""))
        own_program.compile_bytecode()
        tried = install.try_hooks(plan.entries, variables)
    with opening.adding(settings, output):
        # Opening a missing store creates it.
        parts = [plan.store]
    if plan.skill:
        parts.append(_write_skill(plan.place, output))
    change = install.register(plan.place, plan.entries, dry_run=False) if plan.hooks else None
    server = _register_server(plan, dry_run=False)
    return _answer(plan, parts, change, server)._replace(tried=tried), change


def _require_ctx(place: InstallTarget, path: str) -> None:
    """Project settings are shared, so they call `ctx` by name."""
    if place.level == "project" and not any(program_runs.programs("ctx", path.split(os.pathsep))):
        raise HookFailed(
            "`ctx` is not on the PATH, and project settings call it by name.",
            hint="Put it there and try again; nothing changed.",
        )


def _answer(
    plan: _InstallPlan,
    parts: list[InstalledPart],
    change: FileChange | None,
    server: FileChange | None,
) -> InstallResult:
    last = (host_install.added_part(plan.place.server, server),) if server else ()
    if change is None:
        return InstallResult(False, (*parts, *last), {}, clients=plan.clients)
    return InstallResult(
        False,
        (*parts, install.hooks_part(change), *last),
        settings_file.as_settings(plan.entries),
        change.backup,
        without_effect=settings_file.without_effect(change.after or ""),
        clients=plan.clients,
    )


def place_of(options: argparse.Namespace, settings: Settings) -> InstallTarget:
    """The settings to change: the user's, or those of the current project."""
    ctx_home = settings.user_store.home
    if not options.project:
        server = install.user_server(settings.expanded("~"), settings.environment)
        return install.user_place(settings.claude_folder, ctx_home, server)
    root = layout.place(settings.folder, ctx_home).folder
    place = install.project_place(root, ctx_home)
    if os.path.realpath(place.folder) == os.path.realpath(settings.claude_folder):
        raise UsageError(
            f"{place.folder} is not a project: it contains your own settings.",
            hint="Leave out --project, or run this in the project.",
        )
    return place


def _entries(
    place: InstallTarget, installed: tuple[Client, ...], settings: Settings, output: Output
) -> dict[str, Group]:
    """The hooks for a place. Any client may read the settings of a project."""
    if place.level == "project":
        return registration.project_entries()
    config = resolve.load(
        settings.user_store.config_file, None, settings.environment, settings.overrides
    )
    for warning in config.warnings:
        output.warn(warning)
    return registration.user_entries(
        [client.version for client in installed],
        interpreter=hook_commands.interpreter(),
        budget=config.integer("context.budget"),
        present=read_settings(place.settings).hooks,
    )


def _write_skill(place: InstallTarget, output: Output) -> InstalledPart:
    changed = skill.edited_pages(place.skill)
    part = install.write_skill(place, dry_run=False)
    for path in changed if part.state == "updated" else ():
        output.warn(f"{path} was modified; the old file is kept beside it.")
    return part


def _plugin(options: argparse.Namespace, settings: Settings, _output: Output) -> InstallResult:
    from ctx.agents.claude_code import plugin

    folder = os.path.abspath(os.path.join(settings.folder, settings.expanded(options.plugin)))
    known = os.path.isdir(os.path.join(folder, ".claude-plugin"))
    written = plugin.planned_paths(folder) if options.dry_run else plugin.write(folder)
    part = InstalledPart(
        "plugin", folder, "current" if not written else "updated" if known else "written"
    )
    return InstallResult(options.dry_run, (part,), {})


def _projection(options: argparse.Namespace, settings: Settings, output: Output) -> InstallResult:
    path = projection_file(options, settings)
    home = os.path.realpath(settings.expanded("~"))
    if not options.projection and os.path.realpath(os.path.dirname(path)) == home:
        raise UsageError(
            "Your home folder is not a project, so no agent reads AGENTS.md there.",
            hint="Run this in the project, or name the file: --projection FILE.",
        )
    opening.refuse_untrusted(settings, "--projection")
    is_named = bool(options.projection)
    carried_out = projection.plan_projection if options.dry_run else projection.write
    remembers = is_named and not options.dry_run
    opened = opening.open_for_staging if remembers else opening.reading
    with opened(settings, output) as memory:
        plan = carried_out(memory, path, named=is_named)
        if remembers:
            projection.remember(memory, path)
    part = InstalledPart("projection", path, plan.state)
    return InstallResult(options.dry_run, (part,), {}, diff=diff_of(options, path, plan))


def _git(options: argparse.Namespace, settings: Settings, output: Output) -> InstallResult:
    part, diff = git_hook.install(options, settings, output)
    return InstallResult(options.dry_run, (part,), {}, diff=diff)


def diff_of(options: argparse.Namespace, path: str, plan: ProjectionPlan) -> str:
    """The change of a file with the block; empty if it was written."""
    texts = [None if data is None else data.decode() for data in (plan.before, plan.after)]
    return FileChange(path, texts[0], texts[1]).diff if options.dry_run else ""


def projection_file(options: argparse.Namespace, settings: Settings) -> str:
    """The named file, else the project's file that agents read."""
    if options.projection:
        named = settings.expanded(options.projection)
        return os.path.abspath(os.path.join(settings.folder, named))
    root = layout.place(settings.folder, settings.user_store.home).folder
    paths = [os.path.join(root, name) for name in projection.FILES]
    return next((path for path in paths if os.path.lexists(path)), paths[0])
