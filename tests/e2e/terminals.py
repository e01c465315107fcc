"""A command on a terminal."""

import errno
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def on_a_terminal(
    words: list[str],
    folder: Path,
    limit_s: float = 60,
    prepare: Callable[[], None] | None = None,
    typed: str = "",
) -> str:
    """What a person sees of a command, and types. `prepare` is called in its process."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ctx", *words],
        cwd=folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "COLUMNS": "200"},
        preexec_fn=prepare,
    )
    os.close(terminal)
    os.write(master, typed.encode())
    seen = b""
    deadline = time.monotonic() + limit_s
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                part = os.read(master, 65536)
            except OSError as error:
                # Linux says so when the other side is closed.
                assert error.errno == errno.EIO
                break
            if not part:
                break
            seen += part
        process.wait(timeout=300)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return seen.decode("utf-8", "replace")
