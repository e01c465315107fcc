"""A loopback port and the server on it, for `ctx serve` and for the worker."""

import errno
import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from ctx.errors import UsageError
from ctx.page import access, rendering
from ctx.page.access import Access
from ctx.page.doctor_runs import Doctor, DoctorRuns
from ctx.page.live_updates import Listeners
from ctx.page.opening_files import OpeningFiles
from ctx.page.page_app import PageServices, page_app
from ctx.page.places import Places
from ctx.server import asgi_server
from ctx.server.app import PageLink
from ctx.server.asgi_server import Server
from ctx.workspace import Environment

_HOST = "127.0.0.1"
_MOST_CONNECTIONS = 512
HEADERS_S = 10.0
"""How long a client may take to send the first line and the headers of a request."""


class PageServer:
    """The page on a port. It is created in the event loop that serves it."""

    def __init__(
        self,
        environment: Environment,
        port: int,
        touch: Callable[[], None] = lambda: None,
        doctor: Doctor | None = None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        token = access.bearer_token(environment.user_store.page_token)
        self._socket = _listening_socket(port)
        self._places = Places(environment)
        self._access = Access(self._socket.getsockname()[1], token)
        self._opening_files = OpeningFiles(environment.user_store.home)
        self.listeners = Listeners()
        doctor_runs = DoctorRuns(doctor) if doctor else None
        services = PageServices(
            environment, self._access, self._places, self.listeners, touch, doctor_runs, log
        )
        config = asgi_server.config(
            page_app(services),
            http=_Protocol,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=5,
        )
        self._server = Server(config)

    def new_address(self, folder: str) -> str:
        """An address that opens the page for this folder, once."""
        self._places.add(folder)
        return self._access.new_address(folder)

    def new_link(self, folder: str) -> PageLink:
        """The same, and a file that leads a browser there."""
        self._places.add(folder)
        path = self._opening_files.new_path()
        remove = partial(self._opening_files.remove, path)
        address = self._access.new_address(folder, remove)
        is_written = self._opening_files.write(path, address)
        return PageLink(address, os.path.basename(path) if is_written else "")

    @property
    def is_needed(self) -> bool:
        """Whether a page listens, or a browser is starting that is about to open one."""
        return self.listeners.count > 0 or self._opening_files.are_waiting

    async def serve(self) -> None:
        threading.Thread(target=rendering.compile_templates, daemon=True).start()
        try:
            await self._server.serve([self._socket])
        finally:
            self._socket.close()
            self._opening_files.remove_all()

    def end(self) -> None:
        self.listeners.end()
        self._server.end()


class _Protocol(H11Protocol):
    """Closes a connection whose client does not finish its first request in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(HEADERS_S, self._close_if_silent)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # uvicorn waits without a limit for the rest of a second request, or of a refused body.
        if self.cycle is not None and self.cycle.response_complete:
            waiting = self.timeout_keep_alive_task is not None
            if not waiting and not self.transport.is_closing():
                close = self.transport.close
                self.timeout_keep_alive_task = self.loop.call_later(HEADERS_S, close)

    def _close_if_silent(self) -> None:
        cycle: object = self.cycle
        if cycle is None and not self.transport.is_closing():
            self.transport.close()


def _listening_socket(port: int) -> socket.socket:
    """A loopback port; 0 is any that is free."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
    except OverflowError:
        listening.close()
        raise UsageError(f"{port} is not a port.", hint="Ports go up to 65535.") from None
    except OSError as error:
        listening.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "in use" if error.errno == errno.EADDRINUSE else "not for ordinary users"
            raise UsageError(
                f"Port {port} is {why}.", hint="Choose another with --port, or leave it out."
            ) from None
        raise
    # Whoever gets the address can connect at once.
    listening.listen(_MOST_CONNECTIONS)
    listening.setblocking(False)
    return listening
