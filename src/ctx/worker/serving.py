"""The loop of a worker: a round after each ring, answers on the socket meanwhile.

Rounds and requests run in threads, each with a connection of its own. One round runs at a time;
what rings during one is looked at in the next.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import uvicorn

import ctx
from ctx import clock, disk
from ctx.server import app
from ctx.server.app import About, Served
from ctx.worker import memory_use
from ctx.worker.bell import Bell
from ctx.worker.worker import Reason, Worker, end_children

_GATHER_S = 0.05
"""Events come in bursts: so long a ring waits for others."""
_TICK_S = 5.0
_SOON_S = 0.2
_OFTEN_S = 60.0
"""So often there is a round while a session is live, whether or not anybody rings."""
_STOPPING_S = 1.2
"""How long a round may go on when the worker is told to stop."""
_BACKLOG = 64


def serve(worker: Worker, bell: Bell) -> Reason:
    """Work until there is a reason to go."""
    return asyncio.run(_Loop(worker, bell).run())


class _Server(uvicorn.Server):
    """A server that is told when to end, rather than looking ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        await self._ending.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # They are the worker's.
        yield

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()


class _Loop:
    def __init__(self, worker: Worker, bell: Bell) -> None:
        self._worker = worker
        self._bell = bell
        self._rung = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "round")
        self._last_round = 0.0

    async def run(self) -> Reason:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._bell.fileno(), self._ring)
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self._stop)
        server, serving = await self._serve()
        try:
            return await self._work()
        finally:
            loop.remove_reader(self._bell.fileno())
            server.end()
            if serving is not None:
                await serving
                disk.discard(self._worker.store.worker_socket)
            self._thread.shutdown(wait=False)

    def _ring(self) -> None:
        if self._bell.has_rung():
            self._worker.has_been_rung()
            self._rung.set()

    def _stop(self) -> None:
        self._worker.stop()
        self._rung.set()

    async def _work(self) -> Reason:
        worker = self._worker
        await self._in_thread(worker.round)
        while not (reason := worker.reason_to_go()):
            patience_s = _SOON_S if worker.is_behind else _TICK_S
            if await self._rings(min(patience_s, worker.idle_left_s + 0.01)):
                await self._in_thread(worker.round)
            elif worker.has_work() or clock.monotonic() - self._last_round > _OFTEN_S:
                await self._in_thread(worker.round)
                await self._in_thread(worker.freshen)
        return reason

    async def _rings(self, seconds: float) -> bool:
        """Whether somebody rings within this time; then, until a burst of rings is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        if not self._rung.is_set() or self._worker.is_stopping():
            return False
        await asyncio.sleep(_GATHER_S)
        self._rung.clear()
        return True

    async def _in_thread(self, do: Callable[[], None]) -> None:
        """Do something, and wait for it; not for long where the worker is told to stop."""
        if self._worker.is_stopping():
            return
        self._last_round = clock.monotonic()
        doing = asyncio.get_running_loop().run_in_executor(self._thread, do)
        stopping_at: float | None = None
        while not doing.done():
            await asyncio.wait([doing], timeout=0.1 if self._worker.is_stopping() else 1.0)
            if self._worker.is_stopping():
                stopping_at = stopping_at or clock.monotonic() + _STOPPING_S
                if clock.monotonic() > stopping_at:
                    # What is open is undone by whoever opens the store next.
                    self._worker.log("gone: stopped in the middle of a round")
                    end_children()
                    os._exit(0)
        await doing

    async def _serve(self) -> "tuple[_Server, asyncio.Task[None] | None]":
        served = Served(self._worker.environment, self._woken, self._about)
        config = uvicorn.Config(
            app.app(served),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=_BACKLOG,
            limit_concurrency=_BACKLOG,
            timeout_keep_alive=1,
            timeout_graceful_shutdown=1,
        )
        logging.getLogger("uvicorn").addHandler(logging.NullHandler())
        logging.getLogger("uvicorn").propagate = False
        server = _Server(config)
        try:
            listening = _listening(self._worker.store.worker_socket)
        except OSError as error:
            # Hooks do without, and so does whoever asks for memory by commands.
            self._worker.log(f"there is no socket: {error}")
            return server, None
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        return server, serving

    def _woken(self) -> None:
        self._worker.has_been_rung()
        self._rung.set()

    def _about(self) -> About:
        worker = self._worker
        since = clock.iso(worker.began_ms)
        used = round(memory_use.megabytes(), 1)
        return About(os.getpid(), ctx.__version__, used, since, worker.rounds)


def _listening(path: str) -> socket.socket:
    """A socket that only this user can reach."""
    folder = os.path.dirname(path)
    disk.make_folder(folder)
    status = os.stat(folder, follow_symlinks=False)
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder} is not this user's alone")
    disk.discard(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(path)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.setblocking(False)
    return listening
