"""`ctx install --git` and `ctx uninstall --git`: git's own hook, and nothing else."""

import argparse
import os
import sys
from collections.abc import Mapping

from ctx import checkouts, layout
from ctx.agents.host_setup import edited_file, program_runs
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import InstalledPart
from ctx.cli import settings as surroundings
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.operations import git_hook
from ctx.operations.git_hook import HookPlace, HookPlan


def install(
    options: argparse.Namespace, settings: Settings, output: Output
) -> tuple[InstalledPart, str]:
    """What happened to the hook, and the changes of its file."""
    project = layout.require_project(settings.folder, settings.user_store.home)
    plan = git_hook.plan_hook(project, _program_path())
    _apply_plan(plan, options)
    for warning in _warnings(git_hook.place(git_hook.checkout_of(project))):
        output.warn(warning)
    return _part(plan), _diff(plan, options)


def uninstall(options: argparse.Namespace, settings: Settings) -> tuple[InstalledPart, str]:
    home = settings.user_store.home
    # The hook can be removed even if the store is gone.
    project = layout.find_project(settings.folder, home)
    checkout = checkouts.find_checkout(os.path.realpath(settings.folder))
    if checkout is None:
        checkout = git_hook.checkout_of(layout.require_project(settings.folder, home))
    plan = git_hook.planned_removal(checkout, project)
    _apply_plan(plan, options)
    return _part(plan), _diff(plan, options)


def _apply_plan(plan: HookPlan, options: argparse.Namespace) -> None:
    if not options.dry_run:
        mode = edited_file.shared_mode()
        git_hook.apply_plan(plan, mode | (mode & 0o444) >> 2)


def _part(plan: HookPlan) -> InstalledPart:
    return InstalledPart("git hook", plan.path, plan.state)


def _diff(plan: HookPlan, options: argparse.Namespace) -> str:
    if not options.dry_run:
        return ""
    before, after = (
        None if data is None else data.decode("utf-8", "replace")
        for data in (plan.before, plan.after)
    )
    return FileChange(plan.path, before, after).diff


def _warnings(place: HookPlace) -> list[str]:
    warnings = []
    if place.reach == "elsewhere":
        warnings.append(
            f"core.hooksPath is outside of this repository: {place.path} runs in every"
            " repository that uses it. It does nothing in those without a project store at"
            " the same path."
        )
    if not _is_on_path(surroundings.variables()) and not _program_path():
        warnings.append("`ctx` is not on the PATH: the hook warns, and git commits without memory.")
    return warnings


def _is_on_path(variables: Mapping[str, str]) -> bool:
    return any(program_runs.programs("ctx", variables.get("PATH", "").split(os.pathsep)))


def _program_path() -> str:
    """The program of this installation, for a git that runs without the PATH of a shell."""
    program = os.path.join(os.path.dirname(sys.executable), "ctx")
    return program if os.access(program, os.X_OK) else ""
