"""A child process that gets input once and prints lines, within time and size limits.

Its temporary folder is named after the session id. So everything that the client writes about it in
its own folders has that id in its path, and can be removed.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, NamedTuple

from ctx import clock, disk
from ctx.llm.event_stream import StreamError

_READ_SIZE = 64 * 1024
_KEPT_STDERR = 8 * 1024
_STOP_WAIT_S = 1.0
"""How long a program may take to exit after its last line or a signal."""

_WAIT = "`ctx config set llm.timeout_seconds N` waits longer."


class ProcessLimits(NamedTuple):
    silence_s: float
    """How long it may make no progress."""
    whole_s: float
    largest: int
    """The maximum number of bytes it may print."""


def find_program(name: str, variables: Mapping[str, str]) -> str | None:
    """Find a program as a shell does.

    Relative folders on PATH are skipped: they depend on the current folder.
    """
    if os.path.dirname(name):
        folders = [os.path.dirname(name)]
    else:
        folders = variables.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, os.path.basename(name))
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


class ChildProcess:
    """A started program. The owner must call `end`.

    It and its children form a process group, which Ctrl-C on a terminal does not reach.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        folder: str,
        stdin: bytes,
        limits: ProcessLimits,
    ) -> None:
        # An unnamed temporary file: it takes the input at once and disappears with its readers.
        with tempfile.TemporaryFile(dir=folder) as stdin_file:
            stdin_file.write(stdin)
            stdin_file.seek(0)
            self._process = subprocess.Popen(
                command,
                env=variables,
                cwd=folder,
                stdin=stdin_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._limits = limits
        self._began = clock.monotonic()
        self._active_at = self._began
        self._stderr = b""

    @property
    def stderr_text(self) -> str:
        """The end of its standard error."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def exit_code(self) -> int | None:
        """Negative if it was killed; None while it runs."""
        return self._process.returncode

    def note_activity(self) -> None:
        """Reset the silence timer."""
        self._active_at = clock.monotonic()

    def lines(self) -> Iterator[bytes]:
        """Its output, line by line; `StreamError` beyond a limit."""
        held = bytearray()
        for chunk in self._chunks():
            start = len(held)
            held += chunk
            if b"\n" in chunk:
                end = held.rindex(b"\n", start)
                yield from bytes(held[:end]).split(b"\n")
                del held[: end + 1]
        if held:
            yield bytes(held)

    def _chunks(self) -> Iterator[bytes]:
        out, err = self._process.stdout, self._process.stderr
        assert out is not None
        assert err is not None
        open_ends: list[IO[bytes]] = [out, err]
        size = 0
        while out in open_ends:
            for end in _ready_pipes(open_ends, self._left_s()):
                chunk = os.read(end.fileno(), _READ_SIZE)
                if not chunk:
                    open_ends.remove(end)
                elif end is err:
                    self._stderr = (self._stderr + chunk)[-_KEPT_STDERR:]
                else:
                    size += len(chunk)
                    if size > self._limits.largest:
                        limit = self._limits.largest // 1_000_000
                        raise StreamError(f"sent an answer of more than {limit} MB")
                    yield chunk

    def _left_s(self) -> float:
        """How long to wait now; `StreamError` when the time is up."""
        now = clock.monotonic()
        silent = self._active_at + self._limits.silence_s - now
        whole = self._began + self._limits.whole_s - now
        if silent <= 0:
            raise StreamError(f"was silent for {self._limits.silence_s:g} s", hint=_WAIT)
        if whole <= 0:
            raise StreamError(f"took more than {self._limits.whole_s:g} s", hint=_WAIT)
        return min(silent, whole)

    def wait(self) -> None:
        """Give it time to exit by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_WAIT_S)

    def kill(self) -> None:
        """Kill it, from another thread."""
        if self._process.returncode is None:
            self._signal_group(signal.SIGKILL)

    def end(self) -> None:
        """End it and its group if it still runs: first SIGTERM, then SIGKILL."""
        with self._process:
            # Until the process is waited for, no other process can have its id.
            if self._process.returncode is None:
                self._signal_group(signal.SIGTERM)
                self._drain()
                self._signal_group(signal.SIGKILL)

    def _signal_group(self, order: signal.Signals) -> None:
        # Some systems do not permit this for a group of zombies.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, order)

    def _drain(self) -> None:
        """Wait briefly until no process of the group can print any more."""
        out = self._process.stdout
        assert out is not None
        until = clock.monotonic() + _STOP_WAIT_S
        while (left := until - clock.monotonic()) > 0 and _ready_pipes([out], left):
            if not os.read(out.fileno(), _READ_SIZE):
                break


def _ready_pipes(ends: Sequence[IO[bytes]], wait_s: float) -> list[IO[bytes]]:
    """The pipes that have data or are at their end, as soon as there is one.

    `select.select` fails if the process has a thousand open files.
    """
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ, end)
        return [key.data for key, _ in selector.select(wait_s)]


_ABANDONED_NS = 24 * 3600 * 10**9


@contextlib.contextmanager
def scratch_folder(folder: str, variables: Mapping[str, str]) -> Iterator[str]:
    """A folder for one request, named after a new session id."""
    # The client resolves links in folder names.
    folder = os.path.realpath(folder)
    session = str(uuid.uuid4())
    scratch = os.path.join(folder, session)
    with disk.explain_errors("making a folder for Claude Code"):
        disk.make_folder(scratch, durable_name=False)
    try:
        _remove_abandoned(folder, variables)
        yield scratch
    finally:
        _remove_traces(scratch, variables)


def _remove_abandoned(folder: str, variables: Mapping[str, str]) -> None:
    """Remove what killed processes left; other files stay."""
    for path in _entries(folder):
        if not _is_session(os.path.basename(path)):
            continue
        with contextlib.suppress(OSError):
            if clock.wall_ns() - os.stat(path).st_mtime_ns > _ABANDONED_NS:
                _remove_traces(path, variables)


def _is_session(name: str) -> bool:
    """Whether a name is an id that `scratch_folder` made."""
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False


def _remove_traces(scratch: str, variables: Mapping[str, str]) -> None:
    """Remove the folder and every file with its session id in the name."""
    _remove(scratch)
    session = os.path.basename(scratch)
    home = os.path.join(variables.get("HOME", ""), ".claude")
    config = variables.get("CLAUDE_CONFIG_DIR") or home
    if not os.path.isabs(config):
        return
    for folder in (*_entries(config), *_entries(os.path.join(config, "projects"))):
        for path in _entries(folder):
            name = os.path.basename(path)
            if name.startswith(session) or name.endswith(session):
                _remove(path)


def _entries(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [os.path.join(folder, name) for name in disk.names(folder)]
    return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            disk.discard(path)
