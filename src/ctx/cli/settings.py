"""What the surroundings say: environment, folder, terminal. Nothing else reads them."""

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from ctx import ids
from ctx.errors import ContentRefused, UsageError
from ctx.layout import UserStore

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ctx.ids import SessionId


class Screen(NamedTuple):
    """What a terminal may be given."""

    colours: bool = False
    columns: int = 80


class Settings(NamedTuple):
    """One look at the surroundings, taken at start-up and handed down from there."""

    environment: "Mapping[str, str]"
    """The variables that begin with `CTX_`, and the few others that ctx knows."""
    folder: str
    """Where the command works: the current folder or `-C DIR`."""
    overrides: tuple[str, ...] = ()
    """`KEY=VALUE` from `--set`, the last word on a setting."""
    session: str | None = None
    """`--session`."""
    chosen_database: str | None = None
    """`--db`."""

    @classmethod
    def from_environment(cls) -> "Settings":
        known = {"NO_COLOR", "EDITOR", "VISUAL", "COLUMNS", "TERM", "CLAUDE_CODE_SESSION_ID"}
        known |= {"CLAUDE_CONFIG_DIR", "CLAUDE_MEM_DATA_DIR"}
        seen = {
            name: value
            for name, value in os.environ.items()
            if name in known or name.startswith("CTX_")
        }
        return cls(seen, "")

    def with_options(self, options: "argparse.Namespace") -> "Settings":
        folder = os.path.abspath(getattr(options, "in_folder", None) or _current_folder())
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is not a folder.")
        return self._replace(
            folder=folder,
            overrides=(
                *getattr(options, "overrides_0", ()),
                *getattr(options, "overrides_1", ()),
            ),
            session=getattr(options, "session", None),
            chosen_database=getattr(options, "db", None),
        )

    @property
    def screen(self) -> Screen:
        colours = not self.environment.get("NO_COLOR") and self.environment.get("TERM") != "dumb"
        told = self.environment.get("COLUMNS", "")
        if told.isascii() and told.isdigit() and len(told) < 6 and int(told):
            return Screen(colours, int(told))
        try:
            return Screen(colours, os.get_terminal_size().columns or Screen().columns)
        except OSError:
            return Screen(colours)

    @property
    def user_store(self) -> UserStore:
        home = self.environment.get("CTX_HOME") or os.path.join("~", ".ctx")
        return UserStore(os.path.abspath(os.path.expanduser(home)))

    @property
    def database(self) -> str:
        """The file of the graph: `--db`, else `CTX_DB`, else the one of the user store."""
        chosen = self.chosen_database or self.environment.get("CTX_DB")
        if not chosen:
            return self.user_store.database
        if "://" in chosen:
            raise UsageError(
                f"{chosen.split('://')[0]}:// is no store that this version knows.",
                hint="--db and CTX_DB take the path of a file.",
            )
        return os.path.abspath(os.path.join(self.folder, os.path.expanduser(chosen)))

    @property
    def claude_folder(self) -> str:
        """Where Claude Code keeps what belongs to this person."""
        chosen = self.environment.get("CLAUDE_CONFIG_DIR") or os.path.join("~", ".claude")
        return os.path.abspath(os.path.expanduser(chosen))

    @property
    def claude_mem_database(self) -> str:
        folder = self.environment.get("CLAUDE_MEM_DATA_DIR") or os.path.join("~", ".claude-mem")
        return os.path.abspath(os.path.join(os.path.expanduser(folder), "claude-mem.db"))

    @property
    def joined_session(self) -> "SessionId":
        """`--session`, else `CTX_SESSION`, else the implicit session of the command line."""
        named = self.session or self.environment.get("CTX_SESSION")
        return ids.session_id(named) if named else ids.CLI_SESSION


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError(
            "The current folder no longer exists.", hint="cd somewhere else."
        ) from None


def stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


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
            f"What comes on stdin is not UTF-8: byte {data[error.start]:#04x} at {error.start:,}.",
            hint="Convert it first, for example with `iconv -t utf-8`.",
        ) from None
