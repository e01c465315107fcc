"""What the parts of a worker share: where it works, what it was doing, and why it may go."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

import ctx
from ctx import clock
from ctx.hook_files import live, spool
from ctx.layout import UserStore
from ctx.operations import worker_round
from ctx.operations.worker_round import WorkerRounds
from ctx.worker import lock, log, memory_use
from ctx.worker.model_synthesis import ModelSynthesis
from ctx.workspace import Memory, Surroundings

if TYPE_CHECKING:
    from types import TracebackType

Opened = Callable[[], AbstractContextManager[Memory]]
"""Opens the memory for writing. Each round does so anew: a store may have been replaced."""

Reason = Literal["", "stopped", "idle", "large", "replaced", "removed"]
"""Why a worker goes: it was told to, nobody needs it, it takes too much, there is a newer ctx, its
home is not there any more."""

_YOUNG_S = 30.0
"""One that is younger is not replaced for its size: the next one would be no smaller."""
_LONG_S = 12 * 3600.0
"""A session that says nothing for so long does not keep a worker: the next hook starts one."""


class Limits(NamedTuple):
    idle_s: float
    memory_mb: float
    young_s: float = _YOUNG_S


class Worker:
    """One worker, from its start to its end."""

    def __init__(
        self,
        surroundings: Surroundings,
        opened: Opened,
        limits: Limits,
        variables: Mapping[str, str],
    ) -> None:
        self.surroundings = surroundings
        self.store: UserStore = surroundings.user_store
        self.home = self.store.home
        self.limits = limits
        self.began_ms = clock.now_ms()
        self.rounds = 0
        self._opened = opened
        self._is_stopping = False
        self._began = clock.monotonic()
        self._needed = self._began
        self._rung = self._began
        self._install = _stamp(ctx.__file__)
        self._lock = _identity(self.store.worker_lock)
        self._tending = WorkerRounds(self.home, self._guard, self.is_stopping)
        self._asking = ModelSynthesis(surroundings, variables, opened, self._guard, self.log)

    def log(self, message: str) -> None:
        log.add(self.store.worker_log, message)

    def drain(self) -> None:
        """Empty the spool, and nothing more: a hook may wait for what it asked for."""
        with self._guard("the spool"), self._opened() as memory:
            for told in worker_round.problems(worker_round.drain(memory, self.home)):
                self.log(told)

    def round(self) -> None:
        """All that is to be done now. Whatever goes wrong is a line in the log."""
        lock.write_again(self.store.worker_lock)
        with self._guard("a round"), self._opened() as memory:
            tended = self._tending.round(memory)
            for told in worker_round.problems(tended.applied):
                self.log(told)
        with self._guard("what a model tells"):
            self._asking.look()
        self.rounds += 1

    def freshen(self) -> None:
        """What can wait until there is nothing else to do."""
        with self._guard("freshening"), self._opened() as memory:
            self._tending.freshen(memory)

    def has_been_rung(self) -> None:
        self._rung = self._needed = clock.monotonic()

    def stop(self) -> None:
        self._is_stopping = True

    def leave(self) -> None:
        """Wait for nobody any more."""
        self._asking.stop()

    def is_stopping(self) -> bool:
        return self._is_stopping

    def has_work(self) -> bool:
        """Whether something lies in the spool, or was left to another process."""
        return self.is_behind or bool(spool.waiting(self.home))

    @property
    def is_behind(self) -> bool:
        return self._tending.is_behind

    def reason_to_go(self) -> Reason:
        now = clock.monotonic()
        if self.is_stopping():
            return "stopped"
        if _identity(self.store.worker_lock) != self._lock:
            return "removed"
        if self._asking.is_asking:
            # What was asked is paid for.
            self._needed = now
            return ""
        if _stamp(ctx.__file__) != self._install:
            return "replaced"
        is_young = now - self._began < self.limits.young_s
        if not is_young and memory_use.megabytes() > self.limits.memory_mb:
            return "large"
        if now - self._rung < _LONG_S and self._is_watched():
            self._needed = now
        return "idle" if now - self._needed >= self.limits.idle_s else ""

    @property
    def idle_left_s(self) -> float:
        return max(0.0, self.limits.idle_s - (clock.monotonic() - self._needed))

    def _is_watched(self) -> bool:
        """Whether a client runs that will have something to say."""
        now_s = clock.wall_s()
        return any(live.is_live(self.home, each, now_s) for each in live.sessions(self.home))

    @contextmanager
    def _guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the worker's loop: it goes on, whatever happens
            self.log(f"{doing}: {type(error).__name__}: {error} ({_where(error.__traceback__)})")


def end_children() -> None:
    if "ctx.codebase.code_background" in sys.modules:
        from ctx.codebase import code_background

        code_background.end()


def _stamp(path: str) -> tuple[int, int] | None:
    """Tells one install of ctx from another, by a file of it; None while there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _identity(path: str) -> tuple[int, int] | None:
    """Tells a file from another that has taken its place."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _where(traceback: "TracebackType | None") -> str:
    """Where in our code something went wrong."""
    place = ""
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if f"{os.sep}ctx{os.sep}" in path:
            place = f"{path.rpartition(f'{os.sep}ctx{os.sep}')[2]}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
