"""The worker's event loop: a round after each wake-up, and requests on the socket meanwhile.

Rounds and requests run in threads, each with its own connection. One round runs at a time; a
wake-up during a round starts the next one. Hooks wake the worker through a FIFO, which they can
open only while a worker holds it open: so they also learn whether one runs.
"""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import ctx
from ctx import clock, disk
from ctx.server import app, asgi_server
from ctx.server.app import AppServices, PageLink, ProcessInfo
from ctx.server.asgi_server import Server
from ctx.worker.worker import ExitReason, Worker, end_children, resident_mb

if TYPE_CHECKING:
    from ctx.page.doctor_runs import Doctor
    from ctx.page.listening import PageServer

_BURST_S = 0.05
"""Events come in bursts: how long to wait for more after a wake-up."""
_TICK_S = 5.0
_BACKLOG_TICK_S = 0.2
_ROUND_EVERY_S = 60.0
"""The interval between rounds while a session is live."""
_STOPPING_S = 1.2
"""How long a round may continue after the worker is told to stop."""
_BACKLOG = 64
_ENOUGH = 65536


class WakePipe:
    def __init__(self, path: str) -> None:
        disk.make_folder(os.path.dirname(path))
        try:
            if not stat.S_ISFIFO(os.lstat(path).st_mode):
                os.unlink(path)
                os.mkfifo(path, disk.FILE_MODE)
        except FileNotFoundError:
            os.mkfifo(path, disk.FILE_MODE)
        # Also open for writing, so that it does not reach end of file when the last hook closes it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._is_open = True

    def fileno(self) -> int:
        return self._fd

    def was_written(self) -> bool:
        """Whether anything was written since the last call."""
        try:
            return bool(os.read(self._fd, _ENOUGH))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close it; hooks now see that no worker runs."""
        if self._is_open:
            self._is_open = False
            os.close(self._fd)


def serve(worker: Worker, wake_pipe: WakePipe, doctor: "Doctor | None" = None) -> ExitReason:
    """Run until there is a reason to exit."""
    return asyncio.run(_Loop(worker, wake_pipe, doctor).run())


class _Loop:
    def __init__(self, worker: Worker, wake_pipe: WakePipe, doctor: "Doctor | None") -> None:
        self._worker = worker
        self._wake_pipe = wake_pipe
        self._doctor = doctor
        self._woken = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "round")
        self._last_round = 0.0
        self._page: PageServer | None = None
        self._serving_page: asyncio.Task[None] | None = None

    async def run(self) -> ExitReason:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._wake_pipe.fileno(), self._on_pipe)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, self._on_signal)
        server, serving = await self._serve()
        try:
            return await self._work()
        finally:
            loop.remove_reader(self._wake_pipe.fileno())
            server.end()
            if self._page is not None and self._serving_page is not None:
                self._page.end()
                await self._serving_page
            if serving is not None:
                await serving
                disk.discard(self._worker.store.worker_socket)
            self._thread.shutdown(wait=False)

    def _on_pipe(self) -> None:
        if self._wake_pipe.was_written():
            self._worker.note_wake()
            self._woken.set()

    def _on_signal(self) -> None:
        self._worker.stop()
        self._woken.set()

    async def _work(self) -> ExitReason:
        worker = self._worker
        await self._in_thread(worker.round)
        while not (reason := self._reason_to_exit()):
            patience_s = _BACKLOG_TICK_S if worker.is_behind else _TICK_S
            if await self._wait_for_wake(min(patience_s, worker.idle_left_s + 0.01)):
                await self._in_thread(worker.round)
            elif worker.has_work() or clock.monotonic() - self._last_round > _ROUND_EVERY_S:
                await self._in_thread(worker.round)
                await self._in_thread(worker.freshen)
        return reason

    def _reason_to_exit(self) -> ExitReason:
        if self._page is not None and self._page.is_needed:
            self._worker.note_need()
        return self._worker.reason_to_exit()

    async def _wait_for_wake(self, seconds: float) -> bool:
        """Whether a wake-up arrives in this time; if so, wait for the end of the burst."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        if not self._woken.is_set() or self._worker.is_stopping():
            return False
        await asyncio.sleep(_BURST_S)
        self._woken.clear()
        return True

    async def _in_thread(self, do: Callable[[], None]) -> None:
        """Run a function in the thread and wait for it, but not for long once the worker stops."""
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
                    # The next process that opens the store rolls back the open transaction.
                    self._worker.log("gone: stopped in the middle of a round")
                    end_children()
                    os._exit(0)
        await doing

    async def _serve(self) -> "tuple[Server, asyncio.Task[None] | None]":
        services = AppServices(
            self._worker.environment,
            self._worker.variables,
            self._on_wake,
            self._process_info,
            self._open_page,
        )
        config = asgi_server.config(
            app.app(services),
            http="h11",
            backlog=_BACKLOG,
            limit_concurrency=_BACKLOG,
            timeout_keep_alive=1,
        )
        server = Server(config)
        try:
            listening = _listening_socket(self._worker.store.worker_socket)
        except OSError as error:
            # Hooks and commands work without the socket.
            self._worker.log(f"there is no socket: {error}")
            return server, None
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        return server, serving

    async def _open_page(self, folder: str, with_file: bool) -> PageLink:
        """Serve the page on a loopback port, if it is not served yet."""
        # Only who looks at the page pays for its libraries.
        listening = await asyncio.to_thread(import_module, "ctx.page.listening")
        if self._page is None or (self._serving_page and self._serving_page.done()):
            page = listening.PageServer(
                self._worker.environment, 0, self._worker.note_need, self._doctor, self._worker.log
            )
            self._page = page
            self._serving_page = asyncio.create_task(page.serve())
        self._worker.note_need()
        if with_file:
            return self._page.new_link(folder)
        return PageLink(self._page.new_address(folder), "")

    def _on_wake(self) -> None:
        self._worker.note_wake()
        self._woken.set()

    def _process_info(self) -> ProcessInfo:
        worker = self._worker
        since = clock.iso(worker.began_ms)
        used = round(resident_mb(), 1)
        return ProcessInfo(os.getpid(), ctx.__version__, used, since, worker.rounds)


def _listening_socket(path: str) -> socket.socket:
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
