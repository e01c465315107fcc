"""What `ctx install` asks once, above all about conversations from before.

Of these only the names of files are read. About a host whose conversations were imported, or were
declined, nothing is said again.
"""

import os
from collections.abc import Iterable
from itertools import islice

from ctx import disk
from ctx.agents.known_hosts import HOSTS, NAMES
from ctx.capture import session_state
from ctx.cli.output import Output, count
from ctx.cli.settings import Settings
from ctx.workspace import Memory

MCP = "mcp"
"""The question about the MCP server."""

_FILE = "answered"
"""In CTX_HOME: the questions that were answered, one for each host and for MCP."""
_MOST = 1_000
"""Files of a host that are looked at."""


def note(found: dict[str, int], output: Output) -> None:
    for host in found:
        command = f"ctx import --from {host} --transcripts"
        output.note(f"{number_of({host: found[host]})} found. To import: `{command}`")


def find(memory: Memory, settings: Settings) -> dict[str, int]:
    """By host, how many transcripts belong to no session that is stored."""
    found: dict[str, int] = {}
    decided = answered(settings)
    for name in NAMES:
        if name in decided:
            continue
        host = HOSTS.named(name)
        folder = settings.expanded(host.folder(settings.environment, settings.expanded("~")))
        files = host.transcripts.files(host.transcripts.folder(folder))
        sessions = {host.transcripts.session_of(path) for path in islice(files, _MOST)}
        new = sum(session_state.find(memory.local, session) is None for session in sessions)
        found |= {name: new} if new else {}
    return found


def answered(settings: Settings) -> list[str]:
    path = os.path.join(settings.user_store.home, _FILE)
    return (disk.read_or_none(path) or b"").decode(errors="replace").split()


def remember(settings: Settings, more: Iterable[str]) -> None:
    """Ask no more about these."""
    home = settings.user_store.home
    disk.make_folder(home)
    lines = "".join(f"{name}\n" for name in sorted({*answered(settings), *more}))
    disk.replace(os.path.join(home, _FILE), lines.encode())


def number_of(found: dict[str, int]) -> str:
    least = "At least " if _MOST in found.values() else ""
    return f"{least}{count(sum(found.values()), 'past conversation')}"
