"""The doctor: checks whether everything works, and says what to do. It changes nothing.

A check is a function that examines one thing and reports its state. Hooks are also run, as the
client would run them, with a temporary store.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ctx import disk
from ctx.agents.claude_code import hook_checks, install, skill
from ctx.agents.claude_code.setup import Setup
from ctx.operations import model_checks
from ctx.operations.store_checks import DoctorCheck, guarded, ok, store_checks
from ctx.sqlite.connection import shown


class Diagnosis(NamedTuple):
    """The answer of `ctx doctor`."""

    checks: tuple[DoctorCheck, ...]
    problems: int
    warnings: int


def examine(setup: Setup) -> Diagnosis:
    looks: dict[str, Callable[[Setup], Iterator[DoctorCheck]]] = {
        "client": _clients,
        "client settings": hook_checks.readable,
        "hooks": hook_checks.registered,
        "hooks run": hook_checks.tried,
        "PATH": _path,
        "skill": _skill,
        "model": _model,
    }
    checks = [*store_checks(setup.environment)]
    for name, look in looks.items():
        checks += guarded(name, look(setup))
    states = [check.state for check in checks]
    return Diagnosis(tuple(checks), states.count("problem"), states.count("warning"))


def _clients(setup: Setup) -> Iterator[DoctorCheck]:
    if not setup.clients:
        # A client that an editor ships is in the editor's own folder.
        finding = "Claude Code is neither on the PATH nor in one of its usual places."
        advice = "Install it, then run `ctx install` again. ctx does not find one inside an editor."
        yield DoctorCheck("client", "warning", finding, advice)
    for client in setup.clients:
        if client.version is None:
            finding = f"{shown(client.path)} does not print its version."
            advice = f"`{shown(client.path)} --version` shows why."
            yield DoctorCheck("client", "warning", finding, advice)
        else:
            yield ok("client", f"Claude Code {client.version}: {shown(client.path)}")


def _path(setup: Setup) -> Iterator[DoctorCheck]:
    program = install.program_on_path(setup.variables)
    yield DoctorCheck(
        "PATH", "warning" if program.advice else "ok", program.summary, program.advice
    )


def _skill(setup: Setup) -> Iterator[DoctorCheck]:
    mine = os.path.join(setup.claude_folder, "skills", "ctx")
    if os.path.lexists(os.path.join(mine, "SKILL.md")):
        yield _pages(mine, "ctx install")
    elif not any(file.has_plugin for file in setup.files):
        finding = f"It is not in {shown(mine)}, so Claude does not know the commands."
        yield DoctorCheck("skill", "warning", finding, setup.by_install("writes it"))
    projects = os.path.join(setup.project_folder, "skills", "ctx")
    if setup.is_project and os.path.lexists(os.path.join(projects, "SKILL.md")):
        yield _pages(projects, "ctx install --project")


def _model(setup: Setup) -> Iterator[DoctorCheck]:
    yield from model_checks.model(setup.environment, setup.variables)
    yield from model_checks.spending(setup.environment)


def _pages(folder: str, command: str) -> DoctorCheck:
    edited = skill.edited(folder)
    if skill.is_current(folder):
        return ok("skill", f"{shown(folder)}, up to date")
    if not edited:
        finding = f"{shown(folder)} is from another version of ctx."
        return DoctorCheck("skill", "warning", finding, f"`{command}` updates it.")
    if any(map(_is_of_another_version, edited)):
        finding = f"{shown(folder)} was changed by you and is from another version of ctx."
        advice = f"`{command}` updates it, and keeps your pages as *{skill.EDITED}."
        return DoctorCheck("skill", "warning", finding, advice)
    return ok("skill", f"{shown(folder)}, changed by you")


def _is_of_another_version(path: str) -> bool:
    """Whether a page that the user changed is based on another version of our page.

    The last line of a page identifies the original text, even if the rest was changed.
    """
    now = skill.files()[os.path.basename(path)].split()[-2]
    text = disk.read_or_none(path) or b""
    return b"<!-- ctx-skill " in text and now.encode() not in text
