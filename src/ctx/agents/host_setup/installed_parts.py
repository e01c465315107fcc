"""What was installed or removed, for the answer of a command."""

from typing import Literal, NamedTuple

State = Literal[
    "made", "there", "written", "updated", "current", "added", "removed", "kept", "missing"
]


class InstalledPart(NamedTuple):
    """A part of ctx that was installed or removed."""

    what: Literal["store", "skill", "hooks", "mcp", "plugin", "projection", "git hook"]
    path: str
    state: State
