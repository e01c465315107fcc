"""A server on loopback that answers each POST with JSON, in the way of OpenAI's API."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Callable[[dict[str, Any]], dict[str, Any]]


@contextmanager
def serving(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[str]:
    """Answer requests in a thread; the address is the base of the API."""
    with _Server(("127.0.0.1", 0), _Request) as server:
        server.answer = answer
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(self.server.answer(asked)).encode()
        # The client may have been killed meanwhile.
        with suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        """No line on stderr for each request."""
