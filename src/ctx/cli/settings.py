"""The environment: variables, folder, terminal. Nothing else reads them."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from ctx import clock, ids, interrupts, layout
from ctx.errors import ContentRefused, DiskFailure, UsageError
from ctx.ids import SessionId
from ctx.layout import UserStore


class Screen(NamedTuple):
    """What a terminal supports."""

    colours: bool = False
    columns: int = 80
    rows: int = 0
    """0 if unknown."""
    pager: str = ""
    """The program for answers that do not fit; empty if there is none."""


class Settings(NamedTuple):
    """The environment, read once at start-up and passed on."""

    environment: Mapping[str, str]
    """The variables that begin with `CTX_`, and the few others that ctx knows."""
    folder: str
    """The folder of the command: the current folder or `-C DIR`."""
    overrides: tuple[str, ...] = ()
    """`KEY=VALUE` from `--set`, which overrides all other values."""
    session: str | None = None
    """`--session`."""
    chosen_database: str | None = None
    """`--db`."""
    untrusted: bool = False
    """`--untrusted`."""

    @classmethod
    def from_environment(cls) -> "Settings":
        known = {"HOME", "NO_COLOR", "EDITOR", "VISUAL", "PAGER", "COLUMNS", "TERM"}
        known |= {"CLAUDE_CONFIG_DIR", "CLAUDE_MEM_DATA_DIR"}
        # Where hosts keep their files, and their sessions, for `ctx mcp`. A setting may name the
        # key for a server of vectors (`search.api_key_env`).
        ends = ("_HOME", "_SESSION_ID", "_API_KEY")
        variables = {
            name: value
            for name, value in os.environ.items()
            if name in known or name.startswith("CTX_") or name.endswith(ends)
        }
        clock.be_patient(variables.get("CTX_PATIENCE", ""))
        return cls(variables, "")

    def with_options(self, options: argparse.Namespace) -> "Settings":
        folder = os.path.abspath(getattr(options, "in_folder", None) or _current_folder())
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is not a folder.", hint="-C needs an existing folder.")
        database = getattr(options, "db", None)
        if database == "":
            raise UsageError("--db needs a file.", hint="Leave it out for the default store.")
        overrides = (*getattr(options, "overrides_0", ()), *getattr(options, "overrides_1", ()))
        if overrides:
            from ctx.config import resolve

            # Also commands that read no settings reject invalid ones.
            resolve.load("", None, {}, overrides)
        session = getattr(options, "session", None)
        return self._replace(
            folder=folder,
            overrides=overrides,
            session=session,
            chosen_database=database,
            untrusted=getattr(options, "untrusted", False),
        )

    def expanded(self, path: str) -> str:
        """A path with `~` expanded."""
        if path.split(os.sep)[0] != "~":
            return os.path.expanduser(path)
        home = self.environment.get("HOME", "")
        # An empty or relative one would mean another folder from every folder.
        if not os.path.isabs(home):
            import pwd

            try:
                home = pwd.getpwuid(os.getuid()).pw_dir
            except KeyError:
                raise UsageError(
                    "HOME is not set to a folder, and this user has no other home.",
                    hint="Set HOME or CTX_HOME to the absolute path of a folder.",
                ) from None
        return home + path[1:]

    @property
    def screen(self) -> Screen:
        colours = not self.environment.get("NO_COLOR") and self.environment.get("TERM") != "dumb"
        is_capable = self.environment.get("TERM", "dumb") != "dumb"
        pager = self.environment.get("PAGER", "less") if is_capable else ""
        try:
            columns, rows = os.get_terminal_size()
        except OSError:
            columns, rows = 0, 0
        told = self.environment.get("COLUMNS", "")
        if told.isascii() and told.isdigit() and len(told) < 6 and int(told):
            columns = int(told)
        return Screen(colours, columns or Screen().columns, rows, pager)

    @property
    def user_store(self) -> UserStore:
        home = self.environment.get("CTX_HOME") or os.path.join("~", ".ctx")
        return UserStore(os.path.abspath(self.expanded(home)))

    @property
    def database(self) -> str:
        """The file of the graph, for a command that needs one."""
        self.refuse_server()
        return self.graph_database

    def refuse_server(self) -> None:
        """Refuse to work on a team's server, for a command about what is only on this machine."""
        if layout.is_server(self.graph_database):
            raise UsageError(
                "This command needs a store on this machine, not a server.",
                hint="Leave out --db, and unset CTX_DB.",
            )

    @property
    def graph_database(self) -> str:
        """The file of the graph, or the address of a team's server: `--db`, else `CTX_DB`, else
        the file of the user store."""
        chosen = self.chosen_database or self.environment.get("CTX_DB")
        if not chosen:
            home = self.user_store.home
            if os.path.exists(home) and not os.path.isdir(home):
                raise DiskFailure(
                    f"{home} is not a folder, so it cannot be the user store.",
                    hint="Set CTX_HOME to a folder, or unset it for ~/.ctx.",
                )
            return self.user_store.database
        if layout.is_server(chosen):
            return chosen
        if "://" in chosen:
            raise UsageError(
                f"{chosen.split('://')[0]}://: unknown kind of store.",
                hint="--db and CTX_DB take the path of a file, or postgresql://USER@HOST/DATABASE.",
            )
        return os.path.abspath(os.path.join(self.folder, self.expanded(chosen)))

    @property
    def claude_folder(self) -> str:
        """The user's folder of Claude Code."""
        chosen = self.environment.get("CLAUDE_CONFIG_DIR") or os.path.join("~", ".claude")
        return os.path.abspath(self.expanded(chosen))

    @property
    def claude_mem_database(self) -> str:
        folder = self.environment.get("CLAUDE_MEM_DATA_DIR") or os.path.join("~", ".claude-mem")
        return os.path.abspath(os.path.join(self.expanded(folder), "claude-mem.db"))

    @property
    def joined_session(self) -> SessionId:
        return self.joining[0]

    @property
    def joining(self) -> tuple[SessionId, str]:
        """The session that a command joins, and the problem of the file that can name it.

        The order is `--session`, `CTX_SESSION`, the session of the agent that runs the command, the
        session that `ctx stage start` began here, and the default session.
        """
        named = self.session or self.given_session
        if named:
            return ids.session_id(named), ""
        project = layout.find_project(self.folder, self.user_store.home)
        if project is None or not os.path.lexists(project.stage):
            return ids.CLI_SESSION, ""
        from ctx.project import current_session

        session, problem = current_session.joined(self.user_store.home, project)
        return session or ids.CLI_SESSION, problem

    @property
    def given_session(self) -> str | None:
        """The session that the environment names."""
        return self.environment.get("CTX_SESSION") or self._agents_session

    @property
    def is_in_agents_shell(self) -> bool:
        """Whether the command runs in the shell of an agent."""
        return self._agents_session is not None

    @property
    def _agents_session(self) -> str | None:
        """The session of the agent in whose shell a command runs, while it is live."""
        named = self.environment.get("CLAUDE_CODE_SESSION_ID")
        if not named:
            return None
        from ctx.hook_files import live

        is_known = live.is_session(named) and live.is_live(
            self.user_store.home, named, clock.wall_s()
        )
        return named if is_known else None


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError(
            "The current folder no longer exists.", hint="cd somewhere else."
        ) from None


def variables() -> dict[str, str]:
    """The whole environment, for programs that are started as from a shell."""
    return dict(os.environ)


def stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def read_line() -> str | None:
    """A line that the user types; None at the end of the input."""
    with interrupts.InterruptibleQuestion():
        if stdin_is_terminal():
            with suppress(OSError):  # Without a descriptor to wait for, the read itself waits.
                interrupts.wait_for_input(sys.stdin.fileno())
        line = sys.stdin.readline()
    return line.strip() if line else None


def read_secret(question: str) -> str:
    """A text that the user types without seeing it."""
    import getpass

    with interrupts.InterruptibleQuestion():
        return getpass.getpass(question)


def stdin_in_parts() -> Iterator[bytes]:
    """Read stdin in parts, because it may not fit into memory."""
    while sys.stdin is not None and (part := sys.stdin.buffer.read(1 << 16)):
        yield part


def read_stdin(most: int = 256 * 1024 * 1024) -> str:
    """All of stdin as text."""
    if sys.stdin is None:
        return ""
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise ContentRefused(f"There are more than {most:,} bytes on stdin.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContentRefused(
            (f"The text on stdin is not UTF-8: byte {data[error.start]:#04x} at {error.start:,}."),
            hint="Convert it first, for example with `iconv -t utf-8`.",
        ) from None
