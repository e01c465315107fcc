"""The temporary folder in which Claude Code answers one request.

The folder is named after the session id. So everything that the client writes about it in its own
folders has that id in its path, and can be removed.
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
    """A folder for one request, named after a new session id."""
    # The client resolves links in folder names.
    folder = os.path.realpath(folder)
    session = str(uuid.uuid4())
    scratch = os.path.join(folder, session)
    with disk.explain_errors("making a folder for Claude Code"):
        disk.make_folder(scratch, durable_name=False)
    try:
        _remove_abandoned(folder, variables)
        yield scratch
    finally:
        _remove_traces(scratch, variables)


def _remove_abandoned(folder: str, variables: Mapping[str, str]) -> None:
    """Remove what killed processes left; other files stay."""
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
    """Remove the folder and every file with its session id in the name."""
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
