"""Where random trials run: in memory, with a home of their own."""

import os
import tempfile

import pytest

from ctx import disk

# Power failures are not tested here.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a fresh folder


def prepare(space: str) -> None:
    """A temporary home for this process, and git without user settings."""
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.startswith(("CTX_", "GIT_", "CLAUDE")):
            patch.delenv(name)
    home = tempfile.mkdtemp(dir=space)
    patch.setenv("HOME", home)
    patch.setenv("CTX_HOME", f"{home}/.ctx")
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        patch.setenv(f"GIT_{role}_NAME", "A Person")
        patch.setenv(f"GIT_{role}_EMAIL", "person@example.org")
    patch.setattr(disk, "sync", lambda _: None)
