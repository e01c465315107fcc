"""Workers as separate processes with a temporary home; all end with their test."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ctx.layout import UserStore
from ctx.worker import process_lock

# Far more than anything here takes: where it is reached, something hangs.
PATIENCE_S = 300.0


def until(holds: Callable[[], Any], seconds: float = PATIENCE_S) -> Any:
    """Wait until a condition holds, and return its value."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not come about in time"
        select.select([], [], [], 0.01)
    return found


class Workers:
    """The workers of one home."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.store = UserStore(str(home))
        self.environment = {
            **{name: os.environ[name] for name in os.environ if not name.startswith("CTX_")},
            "HOME": str(home.parent),
            "CTX_HOME": str(home),
            "CTX_WORKER_AUTOSTART": "0",
            **environment,
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def spawn(self, *words: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start one, without waiting for it."""
        process = subprocess.Popen(
            [sys.executable, "-m", "ctx", "worker", "run", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
            **options,
        )
        self._started.append(process)
        return process

    def start(self, *words: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start one, and wait until it answers."""
        process = self.spawn(*words, **options)
        until(lambda: (self.health() or {}).get("pid") == process.pid or process.poll() is not None)
        assert process.poll() is None, process.stdout and process.stdout.read()
        return process

    @property
    def pid(self) -> int | None:
        owner = process_lock.running_worker(self.store.worker_lock)
        return owner.pid if owner else None

    def health(self) -> dict[str, Any] | None:
        try:
            return self.get("/api/health")
        except OSError:
            return None

    def get(self, path: str) -> dict[str, Any]:
        return self.ask("GET", path)[1]

    def ask(
        self, method: str, path: str, body: bytes = b"", seconds: float = PATIENCE_S
    ) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(self.store.worker_socket)
            head = f"{method} {path} HTTP/1.1\r\nHost: ctx\r\nConnection: close\r\n"
            head += f"Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            told = b""
            while part := connection.recv(65536):
                told += part
        status, _, rest = told.partition(b"\r\n")
        if not status:
            raise ConnectionResetError
        return int(status.split()[1]), json.loads(rest.partition(b"\r\n\r\n")[2])

    def log(self) -> list[str]:
        """The lines of the log, without times and processes."""
        path = Path(self.store.worker_log)
        lines = path.read_text().splitlines() if path.exists() else []
        return [each.split(" ", 2)[2] for each in lines]

    def close(self) -> None:
        """End all running workers, also one that another process started.

        The log is printed, so that a failed test shows it.
        """
        sys.stdout.write("\n".join(["worker.log:", *self.log(), ""]))
        if pid := self.pid:
            end(pid)
        for process in self._started:
            process.kill()
            process.communicate()


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    until(lambda: not is_running(pid))


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run."""
    if Path("/proc/self/task").exists():
        lists = Path(f"/proc/{pid}/task").glob("*/children")
        return [int(each) for file in lists for each in file.read_text().split()]
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    pairs = [line.split() for line in table.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:
        return os.path.isdir("/proc/self") is False
    return state != "Z"


def quickly(**more: str) -> Mapping[str, str]:
    """Settings of a worker with short waiting times."""
    return {"CTX_WORKER_IDLE_SECONDS": "0.2", **more}
