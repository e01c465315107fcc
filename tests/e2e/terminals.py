"""A command on a terminal."""

import errno
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path


def on_a_terminal(
    words: list[str],
    folder: Path,
    limit_s: float = 60,
    prepare: Callable[[], None] | None = None,
    columns: int = 200,
    answer: str = "",
) -> str:
    """The output of a command on a terminal. `prepare` is called in its process.

    `answer` is typed when the command asks for a confirmation.
    """
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 0, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "ctx", *words],
        cwd=folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "COLUMNS": str(columns)},
        preexec_fn=prepare,
    )
    os.close(terminal)
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
            if answer and seen.endswith(b"[y/N] "):
                os.write(master, answer.encode())
                answer = ""
        process.wait(timeout=300)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return seen.decode("utf-8", "replace")
