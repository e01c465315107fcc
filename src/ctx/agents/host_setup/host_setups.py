"""What ctx must know about a host to install itself there.

A host has files that ctx edits, each with an edit that adds our part and one that removes it. The
edits are functions of the text alone, so that a dry run, an installation and a removal are the same
code. The hooks are run before anything is written.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from ctx.agents.host_setup import program_runs
from ctx.agents.host_setup.edited_file import Edit
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


class FoundHost(NamedTuple):
    """A host on this machine."""

    program: str
    """The path of its program; empty if it is not on the PATH."""
    folder: str
    """Its own folder; empty if there is none yet."""


class HostSetup(Protocol):
    @property
    def name(self) -> str:
        """The name for `--host`; where ctx has an adapter for the host, the name of that."""

    @property
    def title(self) -> str: ...

    @property
    def program(self) -> str:
        """The name of its program; empty if it is started in another way."""

    @property
    def reads_shared_skill(self) -> bool:
        """Whether it reads the skill in `~/.agents/skills`."""

    def folder(self, machine: Machine) -> str:
        """The folder that shows that the host was used here."""

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        """What ctx edits, in the order in which it is added."""

    def hook_commands(self) -> Mapping[str, str]:
        """The command line of each hook, by the word that it runs. Empty: the host has no hooks."""

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        """What the host would send to a hook, for a made-up session in a folder."""

    def notes(self, machine: Machine) -> Iterator[str]:
        """What the user must know after an installation."""

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:
        """Traps of this host, once ctx is registered with it."""


def find_host(host: HostSetup, machine: Machine) -> FoundHost | None:
    """None if nothing shows that the host is on this machine."""
    folders = machine.variables.get("PATH", "").split(os.pathsep)
    program = next(program_runs.programs(host.program, folders), "") if host.program else ""
    folder = host.folder(machine)
    if not program and not os.path.isdir(folder):
        return None
    return FoundHost(program, folder if os.path.isdir(folder) else "")
