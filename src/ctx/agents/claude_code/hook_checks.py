"""The doctor's checks of hooks: whether the client accepts them, which exist, whether they work.

A settings file belongs to its owner, who may have changed our hooks or added them by hand. Unusual
settings are a warning; what keeps memory from working is a problem.
"""

from collections.abc import Iterator, Mapping

from ctx.agents.claude_code import client_events, install, registration
from ctx.agents.claude_code.clients import Client
from ctx.agents.claude_code.registration import Group
from ctx.agents.claude_code.settings_file import NamedEvent
from ctx.agents.claude_code.setup import ClientSettings, Setup
from ctx.operations.store_checks import DoctorCheck, ok
from ctx.sqlite.connection import shown


def readable(setup: Setup) -> Iterator[DoctorCheck]:
    """Whether the client can read its settings, and whether it runs hooks at all."""
    for file in setup.files:
        if file.problem:
            yield DoctorCheck("client settings", "problem", file.problem, file.advice)
        if file.plain.get("disableAllHooks") is True:
            finding = f"{shown(file.path)} disables all hooks."
            yield DoctorCheck(
                "client settings", "problem", finding, "Remove `disableAllHooks` from it."
            )
        for event, client in _spoiling(setup, file):
            finding = (
                f"{shown(file.path)}, {event.place}: Claude Code {client.version} does not know"
                f" {event.event}, and drops all hooks of the file for it."
            )
            advice = f"Remove it, or update {shown(client.path)}."
            is_ours = any(hook.event == event.event for hook in file.hooks)
            if is_ours and file in _installed(setup):
                advice = _by_install(setup, file, "removes our hook from it")
            yield DoctorCheck("client settings", "problem", finding, advice)


def _spoiling(setup: Setup, file: ClientSettings) -> Iterator[tuple[NamedEvent, Client]]:
    """Events that make a client ignore all hooks of the file."""
    for event in file.events:
        for client in setup.clients:
            if client.version and client_events.spoils_hooks(event.event, client.version):
                yield event, client
                break


def registered(setup: Setup) -> Iterator[DoctorCheck]:
    """Whether all hooks are registered, in the form that this ctx would register."""
    if setup.has_plugin:
        yield ok("hooks", "the plugin `ctx` is enabled")
    missing = _missing(setup)
    if missing == list(_wanted(setup)):
        finding = "No hook of ctx is registered with Claude Code."
        yield DoctorCheck("hooks", "problem", finding, setup.by_install("registers them"))
    elif missing:
        finding = f"Not registered: {', '.join(missing)}."
        mine = setup.user.hooks or not (setup.is_project and setup.project.hooks)
        advice = _by_install(setup, setup.user if mine else setup.project, "registers them")
        yield DoctorCheck("hooks", "problem", finding, advice)
    for file in setup.files:
        checks = [*_in_file(setup, file)]
        yield from checks
        if file.hooks and not missing and not checks and not any(_spoiling(setup, file)):
            yield ok("hooks", f"{len(file.hooks):,} in {shown(file.path)}, up to date")


def _missing(setup: Setup) -> list[str]:
    """The events without a hook of ctx in any form."""
    there = {hook.event for file in setup.files for hook in file.hooks}
    there.update(hook.event for file in setup.files for hook in file.unmanaged)
    there.update(registration.project_entries() if setup.has_plugin else ())
    return [event for event in _wanted(setup) if event not in there]


def _wanted(setup: Setup) -> Mapping[str, Group]:
    """The hooks that should exist: those for the user, unless only a project or the plugin has
    hooks."""
    shared = setup.has_plugin or any(file.hooks for file in setup.files[1:])
    return registration.project_entries() if shared and not setup.user.hooks else setup.wanted


def _installed(setup: Setup) -> tuple[ClientSettings, ...]:
    """The files that `ctx install` changes."""
    return setup.files[:2]


def _by_install(setup: Setup, file: ClientSettings, does: str) -> str:
    if file is setup.user:
        return setup.by_install(does)
    return f"`ctx install --project` {does}."


def _in_file(setup: Setup, file: ClientSettings) -> Iterator[DoctorCheck]:
    """The hooks of a file that differ from what this ctx would write."""
    where = shown(file.path)
    entries = setup.wanted if file is setup.user else registration.project_entries()
    if file in _installed(setup) and _differs(file, entries):
        finding = f"{where} has hooks that differ from those of this ctx."
        yield DoctorCheck("hooks", "warning", finding, _by_install(setup, file, "updates them"))
    for hook in file.hooks:
        if hook.is_narrowed:
            finding = f"{where} runs {hook.event} only for `{hook.matcher}`."
            advice = 'Set its matcher to "" unless this is intended: ctx does not see other calls.'
            yield DoctorCheck("hooks", "warning", finding, advice)
    for other in file.unmanaged:
        finding = (
            f"{where}, {other.place}: a hook of ctx that `ctx install` does not manage, for"
            f" {other.event}: {other.line[:200]}"
        )
        advice = "Remove it, then run `ctx install`; otherwise the hook runs twice."
        yield DoctorCheck("hooks", "warning", finding, advice)


def _differs(file: ClientSettings, entries: Mapping[str, Group]) -> bool:
    """Whether a hook differs from what it should be, is registered twice, or is incomplete."""
    standing = [(hook.event, hook.hook) for hook in file.hooks]
    events_there = {hook.event for hook in file.hooks}
    wanted = [
        (event, hook)
        for event, group in entries.items()
        if event in events_there
        for hook in group["hooks"]
    ]
    return len(standing) != len(wanted) or any(hook not in standing for hook in wanted)


def tried(setup: Setup) -> Iterator[DoctorCheck]:
    """Run each registered command once."""
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
        events = ", ".join(dict.fromkeys(words))
        if not problem:
            yield ok("hooks run", f"tried {events}: fine")
        elif tried_ones[0] == registration.plain_command(words[0]):
            advice = f"`{tried_ones[0]}` needs this ctx on the PATH of the client."
            yield DoctorCheck("hooks run", "problem", f"{events}: {problem}", advice)
        else:
            advice = f"{setup.by_install('registers it again')} Now it is: {tried_ones[0]}"
            yield DoctorCheck("hooks run", "problem", f"{events}: {problem}", advice)
