"""Conversations from before ctx was installed: `ctx install` offers to import them.

Only names of files are read. About a host whose conversations were imported, or were declined,
nothing is said again.
"""

import os
from collections.abc import Iterable
from itertools import islice

from ctx import disk
from ctx.agents.known_hosts import HOSTS
from ctx.capture import session_state
from ctx.cli.output import Output, count
from ctx.cli.settings import Settings
from ctx.workspace import Memory

_FILE = "past_conversations"
"""In CTX_HOME: the names of the hosts that were decided about."""
_MOST = 1_000
"""Files of a host that are looked at."""


def note(found: dict[str, int], output: Output) -> None:
    for host in found:
        command = f"ctx import --from {host} --transcripts"
        output.note(f"{number_of({host: found[host]})} found. To import: `{command}`")


def find(memory: Memory, settings: Settings) -> dict[str, int]:
    """By host, how many transcripts belong to no session that is stored."""
    found: dict[str, int] = {}
    decided = _decided(settings)
    for name in HOSTS.names:
        if name.encode() in decided:
            continue
        host = HOSTS.named(name)
        folder = settings.expanded(host.folder(settings.environment, settings.expanded("~")))
        files = host.transcripts.files(host.transcripts.folder(folder))
        sessions = {host.transcripts.session_of(path) for path in islice(files, _MOST)}
        new = sum(session_state.find(memory.local, session) is None for session in sessions)
        found |= {name: new} if new else {}
    return found


def settle(settings: Settings, hosts: Iterable[str]) -> None:
    """Say nothing more about these hosts."""
    home = settings.user_store.home
    names = sorted({*_decided(settings), *(host.encode() for host in hosts)})
    disk.make_folder(home)
    disk.replace(os.path.join(home, _FILE), b"".join(b"%s\n" % name for name in names))


def _decided(settings: Settings) -> list[bytes]:
    return (disk.read_or_none(os.path.join(settings.user_store.home, _FILE)) or b"").split()


def number_of(found: dict[str, int]) -> str:
    least = "At least " if _MOST in found.values() else ""
    return f"{least}{count(sum(found.values()), 'past conversation')}"
