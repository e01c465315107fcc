"""The folder in which Claude Code's program is asked one question, of which nothing is left.

The folder bears the id of the session. So whatever the client writes about either, in the folder
where it keeps everybody's sessions, has that id in its name, or lies in a folder that has.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping

from ctx import clock, disk

_ABANDONED_NS = 24 * 3600 * 10**9


@contextlib.contextmanager
def scratch_folder(folder: str, variables: Mapping[str, str]) -> Iterator[str]:
    """A folder for one question. Its name is the id of a session, which nobody else has."""
    # The client calls folders by their names without links.
    folder = os.path.realpath(folder)
    session = str(uuid.uuid4())
    scratch = os.path.join(folder, session)
    with disk.explained("making a folder for Claude Code"):
        disk.make_folder(scratch, durable_name=False)
    try:
        _remove_abandoned(folder, variables)
        yield scratch
    finally:
        _remove_traces(scratch, variables)


def _remove_abandoned(folder: str, variables: Mapping[str, str]) -> None:
    """What was left behind by somebody who was killed; whatever else is here is not ours."""
    for path in _entries(folder):
        if not _is_session(os.path.basename(path)):
            continue
        with contextlib.suppress(OSError):
            if clock.wall_ns() - os.stat(path).st_mtime_ns > _ABANDONED_NS:
                _remove_traces(path, variables)


def _is_session(name: str) -> bool:
    """Whether a name is an id that `scratch_folder` made."""
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False


def _remove_traces(scratch: str, variables: Mapping[str, str]) -> None:
    """Remove it, and whatever has the id of its session in its name."""
    _remove(scratch)
    session = os.path.basename(scratch)
    home = os.path.join(variables.get("HOME", ""), ".claude")
    config = variables.get("CLAUDE_CONFIG_DIR") or home
    if not os.path.isabs(config):
        return
    for folder in (*_entries(config), *_entries(os.path.join(config, "projects"))):
        for path in _entries(folder):
            name = os.path.basename(path)
            if name.startswith(session) or name.endswith(session):
                _remove(path)


def _entries(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [os.path.join(folder, name) for name in disk.names(folder)]
    return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            disk.discard(path)
