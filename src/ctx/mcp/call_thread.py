"""A thread in which calls run, one after the other. Those that read have one, and those that write
have another, so that no read waits for a write.

One thread for each, because connections to SQLite belong to the thread that opened them, and what
one call has loaded serves the next. A call that takes long reports progress every second. A
cancelled call that has not begun never begins; one that reads is interrupted; one that writes
finishes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import cached_property
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ctx.packs.node_vectors import OpenVectors

_Answer = TypeVar("_Answer")

Report = Callable[[float], Awaitable[None]]
"""Reports how many seconds a call has taken."""

_REPORT_SECONDS = 1.0
_STEPS = 100_000


class RunningCall:
    """A call in the thread. It names the connections that may be interrupted."""

    def __init__(self, thread: "CallThread | None" = None) -> None:
        self._thread = thread
        self._is_cancelled = False

    @property
    def vectors(self) -> "OpenVectors | None":
        """The vectors that the thread keeps for the next call."""
        return self._thread.vectors if self._thread else None

    def may_interrupt(self, *connections: Connection) -> None:
        for connection in connections:
            # What runs on a server finishes there.
            if isinstance(connection, Connection):
                connection.set_progress_handler(lambda: self._is_cancelled, _STEPS)

    def cancel(self) -> None:
        self._is_cancelled = True


class CallThread:
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "ctx-call")
        self._last: Future[Any] | None = None

    @cached_property
    def vectors(self) -> "OpenVectors":
        from ctx.packs.node_vectors import OpenVectors

        return OpenVectors()

    async def run(self, work: Callable[[RunningCall], _Answer], report: Report) -> _Answer:
        call = RunningCall(self)
        running = self._executor.submit(work, call)
        self._last = running
        answer = asyncio.wrap_future(running)
        seconds = 0.0
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=_REPORT_SECONDS)
                if not answer.done():
                    seconds += _REPORT_SECONDS
                    await report(seconds)
        except asyncio.CancelledError:
            call.cancel()
            running.cancel()
            raise
        return answer.result()

    def begin(self, work: Callable[[RunningCall], object]) -> None:
        """Run something of which nobody waits for the result."""
        self._last = self._executor.submit(work, RunningCall(self))

    def finish(self, seconds: float) -> None:
        """Wait for the call that was submitted last, and so for all before it."""
        if self._last is not None:
            wait_for([self._last], timeout=seconds)
