"""A server of somebody else on this machine, and everything that browsers send to it."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

PAGE = b"<!doctype html><title>foreign</title><p>A page of somebody else.</p>"


class ForeignServer:
    """It keeps each request as it was sent, and answers with a page."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[str] = []
        self.was_asked = threading.Event()
        foreign = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                foreign.requests.append(f"{self.requestline}\n{self.headers}")
                foreign.was_asked.set()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(PAGE)))
                self.end_headers()
                self.wfile.write(PAGE)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            # Whoever waits for a port takes it as soon as it is free.
            allow_reuse_address = True
            address_family = socket.AF_INET

        self._server = Server(("127.0.0.1", port), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def received(self) -> str:
        return "\n".join(self.requests)

    def __enter__(self) -> "ForeignServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
