"""The doctor: whether everything works, what was seen, and what to do. It changes nothing.

A check is a function that looks at one thing and says what it found there. Hooks are not only
looked at: they are run, as the client would run them, with a store of their own.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from ctx import __version__, layout
from ctx.agents.claude_code import (
    child,
    clients,
    foreign_file,
    install,
    jsonc,
    registration,
    settings_file,
    skill,
)
from ctx.agents.claude_code.clients import Client
from ctx.agents.claude_code.registration import Group
from ctx.agents.claude_code.settings_file import Registered
from ctx.config.resolve import survey
from ctx.errors import CtxError
from ctx.operations.checkup import Check, check_up, looked, ok
from ctx.sqlite.connection import shown
from ctx.workspace import Surroundings

_VERSION = re.compile(r"ctx \d+\.\d+\.\d+\S*")
_VERSION_S = 5.0


class Diagnosis(NamedTuple):
    """The answer of `ctx doctor`."""

    checks: tuple[Check, ...]
    problems: int
    warnings: int


class Settings(NamedTuple):
    """A file of the client's settings, as far as it can be read."""

    path: str
    hooks: tuple[Registered, ...] = ()
    """Ours."""
    plain: Mapping[str, Any] = {}
    problem: str = ""
    """Why the client does not read it."""

    @property
    def has_plugin(self) -> bool:
        """Whether our plugin is switched on, from whichever marketplace it came."""
        plugins = self.plain.get("enabledPlugins")
        named = plugins.items() if isinstance(plugins, dict) else ()
        return any(name.startswith("ctx@") and is_on is True for name, is_on in named)


class Setup:
    """What is looked at, each thing once."""

    def __init__(
        self,
        surroundings: Surroundings,
        claude_folder: str,
        home: str,
        variables: Mapping[str, str],
    ) -> None:
        self.surroundings = surroundings
        self.claude_folder = claude_folder
        self.home = home
        """The user's."""
        self.variables = variables
        """The whole environment: hooks have it too."""

    @cached_property
    def clients(self) -> tuple[Client, ...]:
        return clients.installed(self.variables.get("PATH", ""), self.home, self.claude_folder)

    @cached_property
    def project_folder(self) -> str:
        """Where the project has settings of its own."""
        place = layout.place(self.surroundings.folder, self.surroundings.user_store.home)
        return os.path.join(place.folder, ".claude")

    @cached_property
    def user(self) -> Settings:
        return _read(os.path.join(self.claude_folder, "settings.json"))

    @cached_property
    def project(self) -> Settings:
        return _read(os.path.join(self.project_folder, "settings.json"))

    @cached_property
    def is_project(self) -> bool:
        """Whether there is a project here, and not the user's own folder."""
        return os.path.realpath(self.project_folder) != os.path.realpath(self.claude_folder)

    @cached_property
    def files(self) -> tuple[Settings, ...]:
        """All that the client reads here, one behind the other."""
        if not self.is_project:
            return (self.user,)
        return self.user, self.project, _read(f"{self.project_folder}/settings.local.json")

    @cached_property
    def wanted(self) -> dict[str, Group]:
        """What `ctx install` would register for the user now."""
        config = survey(
            self.surroundings.user_store.config_file, None, self.surroundings.environment, ()
        )
        return registration.user_entries(
            [client.version for client in self.clients],
            interpreter=registration.interpreter(),
            budget=config.integer("context.budget"),
        )


def examine(setup: Setup) -> Diagnosis:
    looks: dict[str, Callable[[Setup], Iterator[Check]]] = {
        "client": _clients,
        "client settings": _settings,
        "hooks": _registered,
        "hooks run": _hooks_run,
        "PATH": _path,
        "skill": _skill,
    }
    checks = [*check_up(setup.surroundings)]
    for name, look in looks.items():
        checks += looked(name, look(setup))
    states = [check.state for check in checks]
    return Diagnosis(tuple(checks), states.count("problem"), states.count("warning"))


def _clients(setup: Setup) -> Iterator[Check]:
    if not setup.clients:
        seen = "Claude Code is not on the PATH."
        yield Check("client", "warning", seen, "Install it, then run `ctx install` again.")
    for client in setup.clients:
        if client.version is None:
            seen = f"{shown(client.path)} does not say which version it is."
            advice = f"`{shown(client.path)} --version` should; see why it does not."
            yield Check("client", "warning", seen, advice)
        else:
            yield ok("client", f"Claude Code {client.version}: {shown(client.path)}")


def _settings(setup: Setup) -> Iterator[Check]:
    """Whether the client can read its settings, and whether it runs hooks at all."""
    for file in setup.files:
        if file.problem:
            advice = "Mend the file: as it is, the client takes no hooks from it."
            yield Check("client settings", "problem", file.problem, advice)
        if file.plain.get("disableAllHooks") is True:
            seen = f"{shown(file.path)} switches all hooks off."
            yield Check("client settings", "problem", seen, "Take `disableAllHooks` out of it.")


def _registered(setup: Setup) -> Iterator[Check]:
    """Whether hooks are registered, and as this ctx would register them now."""
    has_plugin = any(file.has_plugin for file in setup.files)
    if not has_plugin and not any(file.hooks for file in setup.files):
        seen = "No hook of ctx is registered with Claude Code."
        yield Check("hooks", "problem", seen, "`ctx install` registers them.")
        return
    if has_plugin:
        yield ok("hooks", "the plugin `ctx` is switched on")
    for file in setup.files:
        if not file.hooks:
            continue
        # One client that does not know an event is enough: it drops all hooks of the file.
        unknown = [hook.event for hook in file.hooks if hook.event not in setup.wanted]
        if file is setup.user:
            entries, command = setup.wanted, "ctx install"
        else:
            entries, command = registration.project_entries(), "ctx install --project"
        if unknown:
            seen = f"{shown(file.path)} has {unknown[0]}, which not every client here knows."
            advice = f"`{command}` takes it out: an older client drops all hooks for it."
            yield Check("hooks", "problem", seen, advice)
        elif file in (setup.user, setup.project) and not _is_current(file, entries):
            seen = f"{shown(file.path)} has hooks as this ctx would not register them."
            yield Check("hooks", "warning", seen, f"`{command}` brings them up to date.")
        else:
            yield ok("hooks", f"{len(file.hooks):,} in {shown(file.path)}, up to date")


def _is_current(file: Settings, entries: Mapping[str, Group]) -> bool:
    standing = [(hook.event, hook.hook) for hook in file.hooks]
    wanted = [(event, hook) for event, group in entries.items() for hook in group["hooks"]]
    return len(standing) == len(wanted) and all(hook in standing for hook in wanted)


def _hooks_run(setup: Setup) -> Iterator[Check]:
    """Run each command that is registered somewhere, once."""
    commands = [hook.command for file in setup.files for hook in file.hooks]
    if any(file.has_plugin for file in setup.files):
        groups = registration.project_entries().values()
        commands += [hook["command"] for group in groups for hook in group["hooks"]]
    outcomes: dict[str, list[str]] = {}
    for command in dict.fromkeys(commands):
        word = registration.word_of(command) or ""
        problem = install.try_command(command, word, setup.variables)
        outcomes.setdefault(problem, []).append(command)
    for problem, tried in outcomes.items():
        words = [registration.word_of(command) or "" for command in tried]
        told = ", ".join(dict.fromkeys(words))
        if not problem:
            yield ok("hooks run", f"tried {told}: fine")
        elif tried[0] == registration.plain_command(words[0]):
            advice = f"`{tried[0]}` needs this ctx on the PATH of the client."
            yield Check("hooks run", "problem", f"{told}: {problem}", advice)
        else:
            advice = f"`ctx install` registers it anew; now it is: {tried[0]}"
            yield Check("hooks run", "problem", f"{told}: {problem}", advice)


def _path(setup: Setup) -> Iterator[Check]:
    """Which `ctx` a shell finds: hooks of a project and of the plugin run that one, and so does
    Claude."""
    ours = os.path.dirname(registration.interpreter())
    advice = f"Put {shown(ours)} before everything else on the PATH."
    found = list(_programs(setup.variables.get("PATH", "")))
    if not found:
        seen = "`ctx` is not on the PATH."
        yield Check("PATH", "warning", seen, f"Put {shown(ours)} on it.")
        return
    first = found[0]
    version = _version(first, setup.variables)
    if os.path.dirname(os.path.realpath(first)) == os.path.realpath(ours):
        yield ok("PATH", f"`ctx` is {shown(first)}, this one")
    elif version == f"ctx {__version__}":
        yield ok("PATH", f"`ctx` is {shown(first)}, of the same version as this one")
    elif _VERSION.fullmatch(version):
        seen = f"`ctx` is {shown(first)}, and that is {version}; this is {__version__}."
        yield Check("PATH", "warning", seen, advice)
    else:
        seen = f"`ctx` is {shown(first)}, and that is another program."
        yield Check("PATH", "warning", seen, advice)


def _programs(path: str) -> Iterator[str]:
    """The programs of our name that a shell would find, the one that it takes first."""
    for folder in path.split(os.pathsep):
        program = os.path.join(folder, "ctx")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            yield program


def _version(program: str, variables: Mapping[str, str]) -> str:
    try:
        ended = child.run([program, "--version"], variables, os.sep, seconds=_VERSION_S)
    except OSError:
        return ""
    return ended.out.decode("utf-8", "replace").strip() if ended else ""


def _skill(setup: Setup) -> Iterator[Check]:
    mine = os.path.join(setup.claude_folder, "skills", "ctx")
    if os.path.lexists(os.path.join(mine, "SKILL.md")):
        yield _pages(mine, "ctx install")
    elif not any(file.has_plugin for file in setup.files):
        seen = f"It is not in {shown(mine)}: Claude does not know its commands."
        yield Check("skill", "warning", seen, "`ctx install` writes it.")
    projects = os.path.join(setup.project_folder, "skills", "ctx")
    if setup.is_project and os.path.lexists(os.path.join(projects, "SKILL.md")):
        yield _pages(projects, "ctx install --project")


def _pages(folder: str, command: str) -> Check:
    if skill.is_current(folder):
        return ok("skill", f"{shown(folder)}, up to date")
    if skill.edited(folder):
        return ok("skill", f"{shown(folder)}, changed by you")
    seen = f"{shown(folder)} is of another version of ctx."
    return Check("skill", "warning", seen, f"`{command}` brings it up to date.")


def _read(path: str) -> Settings:
    try:
        text = foreign_file.read(path)
        if text is None or jsonc.is_blank(text):
            return Settings(path)
        hooks = settings_file.registered(text, registration.is_ours)
        plain = jsonc.parse(text).root.plain
        problem = settings_file.unreadable(text)
    except CtxError as error:
        where = "" if error.message.startswith(shown(path)) else f"{shown(path)}, "
        return Settings(path, problem=where + error.message)
    if problem:
        problem = f"{shown(path)}, {problem}."
    elif not isinstance(plain, dict):
        problem = f"{shown(path)} is not an object."
    return Settings(path, hooks, plain if isinstance(plain, dict) else {}, problem)
