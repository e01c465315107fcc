"""Commands as a shell starts them, also on a terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SECONDS = 300


class Running:
    """A command with its own process group, as a shell starts it, with or without a terminal."""

    def __init__(
        self,
        *words: str,
        on_terminal: bool = False,
        folder: Path | None = None,
        columns: int = 80,
        prepare: Callable[[], None] | None = None,
        **variables: str,
    ) -> None:
        """`prepare` is called in the new process."""
        self._controller, terminal = pty.openpty() if on_terminal else (-1, -1)
        if on_terminal:
            size = struct.pack("HHHH", 0, columns, 0, 0)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
            variables["COLUMNS"] = str(columns)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ctx", *words],
            stdin=terminal if on_terminal else subprocess.DEVNULL,
            stdout=terminal if on_terminal else subprocess.PIPE,
            stderr=terminal if on_terminal else subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1", **variables},
            start_new_session=True,
            preexec_fn=prepare,
        )
        self.pid = self._process.pid
        self.shown = ""
        if on_terminal:
            os.close(terminal)

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Wait until a condition holds or the command has ended. A zombie can be inspected."""
        deadline = time.monotonic() + SECONDS
        while not happened() and self._process.poll() is None:
            assert time.monotonic() < deadline, self.shown
            time.sleep(0.005)

    def wait_until_handling(self) -> None:
        """Wait until the program handles signals; Python itself does not handle SIGTERM."""
        self.wait_for(lambda: bool(self._mask("SigCgt") >> (signal.SIGTERM - 1) & 1))

    def _mask(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next((int(line.split()[1], 16) for line in lines if line.startswith(name)), 0)

    def wait_for_text(self, text: str) -> None:
        while text not in self.shown and (part := self._part()):
            self.shown += part

    def type(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def has_open(self, path: str) -> bool:
        folder = f"/proc/{self.pid}/fd"
        try:
            return any(os.readlink(f"{folder}/{fd}") == path for fd in os.listdir(folder))
        except OSError:
            return False

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Signal the whole group, as a terminal does for Ctrl-C."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def end(self) -> int:
        """Read the output until the end, and return the exit code."""
        while part := self._part():
            self.shown += part
        code = self._process.wait(SECONDS)
        if self._controller >= 0:
            os.close(self._controller)
        elif self._process.stdout:
            self._process.stdout.close()
        return code

    def _part(self) -> str:
        stream = self._controller
        if self._process.stdout:
            stream = self._process.stdout.fileno()
        if not select.select([stream], [], [], SECONDS)[0]:
            self.interrupt(signal.SIGKILL)
            self._process.wait(SECONDS)
            pytest.fail(f"It does not end; so far it printed:\n{self.shown}")
        try:
            return os.read(stream, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
        except OSError:
            return ""  # Linux says so when everything is read from a terminal.


def on_a_terminal(
    words: list[str],
    folder: Path,
    *,
    prepare: Callable[[], None] | None = None,
    columns: int = 200,
    answer: str = "",
) -> str:
    """The output of a command on a terminal. `answer` is typed when it asks for a confirmation."""
    running = Running(*words, on_terminal=True, folder=folder, columns=columns, prepare=prepare)
    if answer:
        running.wait_for_text("[y/N] ")
        running.type(answer)
    running.end()
    return running.shown
