"""`ctx uninstall`"""

import argparse
import os
import shlex
from functools import partial
from typing import NamedTuple

from ctx.agents.claude_code import install, projection
from ctx.agents.claude_code.install import InstallTarget
from ctx.agents.host_setup import skill
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.installed_parts import InstalledPart
from ctx.cli import arguments, git_hook, worker
from ctx.cli.install import diff_of, place_of, projection_file, projection_option
from ctx.cli.install_answers import dry, rows_of, short
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings

EXAMPLES = """
ctx uninstall                 remove the hooks and the skill, keep the store
ctx uninstall --dry-run       show what would change
ctx uninstall --project       out of this project's own settings
ctx uninstall --force         also pages of the skill that you have changed
ctx uninstall --projection    only the block in AGENTS.md
ctx uninstall --git           only what is in git's pre-commit hook
"""


class UninstallResult(NamedTuple):
    """What was removed, or would be."""

    dry_run: bool
    parts: tuple[InstalledPart, ...]
    backup: str
    """The backup of the settings; empty if nothing was changed."""
    diff: str
    """The changes of a file, line by line."""
    store: str
    """The folder of the user store, which stays."""


def configure(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--project", action="store_true", help="out of this project's .claude, not your own"
    )
    projection_option(place, "only the block in AGENTS.md, or in another file")
    place.add_argument("--git", action="store_true", help="only what is in git's pre-commit hook")
    parser.add_argument(
        "--force", action="store_true", help="also remove pages of the skill that you have changed"
    )
    arguments.dry_run(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home, store = settings.expanded("~"), settings.user_store.home
    if options.projection is not None:
        output.show(_projection(options, settings), partial(render, home=home))
        return
    if options.git:
        part, diff = git_hook.uninstall(options, settings)
        answer = UninstallResult(options.dry_run, (part,), "", diff, store)
        output.show(answer, partial(render, home=home))
        return
    place = place_of(options, settings)
    removed = _plan_removal if options.dry_run else _remove_parts
    change, part = removed(place, force=options.force)
    hooks = InstalledPart("hooks", place.settings, "removed" if change.is_one else "missing")
    diff = change.diff if options.dry_run else ""
    answer = UninstallResult(options.dry_run, (part, hooks), change.backup, diff, store)
    output.show(answer, partial(render, home=home))
    if part.state == "kept":
        changed = ", ".join(short(path, home) for path in skill.edited_pages(place.skill))
        output.warn(f"{changed}: kept, because you changed it. --force removes it too.")
    for warning in install.unmanaged_hook_warnings(change, "Remove it manually."):
        output.warn(warning)
    if options.dry_run:
        return
    for path in skill.put_aside(place.skill) if part.state == "removed" else ():
        output.note(f"{short(path, home)} kept, because you changed it.")
    is_one = any(each.state == "removed" for each in answer.parts)
    if is_one and not options.project:
        # No hook starts it any more.
        worker.stop(settings)
    if is_one and not options.project and os.path.isdir(store):
        output.note(
            f"Memory stays in {short(store, home)}; `rm -r {shlex.quote(store)}` deletes all of it."
        )


def _plan_removal(place: InstallTarget, *, force: bool) -> tuple[FileChange, InstalledPart]:
    change = install.planned_removal_of_hooks(place)
    return change, install.planned_removal_of_skill(place, force=force)


def _remove_parts(place: InstallTarget, *, force: bool) -> tuple[FileChange, InstalledPart]:
    # The settings first: if they cannot be changed, nothing is removed.
    change = install.unregister(place)
    part = install.remove_skill(place, force=force)
    if change.is_one or part.state == "removed":
        install.remove_folder(place)
    return change, part


def _projection(options: argparse.Namespace, settings: Settings) -> UninstallResult:
    path = projection_file(options, settings)
    plan = projection.planned_removal(path) if options.dry_run else projection.remove(path)
    part, diff = InstalledPart("projection", path, plan.state), diff_of(options, path, plan)
    return UninstallResult(options.dry_run, (part,), "", diff, settings.user_store.home)


def render(uninstalled: UninstallResult, *, home: str) -> list[Block]:
    rows = rows_of(uninstalled.parts, 0, home)
    if uninstalled.backup:
        rows.append(("Backup", short(uninstalled.backup, home), ""))
    if all(part.state == "missing" for part in uninstalled.parts):
        return [Line("Nothing to remove.")]
    table = Table(("part", "where", "state"), rows, ("field", "", ""))
    return [*dry(uninstalled.dry_run, uninstalled.diff), table]
