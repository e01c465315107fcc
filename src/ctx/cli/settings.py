"""What the surroundings say: environment, folder, terminal. Nothing else reads them."""

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from ctx import ids
from ctx.errors import UsageError
from ctx.layout import UserStore

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ctx.ids import SessionId


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

    @classmethod
    def from_environment(cls) -> "Settings":
        known = {"NO_COLOR", "EDITOR", "VISUAL", "COLUMNS", "CLAUDE_CODE_SESSION_ID"}
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
        )

    @property
    def user_store(self) -> UserStore:
        home = self.environment.get("CTX_HOME") or os.path.join("~", ".ctx")
        return UserStore(os.path.abspath(os.path.expanduser(home)))

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
