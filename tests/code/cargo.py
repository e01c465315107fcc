"""The real cargo, for tests: with a separate home and the toolchain of this machine."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import installed


def is_here() -> bool:
    """Whether cargo is installed, or required."""
    return installed.IS_REQUIRED or shutil.which("cargo") is not None


def settle(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Put cargo on the PATH, with a temporary home. Skip the test if cargo is missing."""
    if not is_here():
        installed.skip_without("cargo")
    monkeypatch.setenv("CARGO_HOME", str(home / "cargo"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(home / "target"))
    if "RUSTUP_HOME" not in os.environ:
        real = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rustup"
        monkeypatch.setenv("RUSTUP_HOME", str(real))


def cargo_test_output(root: Path) -> str:
    """The output of `cargo test` in a workspace, whether it passes or fails."""
    done = subprocess.run(
        ["cargo", "test", "--offline", "--color", "never"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout
