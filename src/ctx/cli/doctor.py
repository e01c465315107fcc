"""`ctx doctor`"""

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from ctx import clock
from ctx.agents.claude_code import clients
from ctx.agents.claude_code.doctor import Diagnosis, examine
from ctx.agents.claude_code.settings import Setup
from ctx.agents.host_setup import known_setups
from ctx.agents.host_setup.host_checks import check_hosts
from ctx.cli import install_hosts, opening
from ctx.cli import settings as surroundings
from ctx.cli.output import Block, Line, Output, Table, count
from ctx.cli.recording_hosts import recording_hosts
from ctx.cli.settings import Settings
from ctx.errors import DiskFailure
from ctx.operations.store_checks import DoctorCheck, ok

Progress = Callable[[str], AbstractContextManager[clock.Tick]]
"""Shows what takes long."""

EXAMPLES = """
ctx doctor                  check everything
ctx doctor --format json    for scripts; the exit code is 1 if there is a problem
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(_options: argparse.Namespace, settings: Settings, output: Output) -> int:
    diagnosis = diagnose(settings, output.progress)
    output.show(diagnosis, partial(render, home=settings.expanded("~")))
    return 1 if diagnosis.problems else 0


def diagnose(settings: Settings, progress: Progress) -> Diagnosis:
    """All checks, of the store, of Claude Code and of other hosts."""
    # Do not open the memory: that would create a missing store.
    around = opening.environment(settings, settings.joined_session, _database(settings))
    home = settings.expanded("~")
    variables, folder = surroundings.variables(), settings.claude_folder
    with progress("Asking Claude Code for its version") as tick:
        installed = clients.find_clients(variables.get("PATH", ""), home, folder, tick)
    with progress("Checking the store and Claude Code") as tick:
        diagnosis = examine(Setup(around, folder, installed, variables), tick)
    machine = install_hosts.machine_of(settings)
    with progress("Checking other hosts") as tick:
        others = tuple(check_hosts(known_setups.SETUPS, machine, tick))
    checks = [*diagnosis.checks, *others]
    if recording := recording_hosts(settings):
        checks.append(ok("capture", f"with {', '.join(recording)}"))
    elif all(check.name != "hooks" or check.state == "ok" for check in checks):
        seen = "Nothing is recorded: no agent has the hooks of ctx here."
        checks.append(DoctorCheck("capture", "problem", seen, "`ctx install` adds them."))
    if not installed and any(install_hosts.registered_hosts(machine)):
        # Whoever uses another host need not have Claude Code.
        checks = [check for check in checks if not _is_about_missing_client(check, folder)]
    states = [check.state for check in checks]
    return Diagnosis(tuple(checks), states.count("problem"), states.count("warning"))


def checks_in(settings: Settings, folder: str) -> Sequence[DoctorCheck]:
    return diagnose(settings._replace(folder=folder), _no_progress).checks


def _no_progress(_doing: str) -> AbstractContextManager[clock.Tick]:
    return nullcontext(clock.no_tick)


def _is_about_missing_client(check: DoctorCheck, claude_folder: str) -> bool:
    is_about_client = check.name in ("client", "hooks", "skill") and check.state != "ok"
    return is_about_client and not os.path.isdir(claude_folder)


def _database(settings: Settings) -> str:
    try:
        return settings.database
    except DiskFailure:
        # Problems of the project are reported with everything else.
        return settings.user_store.database


def render(diagnosis: Diagnosis, *, home: str) -> list[Block]:
    """Each check on a line, and the advice below it."""
    rows: list[tuple[str, str, str]] = []
    for check in diagnosis.checks:
        rows.append((check.state, check.name, check.seen.replace(f"{home}/", "~/")))
        if check.advice:
            rows.append(("", "", f"→ {check.advice}"))
    counts = [
        count(number, noun)
        for number, noun in ((diagnosis.problems, "problem"), (diagnosis.warnings, "warning"))
        if number
    ]
    summary = f"{' and '.join(counts)}." if counts else "No problems found."
    return [Table(("state", "check", "result"), rows, ("state",)), Line(summary)]
