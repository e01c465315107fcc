"""The doctor: checks whether everything works, and says what to do. It changes nothing.

A check is a function that examines one thing and reports its state. Hooks are also run, as the
client would run them, with a temporary store.

A settings file belongs to its owner, who may have changed our hooks or added them by hand. Unusual
settings are a warning; what keeps memory from working is a problem.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ctx import clock, disk
from ctx.agents.claude_code import clients, install, registration
from ctx.agents.claude_code.clients import Client
from ctx.agents.claude_code.registration import Group
from ctx.agents.claude_code.settings import ClientSettings, Setup
from ctx.agents.host_setup import edited_file, own_program, settings_file, skill
from ctx.agents.host_setup.settings_file import NamedEvent
from ctx.config.resolve import survey
from ctx.errors import CtxError
from ctx.llm import backends, ledger
from ctx.llm.backends import BackendSurvey
from ctx.operations.store_checks import DoctorCheck, guard_check, ok, store_checks
from ctx.sqlite.connection import path_text

_CHOOSE_MODEL = "To configure one: `ctx config set llm.backend NAME`"


class Diagnosis(NamedTuple):
    """The answer of `ctx doctor`."""

    checks: tuple[DoctorCheck, ...]
    problems: int
    warnings: int


def examine(setup: Setup, tick: clock.Tick = clock.no_tick) -> Diagnosis:
    checks = [*store_checks(setup.environment)]
    for done, (name, check) in enumerate(CHECKS.items()):
        tick(done, len(CHECKS))
        checks += guard_check(name, check(setup))
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
            finding = f"{path_text(client.path)} does not print its version."
            advice = f"`{path_text(client.path)} --version` shows why."
            yield DoctorCheck("client", "warning", finding, advice)
        else:
            yield ok("client", f"Claude Code {client.version}: {path_text(client.path)}")


def _path(setup: Setup) -> Iterator[DoctorCheck]:
    program = own_program.program_on_path(setup.variables)
    yield DoctorCheck(
        "PATH", "warning" if program.advice else "ok", program.summary, program.advice
    )


def _skill(setup: Setup) -> Iterator[DoctorCheck]:
    mine = os.path.join(setup.claude_folder, "skills", "ctx")
    if os.path.lexists(os.path.join(mine, "SKILL.md")):
        yield _pages(mine, "ctx install")
    elif not any(file.has_plugin for file in setup.files):
        finding = f"It is not in {path_text(mine)}, so Claude does not know the commands."
        yield DoctorCheck("skill", "warning", finding, setup.by_install("writes it"))
    projects = os.path.join(setup.project_folder, "skills", "ctx")
    if setup.is_project and os.path.lexists(os.path.join(projects, "SKILL.md")):
        yield _pages(projects, "ctx install --project")


def _pages(folder: str, command: str) -> DoctorCheck:
    edited = skill.edited_pages(folder)
    if skill.is_current(folder):
        return ok("skill", f"{path_text(folder)}, up to date")
    if not edited:
        finding = f"{path_text(folder)} is from another version of ctx."
        return DoctorCheck("skill", "warning", finding, f"`{command}` updates it.")
    if any(map(_is_based_on_other_version, edited)):
        finding = f"{path_text(folder)} was changed by you and is from another version of ctx."
        advice = f"`{command}` updates it, and keeps your pages as *{skill.EDITED}."
        return DoctorCheck("skill", "warning", finding, advice)
    return ok("skill", f"{path_text(folder)}, changed by you")


def _is_based_on_other_version(path: str) -> bool:
    """Whether a page that the user changed is based on another version of our page.

    The last line of a page identifies the original text, even if the rest was changed.
    """
    now = skill.files()[os.path.basename(path)].split()[-2]
    text = disk.read_or_none(path) or b""
    return b"<!-- ctx-skill " in text and now.encode() not in text


def _server(setup: Setup) -> Iterator[DoctorCheck]:
    """Whether the MCP server, if it is registered, is that of this ctx."""
    server = install.user_server(os.path.expanduser("~"), setup.variables)
    try:
        if not edited_file.plan_change(server.path, server.remove).is_one:
            return
        is_current = not edited_file.plan_change(server.path, server.add).is_one
    except CtxError as error:
        yield DoctorCheck("MCP", "warning", error.message, error.hint or "")
        return
    if is_current:
        yield ok("MCP", f"the server is in {path_text(server.path)}, up to date")
    else:
        seen = f"{path_text(server.path)} has another MCP server of ctx."
        yield DoctorCheck("MCP", "warning", seen, setup.by_install("updates it"))


def _client_settings(setup: Setup) -> Iterator[DoctorCheck]:
    """Whether the client can read its settings, and whether it runs hooks at all."""
    for file in setup.files:
        if file.problem:
            yield DoctorCheck("client settings", "problem", file.problem, file.advice)
        if file.plain.get("disableAllHooks") is True:
            seen = f"{path_text(file.path)} disables all hooks."
            yield DoctorCheck(
                "client settings", "problem", seen, "Remove `disableAllHooks` from it."
            )
        for event, client in _incompatible_events(setup, file):
            seen = (
                f"{path_text(file.path)}, {event.place}: Claude Code {client.version} does not know"
                f" {event.event}, and drops all hooks of the file for it."
            )
            advice = f"Remove it, or update {path_text(client.path)}."
            is_ours = any(hook.event == event.event for hook in file.hooks)
            if is_ours and file in _settings_files(setup):
                advice = _by_install(setup, file, "removes our hook from it")
            yield DoctorCheck("client settings", "problem", seen, advice)


def _incompatible_events(setup: Setup, file: ClientSettings) -> Iterator[tuple[NamedEvent, Client]]:
    """Events that make a client ignore all hooks of a file."""
    for event in file.events:
        for client in setup.clients:
            if client.version and clients.breaks_hooks(event.event, client.version):
                yield event, client
                break


def _registered_hooks(setup: Setup) -> Iterator[DoctorCheck]:
    """Whether all hooks are registered, and as this ctx would register them now."""
    if setup.has_plugin:
        yield ok("hooks", "the plugin `ctx` is enabled")
    missing = _missing_events(setup)
    if missing == list(_expected_entries(setup)):
        seen = "No hook of ctx is registered with Claude Code."
        yield DoctorCheck("hooks", "problem", seen, setup.by_install("registers them"))
    elif missing:
        seen = f"Not registered: {', '.join(missing)}."
        mine = setup.user.hooks or not (setup.is_project and setup.project.hooks)
        advice = _by_install(setup, setup.user if mine else setup.project, "registers them")
        yield DoctorCheck("hooks", "problem", seen, advice)
    for file in setup.files:
        told = [*_in_file(setup, file)]
        yield from told
        if file.hooks and not missing and not told and not any(_incompatible_events(setup, file)):
            yield ok("hooks", f"{len(file.hooks):,} in {path_text(file.path)}, up to date")


def _missing_events(setup: Setup) -> list[str]:
    """The events for which nothing here runs ctx, in whichever form."""
    there = {hook.event for file in setup.files for hook in file.hooks}
    there.update(hook.event for file in setup.files for hook in file.unmanaged)
    there.update(registration.project_entries() if setup.has_plugin else ())
    return [event for event in _expected_entries(setup) if event not in there]


def _expected_entries(setup: Setup) -> Mapping[str, Group]:
    """What there should be: for the user, unless only a project or the plugin has our hooks."""
    shared = setup.has_plugin or any(file.hooks for file in setup.files[1:])
    return registration.project_entries() if shared and not setup.user.hooks else setup.wanted


def _settings_files(setup: Setup) -> tuple[ClientSettings, ...]:
    """The files that `ctx install` changes."""
    return setup.files[:2]


def _by_install(setup: Setup, file: ClientSettings, does: str) -> str:
    if file is setup.user:
        return setup.by_install(does)
    return f"`ctx install --project` {does}."


def _in_file(setup: Setup, file: ClientSettings) -> Iterator[DoctorCheck]:
    """What differs from what this ctx would write."""
    where = path_text(file.path)
    entries = setup.wanted if file is setup.user else registration.project_entries()
    if file in _settings_files(setup) and _differs(file, entries):
        seen = f"{where} has hooks that differ from those of this ctx."
        yield DoctorCheck("hooks", "warning", seen, _by_install(setup, file, "updates them"))
    for hook in file.hooks:
        if hook.is_narrowed:
            seen = f"{where} runs {hook.event} only for `{hook.matcher}`."
            advice = 'Set its matcher to "" unless this is intended: ctx does not see other calls.'
            yield DoctorCheck("hooks", "warning", seen, advice)
    for other in file.unmanaged:
        seen = (
            f"{where}, {other.place}: a hook of ctx that `ctx install` does not manage, for"
            f" {other.event}: {other.line[:200]}"
        )
        advice = "Remove it, then run `ctx install`; otherwise the hook runs twice."
        yield DoctorCheck("hooks", "warning", seen, advice)


def _differs(file: ClientSettings, entries: Mapping[str, Group]) -> bool:
    """Whether a hook is not as it should be, is there twice, or only a part of it is there."""
    standing = [(hook.event, hook.hook) for hook in file.hooks]
    events_there = {hook.event for hook in file.hooks}
    wanted = [
        (event, hook)
        for event, group in entries.items()
        if event in events_there
        for hook in group["hooks"]
    ]
    is_former = any(hook.matcher in settings_file.FORMER for hook in file.hooks)
    return is_former or len(standing) != len(wanted) or any(hook not in standing for hook in wanted)


def _run_hooks(setup: Setup) -> Iterator[DoctorCheck]:
    """Run each command that is registered somewhere, once."""
    commands = [hook.command for file in setup.files for hook in file.hooks]
    if setup.has_plugin:
        groups = registration.project_entries().values()
        commands += [hook["command"] for group in groups for hook in group["hooks"]]
    outcomes: dict[str, list[str]] = {}
    for command in dict.fromkeys(commands):
        word = registration.word_of(command) or ""
        problem = install.try_command(command, word, setup.variables)
        outcomes.setdefault(problem, []).append(command)
    for problem, tried_ones in outcomes.items():
        words = [registration.word_of(command) or "" for command in tried_ones]
        told = ", ".join(dict.fromkeys(words))
        if not problem:
            yield ok("hooks run", f"tried {told}: fine")
        elif tried_ones[0] == registration.plain_command(words[0]):
            advice = f"`{tried_ones[0]}` needs this ctx on the PATH of the client."
            yield DoctorCheck("hooks run", "problem", f"{told}: {problem}", advice)
        else:
            advice = f"{setup.by_install('registers it again')} Now it is: {tried_ones[0]}"
            yield DoctorCheck("hooks run", "problem", f"{told}: {problem}", advice)


def _model(setup: Setup) -> Iterator[DoctorCheck]:
    """The state of the model. Checking costs nothing; if none is configured, no server is asked."""
    # A project has no say in it.
    environment, store = setup.environment, setup.environment.user_store
    config = survey(store.config_file, None, environment.variables, environment.overrides)
    found = backends.survey_backends(config, setup.variables, store.home)
    match found.state:
        case "off":
            yield ok("model", f"off{_list_other_models(found)}")
        case "none":
            seen = f"auto: none is used, as {found.problem.rstrip('.')}{_list_other_models(found)}"
            yield DoctorCheck(
                "model", "warning", seen, f"{_CHOOSE_MODEL}; to turn models off, use `off`."
            )
        case "answers":
            yield ok("model", _model_line(found))
        case "silent":
            yield DoctorCheck("model", "problem", f"{found.backend}: {found.problem}", found.advice)
    # Without a ledger, no model is asked.
    if problem := ledger.problem(store.ledger):
        yield DoctorCheck("ledger", "problem", problem.message, problem.hint or "")


def _model_line(found: BackendSurvey) -> str:
    chosen = "auto, " if found.setting == "auto" else ""
    context = f", {found.context_tokens:,} tokens of context" if found.context_tokens else ""
    detail = f" ({found.detail})" if found.detail else ""
    return f"{chosen}{found.backend}: {found.model or 'its own'} at {found.where}{context}{detail}"


def _list_other_models(found: BackendSurvey) -> str:
    """Available models, worded so that they are not taken for the configured one."""
    if not found.others:
        return ""
    return f"; available, but not configured: {', '.join(found.others)}"


CHECKS: Mapping[str, Callable[[Setup], Iterator[DoctorCheck]]] = {
    "client": _clients,
    "client settings": _client_settings,
    "hooks": _registered_hooks,
    "hooks run": _run_hooks,
    "MCP": _server,
    "PATH": _path,
    "skill": _skill,
    "model": _model,
}
