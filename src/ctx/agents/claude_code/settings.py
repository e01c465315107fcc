"""What the doctor examines: clients, their settings, and what should be in them."""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from ctx import disk, layout
from ctx.agents.claude_code import registration
from ctx.agents.claude_code.clients import Client
from ctx.agents.claude_code.registration import Group
from ctx.agents.host_setup import edited_file, hook_commands, jsonc, settings_file
from ctx.agents.host_setup.settings_file import NamedEvent, RegisteredHook, UnmanagedHook
from ctx.config.resolve import survey
from ctx.errors import CtxError
from ctx.operations.store_checks import blocks_folder, nearest_folder
from ctx.sqlite.connection import path_text
from ctx.workspace import Environment


class ClientSettings(NamedTuple):
    """A settings file of the client, as far as it can be read."""

    path: str
    hooks: tuple[RegisteredHook, ...] = ()
    """Our hooks in the form that `ctx install` writes."""
    unmanaged: tuple[UnmanagedHook, ...] = ()
    """Hooks that run ctx in another form."""
    events: tuple[NamedEvent, ...] = ()
    """All events that it names, ours and those of others."""
    plain: Mapping[str, Any] = {}
    problem: str = ""
    """Why the client cannot read it."""
    advice: str = ""
    is_broken: bool = False
    """Whether ctx cannot parse it either, and therefore cannot change it."""

    @property
    def has_plugin(self) -> bool:
        """Whether our plugin is enabled, from any marketplace."""
        plugins = self.plain.get("enabledPlugins")
        named = plugins.items() if isinstance(plugins, dict) else ()
        return any(name.startswith("ctx@") and is_on is True for name, is_on in named)


class Setup:
    """The state to examine, read once."""

    def __init__(
        self,
        environment: Environment,
        claude_folder: str,
        clients: tuple[Client, ...],
        variables: Mapping[str, str],
    ) -> None:
        self.environment = environment
        self.claude_folder = claude_folder
        self.clients = clients
        self.variables = variables
        """The whole environment, which hooks also have."""

    @cached_property
    def project_folder(self) -> str:
        """The project's own settings, if it has any."""
        place = layout.place(self.environment.folder, self.environment.user_store.home)
        return os.path.join(place.folder, ".claude")

    @cached_property
    def user(self) -> ClientSettings:
        return read_settings(os.path.join(self.claude_folder, "settings.json"))

    @cached_property
    def project(self) -> ClientSettings:
        return read_settings(os.path.join(self.project_folder, "settings.json"))

    @cached_property
    def is_project(self) -> bool:
        """Whether there is a project here other than the user's own folder."""
        return os.path.realpath(self.project_folder) != os.path.realpath(self.claude_folder)

    @cached_property
    def files(self) -> tuple[ClientSettings, ...]:
        """All settings files that the client reads here, in their order."""
        if not self.is_project:
            return (self.user,)
        return self.user, self.project, read_settings(f"{self.project_folder}/settings.local.json")

    @property
    def has_plugin(self) -> bool:
        return any(file.has_plugin for file in self.files)

    @cached_property
    def wanted(self) -> dict[str, Group]:
        """What `ctx install` would register for the user now."""
        config = survey(
            self.environment.user_store.config_file, None, self.environment.variables, ()
        )
        return registration.user_entries(
            [client.version for client in self.clients],
            interpreter=hook_commands.interpreter(),
            budget=config.integer("context.budget"),
            present=self.user.hooks,
        )

    def by_install(self, does: str) -> str:
        """The advice to run `ctx install`, preceded by what would prevent it from working."""
        home = self.environment.user_store.home
        if blocks_folder(home):
            return f"Move {path_text(home)} away, then `ctx install` {does}."
        if self.user.is_broken:
            return f"Fix {path_text(self.user.path)}, then `ctx install` {does}."
        for folder in map(nearest_folder, (home, self.claude_folder)):
            if not os.access(folder, os.W_OK | os.X_OK):
                return (
                    f"Make {path_text(folder)} writable for this user, then `ctx install` {does}."
                )
        return f"`ctx install` {does}."


def read_settings(path: str) -> ClientSettings:
    try:
        with disk.explain_errors("reading it"):
            text = edited_file.read(path)
        if text is None or jsonc.is_blank(text):
            return ClientSettings(path)
        document = jsonc.parse(text)
        hooks = settings_file.registered_hooks(text, registration.is_ours)
        others = settings_file.unmanaged_hooks(text, registration.is_ours, registration.mentions)
        reason = settings_file.unreadable(text)
    except CtxError as error:
        return _broken_settings(path, error)
    plain = document.root.plain
    if not isinstance(plain, dict):
        problem = f"{path_text(path)} is not an object."
        return ClientSettings(path, problem=problem, advice=_FIX_FILE_ADVICE, is_broken=True)
    named = tuple(settings_file.named_events(text))
    problem = f"{path_text(path)}, {reason}." if reason else ""
    return ClientSettings(
        path, hooks, others, named, plain, problem, _FIX_FILE_ADVICE if reason else ""
    )


_FIX_FILE_ADVICE = "Fix the file: as it is, the client reads no hooks from it."


def _broken_settings(path: str, error: CtxError) -> ClientSettings:
    where = "" if path_text(path) in error.message else f"{path_text(path)}, "
    advice = error.hint if error.hint and error.hint != error.default_hint else _FIX_FILE_ADVICE
    if os.path.islink(path) and not os.path.exists(path):
        advice = "Replace the link by a plain file."
    return ClientSettings(path, problem=where + error.message, advice=advice, is_broken=True)
