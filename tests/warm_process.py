"""Processes that start at once: one process has everything imported, and forks for each of them.

`ctx serve` spends nine tenths of its start on imports.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select
from types import TracebackType

PROGRAM = """
import gc, json, os, socket, sys
from contextlib import suppress
from importlib import import_module
from ctx import interrupts
from ctx.cli.main import main

for name in sys.argv[2:]:
    import_module(name)
gc.freeze()
requests = socket.socket(fileno=int(sys.argv[1]))
while descriptors := socket.recv_fds(requests, 1, 3)[1]:
    out, err, status = descriptors
    line = b""
    while not line.endswith(b"\\n"):
        part = requests.recv(65536)
        if not part:
            raise SystemExit
        line += part
    if os.fork():
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        continue
    # This one waits for the process, and reports its end.
    if started := os.fork():
        os.write(status, b"%d\\n" % started)
        code = os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])
        os.write(status, b"%d\\n" % code)
        os._exit(0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for descriptor in descriptors:
        os.close(descriptor)
    requests.close()
    folder, variables, words = json.loads(line)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    interrupts.install()
    raise SystemExit(main(words))
"""


class WarmProcess:
    """The process that forks. It ends when it is closed, or when this process ends."""

    def __init__(self, *modules: str) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def __enter__(self) -> "WarmProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._requests.close()
        self._process.wait()

    def start(
        self, words: Sequence[str], folder: Path, variables: Mapping[str, str]
    ) -> "ForkedProcess":
        """Run the command line with these words in a process of its own."""
        out, their_out = os.pipe()
        status, their_status = os.pipe()
        socket.send_fds(self._requests, [b"."], [their_out, 2, their_status])
        self._requests.sendall(json.dumps([str(folder), dict(variables), words]).encode() + b"\n")
        os.close(their_out)
        os.close(their_status)
        return ForkedProcess(out, status)


class ForkedProcess:
    """What tests use of `subprocess.Popen`."""

    def __init__(self, out: int, status: int) -> None:
        self.stdout = os.fdopen(out)
        self._status = os.fdopen(status)
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select([self._status], [], [], 0)[0]:
            self.returncode = int(self._status.readline())
            self._status.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("ctx", timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
