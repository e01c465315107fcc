"""Which Claude Code clients are installed, and their versions.

A machine often has more than one: a native one, one of npm, one that an editor brought along.
All of them read the same settings.
"""

import os
import re
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ctx.agents.claude_code import child

_VERSION = re.compile(r"(\d+\.\d+\.\d+\S*) \(Claude Code\)", re.ASCII)
_VERSION_S = 10.0
# It is only asked for its version: no reason to look for a newer one, or to tell anybody.
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


class Client(NamedTuple):
    path: str
    version: str | None
    """None: it does not say."""


def installed(path: str, home: str, claude_folder: str) -> tuple[Client, ...]:
    """All clients that a shell with this PATH would find, and those in their usual places.

    One that is found by several names is named once, as a shell would find it.
    """
    # A client in a folder that is relative to wherever one happens to be is a stranger's.
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    usual = [os.path.join(claude_folder, "local"), os.path.join(home, ".local", "bin")]
    found: dict[str, str] = {}
    for folder in folders + usual:
        program = os.path.join(folder, "claude")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            found.setdefault(os.path.realpath(program), program)
    return tuple(Client(program, _version(program, path, home)) for program in found.values())


def _version(program: str, path: str, home: str) -> str | None:
    words = [program, "--version"]
    try:
        # Some make their folder on the way, even if only asked for this.
        with TemporaryDirectory(prefix="ctx-client-", ignore_cleanup_errors=True) as folder:
            variables = {"PATH": path, "HOME": home, "CLAUDE_CONFIG_DIR": folder, **_QUIET}
            ended = child.run(words, variables, folder, seconds=_VERSION_S)
    except OSError:
        # It may be made for another kind of machine.
        return None
    found = _VERSION.search(ended.out.decode("utf-8", "replace")) if ended else None
    return found[1] if found else None
