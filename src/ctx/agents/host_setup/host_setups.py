"""What ctx must know about a host to install itself there.

A host has files that ctx edits, each with an edit that adds our part and one that removes it. The
edits are functions of the text alone, so that a dry run, an installation and a removal are the same
code. The hooks are run before anything is written.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ctx.agents import known_hosts
from ctx.agents.host_setup import hook_commands, program_runs
from ctx.agents.host_setup.edited_file import Edit
from ctx.hook_files.spool import EVENTS
from ctx.operations.store_checks import DoctorCheck


class Machine(NamedTuple):
    """Where hosts are looked for."""

    home: str
    variables: Mapping[str, str]
    ctx_home: str
    """The folder of the user store, with the backups in it."""
    project: str = ""
    """The project in which a command runs, whose settings some hosts read too."""

    @property
    def config_home(self) -> str:
        """Where programs keep their settings by the rules of freedesktop.org."""
        named = self.variables.get("XDG_CONFIG_HOME", "")
        return named if os.path.isabs(named) else os.path.join(self.home, ".config")

    @property
    def shared_skill(self) -> str:
        """The skill for all hosts except Claude Code, which reads only its own folder."""
        return os.path.join(self.home, ".agents", "skills", "ctx")

    @property
    def claude_skill(self) -> str:
        folder = self.variables.get("CLAUDE_CONFIG_DIR") or os.path.join(self.home, ".claude")
        return os.path.join(folder, "skills", "ctx")


class HostFile(NamedTuple):
    """A file of a host, and our part of it."""

    what: Literal["hooks", "mcp", "plugin"]
    path: str
    add: Edit
    """Adds or updates our part; SettingsUnreadable if it is not possible."""
    remove: Edit
    """Restores the text without our part."""
    by_hand: str
    """What a user would add."""


class HookSpec(NamedTuple):
    """A hook to register."""

    event: str
    """The host's name for the event."""
    word: str
    """Our name for it, with which the script is called."""
    timeout: int
    """In the unit of the host."""
    matcher: str = ""
    """The tools for which the hook runs; empty: for all."""


class HostSetup(ABC):
    """How ctx is installed for a host, with a default where most hosts are the same."""

    name: str
    """The name for `--host`; where ctx has an adapter for the host, the name of that."""
    title: str
    program: str
    """The name of its program; empty if it is started in another way."""
    reads_shared_skill = True
    """Whether it reads the skill in `~/.agents/skills`."""
    reads_claude_skill = False
    """Whether it also reads the skill of Claude Code, and needs no second copy."""
    hooks: tuple[HookSpec, ...] = ()
    after_update = ""
    """What the user must do in the host after its hooks were updated."""

    @abstractmethod
    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        """What ctx edits, in the order in which it is added."""

    def folder(self, machine: Machine) -> str:
        """The folder that shows that the host was used here."""
        return known_hosts.HOSTS.named(self.name).folder(machine.variables, machine.home)

    def command(self, word: str) -> str:
        """The command line of a hook."""
        host = known_hosts.hooks_of(self.name)
        assert host is not None, f"{self.name} has no hooks"
        return hook_commands.command_line(
            word,
            host,
            interpreter=hook_commands.interpreter(),
            entry=hook_commands.entry_script(self.name),
        )

    def word_of(self, command: Any) -> str | None:
        """The hook that a command line runs; None if it is not ours."""
        if not isinstance(command, str):
            return None
        word = hook_commands.hook_name(command, hook_commands.entry_ending(self.name))
        return word if word in EVENTS else None

    def is_ours(self, command: str) -> bool:
        return self.word_of(command) is not None

    def event_of(self, word: str) -> str:
        """What the host calls the event of a hook."""
        return next(spec.event for spec in self.hooks if spec.word == word)

    def hook_commands(self) -> Mapping[str, str]:
        """The command line of each hook, by the word that it runs. Empty: the host has no hooks."""
        return {spec.word: self.command(spec.word) for spec in self.hooks}

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:  # noqa: ARG002
        """What the host would send to a hook, for a made-up session in a folder."""
        return {}

    def notes(self, machine: Machine) -> Iterator[str]:  # noqa: ARG002
        """What the user must know after an installation."""
        return iter(())

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:  # noqa: ARG002
        """Traps of this host, once ctx is registered with it."""
        return iter(())


def find_host(host: HostSetup, machine: Machine) -> str:
    """Its program on the PATH, or else its folder; empty if the host is not on this machine."""
    folders = machine.variables.get("PATH", "").split(os.pathsep)
    program = next(program_runs.programs(host.program, folders), "") if host.program else ""
    folder = host.folder(machine)
    return program or (folder if os.path.isdir(folder) else "")


# What was installed or removed, for the answer of a command

State = Literal[
    "made", "there", "written", "updated", "current", "added", "removed", "kept", "missing"
]


class InstalledPart(NamedTuple):
    """A part of ctx that was installed or removed."""

    what: Literal["store", "skill", "hooks", "mcp", "plugin", "projection", "git hook"]
    path: str
    state: State
