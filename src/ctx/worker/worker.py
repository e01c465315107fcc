"""The worker's state: its store, its rounds, its reasons to exit, and its log.

`CTX_HOME/worker.log` has a line for what it did and for each error. It is rotated at one megabyte,
with one old file kept. Lines are redacted.
"""

import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple

import ctx
from ctx import clock, disk
from ctx.hook_files import live, spool
from ctx.layout import UserStore
from ctx.operations import worker_round
from ctx.operations.worker_round import WorkerRounds
from ctx.redaction import redact
from ctx.worker import process_lock
from ctx.worker.model_thread import ModelThread
from ctx.worker.sync_thread import SyncThread
from ctx.workspace import Environment, Memory

if TYPE_CHECKING:
    from ctx.operations.author_repair import AuthorRepair
    from ctx.operations.background_rebuild import BackgroundRebuild

OpenMemory = Callable[[], AbstractContextManager[Memory]]
"""Opens the memory for writing, in each round, because the store may have been replaced."""

ExitReason = Literal["", "stopped", "idle", "large", "replaced", "removed"]
"""Why a worker exits: it was told to, nothing needs it, it uses too much memory, ctx was upgraded,
or its home is gone."""

_MIN_RESTART_AGE_S = 30.0
"""A younger worker is not restarted for its size: its successor would be no smaller."""
_SILENT_SESSION_S = 12 * 3600.0
"""A session that is silent for this long does not keep the worker alive; the next hook starts one.
"""


class WorkerLimits(NamedTuple):
    idle_s: float
    memory_mb: float = 512
    """Above it, the worker restarts."""
    young_s: float = _MIN_RESTART_AGE_S


class Worker:
    """One worker, from start to exit."""

    def __init__(
        self,
        environment: Environment,
        open_memory: OpenMemory,
        limits: WorkerLimits,
        variables: Mapping[str, str],
    ) -> None:
        self.environment = environment
        self.variables = variables
        self.store: UserStore = environment.user_store
        self.home = self.store.home
        self.limits = limits
        self.began_ms = clock.now_ms()
        self.rounds = 0
        self._open_memory = open_memory
        self._is_stopping = False
        self._began = clock.monotonic()
        self._needed_at = self._began
        self._woken_at = self._began
        self._install = _install_stamp(ctx.__file__)
        self._lock = _inode(self.store.worker_lock)
        self._tending = WorkerRounds(
            self.home, self._guard, self.is_stopping, _catch_up, is_worker=True
        )
        self._rebuild: BackgroundRebuild | None = None
        self._repair: AuthorRepair | None = None
        self._model_thread = ModelThread(environment, variables, open_memory, self._guard, self.log)
        self._sync_thread = SyncThread(environment, open_memory, self._guard, self.log)

    def log(self, message: str) -> None:
        add_log_line(self.store.worker_log, message)

    def drain(self) -> None:
        """Drain the spool and nothing else: a hook may be waiting for its commands."""
        with self._guard("the spool"), self._open_memory() as memory:
            for problem in worker_round.problems(worker_round.drain(memory, self.home)):
                self.log(problem)

    def round(self) -> None:
        """Run one round. Errors go to the log."""
        if self._is_removed():
            return
        process_lock.rewrite(self.store.worker_lock)
        with self._guard("a round"), self._open_memory() as memory:
            tended = self._tending.round(memory)
            for problem in worker_round.problems(tended.applied):
                self.log(problem)
        with self._guard("model synthesis"):
            self._model_thread.wake()
        with self._guard("sync"):
            self._sync_thread.wake()
        self.rounds += 1

    def freshen(self) -> None:
        """Work for idle times."""
        if self._is_removed():
            return
        with self._guard("freshening"), self._open_memory() as memory:
            self._tending.freshen(memory)
            with self._guard("correcting authors"):
                if self._repair is None:
                    from ctx.operations.author_repair import AuthorRepair

                    self._repair = AuthorRepair(self.home, self._guard, self.is_stopping, self.log)
                self._repair.advance(memory)
            with self._guard("rebuilding sessions"):
                if self._rebuild is None:
                    from ctx.operations.background_rebuild import BackgroundRebuild

                    self._rebuild = BackgroundRebuild(
                        self.home, self._guard, self.is_stopping, self.log
                    )
                self._rebuild.advance(memory)

    def note_wake(self) -> None:
        self._woken_at = self._needed_at = clock.monotonic()

    def note_need(self) -> None:
        """Somebody uses the page."""
        self._needed_at = clock.monotonic()

    def stop(self) -> None:
        self._is_stopping = True

    def stop_asking(self) -> None:
        """Stop the model thread."""
        self._model_thread.stop()

    def is_stopping(self) -> bool:
        return self._is_stopping

    def has_work(self) -> bool:
        """Whether the spool has events, or another process left unfinished work."""
        return self.is_behind or bool(spool.pending_names(self.home))

    @property
    def is_behind(self) -> bool:
        return self._tending.is_behind

    def reason_to_exit(self) -> ExitReason:
        now = clock.monotonic()
        if self.is_stopping():
            return "stopped"
        if self._is_removed():
            return "removed"
        if self._model_thread.is_asking:
            # The answer is already paid for.
            self._needed_at = now
            return ""
        idle_work = self._rebuild, self._repair
        if any(work is not None and work.is_under_way for work in idle_work):
            self._needed_at = now
        if _install_stamp(ctx.__file__) != self._install:
            return "replaced"
        is_young = now - self._began < self.limits.young_s
        if not is_young and resident_mb() > self.limits.memory_mb:
            return "large"
        if now - self._woken_at < _SILENT_SESSION_S and self._has_live_session():
            self._needed_at = now
        return "idle" if now - self._needed_at >= self.limits.idle_s else ""

    def _is_removed(self) -> bool:
        """Whether its home was deleted. Opening the store would create it again."""
        return _inode(self.store.worker_lock) != self._lock

    @property
    def idle_left_s(self) -> float:
        return max(0.0, self.limits.idle_s - (clock.monotonic() - self._needed_at))

    def _has_live_session(self) -> bool:
        """Whether the client of any session still runs."""
        now_s = clock.wall_s()
        return any(live.is_live(self.home, session, now_s) for session in live.sessions(self.home))

    @contextmanager
    def _guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the worker's loop: it goes on, whatever happens
            self.log(f"{doing}: {type(error).__name__}: {error} ({_location(error.__traceback__)})")


def end_children() -> None:
    if "ctx.codebase.background_refresh" in sys.modules:
        from ctx.codebase import background_refresh

        background_refresh.end()


def resident_mb() -> float:
    """The resident memory of this process; its peak if the system does not report it."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _install_stamp(path: str) -> tuple[int, int] | None:
    """Identifies an installation of ctx by one of its files; None if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _inode(path: str) -> tuple[int, int] | None:
    """Identifies a file, to notice when another takes its place."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _location(traceback: TracebackType | None) -> str:
    """Where in ctx's code the error occurred."""
    place = ""
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if f"{os.sep}ctx{os.sep}" in path:
            place = f"{path.rpartition(f'{os.sep}ctx{os.sep}')[2]}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def _catch_up(memory: Memory) -> int:
    from ctx.operations import unreported_sessions

    return unreported_sessions.catch_up(memory)


_LARGEST = 1024 * 1024
_LONGEST_LINE = 2_000
_LONGEST_TAIL = 256 * 1024


def add_log_line(path: str, message: str) -> None:
    """Add a line. Failures are ignored: there is nowhere to report them."""
    line = " ".join(redact(message[: 2 * _LONGEST_LINE]).text.split())[:_LONGEST_LINE]
    entry = f"{clock.iso(clock.now_ms())} {os.getpid()} {line}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW
    with suppress(OSError):
        fd = os.open(path, flags, disk.FILE_MODE)
        try:
            os.write(fd, entry.encode("utf-8", "backslashreplace"))
            if os.fstat(fd).st_size > _LARGEST:
                os.replace(path, f"{path}.1")
        finally:
            os.close(fd)


def log_tail(path: str, lines: int) -> list[str]:
    """The last lines, oldest first."""
    tail_lines: list[str] = []
    for log in (f"{path}.1", path):
        with suppress(OSError):
            tail_lines += _last(log)
    return tail_lines[-lines:] if lines else tail_lines


def _last(path: str) -> list[str]:
    fd = disk.open_plain(path)
    try:
        size = os.fstat(fd).st_size
        start = max(0, size - _LONGEST_TAIL)
        text = os.pread(fd, size - start, start).decode("utf-8", "replace")
    finally:
        os.close(fd)
    # The first line may be incomplete.
    return text.splitlines()[1 if start else 0 :]
