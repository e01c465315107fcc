"""`ctx uninstall`"""

import argparse
import os
import shlex
from functools import partial

from ctx.agents.claude_code import install
from ctx.agents.claude_code.install import InstallTarget
from ctx.agents.host_setup import skill
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import InstalledPart, State
from ctx.cli import arguments, git_hook, install_hosts, opening, worker
from ctx.cli.install import diff_of, place_of, projection_file, projection_option
from ctx.cli.install_answers import (
    HostsResult,
    UninstallResult,
    render_hosts,
    render_removed,
    short,
)
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations import projection

EXAMPLES = """
ctx uninstall                 remove the hooks and the skill, keep the store
ctx uninstall --dry-run       show what would change
ctx uninstall --host codex    only for this host; `--all` for every one
ctx uninstall --project       out of this project's own settings
ctx uninstall --force         also pages of the skill that you have changed
ctx uninstall --projection    only the block in AGENTS.md
ctx uninstall --git           only what is in git's pre-commit hook
"""


def configure(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    flag(place, "--project", "out of this project's .claude, not your own")
    projection_option(place, "only the block in AGENTS.md, or in another file")
    flag(place, "--git", "only what is in git's pre-commit hook")
    install_hosts.host_options(place, "for")
    flag(parser, "--force", "also remove pages of the skill that you have changed")
    arguments.dry_run(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home, store = settings.expanded("~"), settings.user_store.home
    if options.projection is not None:
        output.show(_projection(options, settings, output), partial(render_removed, home=home))
        return
    if options.git:
        part, diff = git_hook.uninstall(options, settings)
        answer = UninstallResult(options.dry_run, (part,), "", diff, store)
        output.show(answer, partial(render_removed, home=home))
        return
    machine = install_hosts.machine_of(settings)
    choice = install_hosts.hosts_to_remove(options, machine)
    if not choice.others:
        _ClaudeRemoval(options, settings, output).run()
        return
    claude = _ClaudeRemoval(options, settings, output) if choice.claude_code else None
    first = claude.answer() if claude else None
    hosts, shared = install_hosts.uninstall_hosts(choice.others, machine, options)
    removed = HostsResult(options.dry_run, (shared,) if shared else (), hosts, first)
    output.show(removed, partial(render_removed_hosts, home=home))
    if claude:
        claude.show_messages()
    if shared and shared.state == "kept":
        _warn_of_kept_pages(machine.shared_skill, home, output)


class _ClaudeRemoval:
    """Uninstalling for Claude Code, or what it would do."""

    def __init__(self, options: argparse.Namespace, settings: Settings, output: Output) -> None:
        self._options, self._settings, self._output = options, settings, output
        self._place = place_of(options, settings)

    def run(self) -> None:
        self._output.show(self.answer(), partial(render_removed, home=self._settings.expanded("~")))
        self.show_messages()

    def answer(self) -> UninstallResult:
        place, dry_run = self._place, self._options.dry_run
        force = self._options.force
        self._change, self._part, server = _remove_parts(place, force=force, dry_run=dry_run)
        state: State = "removed" if self._change.is_one else "missing"
        parts = [self._part, InstalledPart("hooks", place.settings, state)]
        if server.is_one:
            parts.append(InstalledPart("mcp", server.path, "removed"))
        diff = self._change.diff + server.diff if dry_run else ""
        store = self._settings.user_store.home
        self._answer = UninstallResult(dry_run, tuple(parts), self._change.backup, diff, store)
        return self._answer

    def show_messages(self) -> None:
        settings, output, options = self._settings, self._output, self._options
        home, store = settings.expanded("~"), settings.user_store.home
        if self._part.state == "kept":
            _warn_of_kept_pages(self._place.skill, home, output)
        for warning in install.unmanaged_hook_warnings(self._change, "Remove it manually."):
            output.warn(warning)
        if options.dry_run:
            return
        for path in skill.put_aside(self._place.skill) if self._part.state == "removed" else ():
            output.note(f"{short(path, home)} kept, because you changed it.")
        is_one = any(each.state == "removed" for each in self._answer.parts)
        if is_one and not options.project:
            # No hook starts it any more.
            worker.stop(settings)
        if is_one and not options.project and os.path.isdir(store):
            output.note(
                f"Memory stays in {short(store, home)}; `rm -r {shlex.quote(store)}` deletes all"
                " of it."
            )


def _warn_of_kept_pages(folder: str, home: str, output: Output) -> None:
    changed = ", ".join(short(path, home) for path in skill.edited_pages(folder))
    output.warn(f"{changed}: kept, because you changed it. --force removes it too.")


def _remove_parts(
    place: InstallTarget, *, force: bool, dry_run: bool
) -> tuple[FileChange, InstalledPart, FileChange]:
    # The settings first: if they cannot be changed, nothing is removed.
    server = install.change_server(place, place.server.remove, dry_run=dry_run)
    change = install.unregister(place, dry_run=dry_run)
    part = install.remove_skill(place, force=force, dry_run=dry_run)
    if (change.is_one or part.state == "removed") and not dry_run:
        install.remove_folder(place)
    return change, part, server


def _projection(options: argparse.Namespace, settings: Settings, output: Output) -> UninstallResult:
    path = projection_file(options, settings)
    plan = projection.planned_removal(path) if options.dry_run else projection.remove(path)
    part, diff = InstalledPart("projection", path, plan.state), diff_of(options, path, plan)
    store = settings.user_store.database
    if not options.dry_run and settings.database == store and os.path.exists(store):
        with opening.open_for_staging(settings, output) as memory:
            projection.forget(memory, path)
    return UninstallResult(options.dry_run, (part,), "", diff, settings.user_store.home)


def render_removed_hosts(answer: HostsResult, *, home: str) -> list[Block]:
    parts = [*answer.parts, *(part for host in answer.hosts for part in host.parts)]
    if answer.claude_code is not None:
        parts += answer.claude_code.parts
    if all(part.state == "missing" for part in parts):
        return [Line("Nothing to remove.")]
    return render_hosts(answer, home=home)
